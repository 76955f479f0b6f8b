// SPDX-License-Identifier: MIT
// Source files: where they are now, and their text.
#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "reader/model.h"
#include "sandbox/credentials.h"

namespace karst::symbols {

/// `--map-path FROM=TO`: sources that the debug information has under FROM are under TO now. The mapped path is the one
/// that Karst uses from then on, to look for the file and to show it, so that what it shows can be opened. FROM
/// matches whole directories ("/build" is no part of "/builder/a.cc"); the first mapping that matches is taken, once.
struct PathMapping {
  std::string from;
  std::string to;

  /// From the option's text. The error says what is wrong with it.
  static Result<PathMapping> parse(std::string_view text);
};

/// The path after the first mapping that matches, else as it is.
std::string map_path(std::string_view path, std::span<const PathMapping> mappings);

struct SourceLimits {
  std::size_t file_bytes = std::size_t{8} << 20;     ///< a larger file is generated, not read by people
  std::size_t total_bytes = std::size_t{256} << 20;  ///< of all text; what comes later is left out
};

struct Sources {
  std::vector<reader::SourceFile> files;  ///< in order of path; `path` equals Function::file
  std::vector<reader::Problem> problems;  ///< which were left out, and why
};

/// The text, by a sandbox (sandbox.h), of the files in which the processes' (resolved) functions are defined, each
/// once. What is not at its path is looked for in its module's directory, by the last parts of its path. Left out with
/// a problem: what is not there (counted together, as the sources of libraries seldom are), what is not a regular file,
/// too large, not text (has a NUL byte), or was written to after a module of it was built (Module::built_by_ns), as its
/// lines are not those that ran. Functions that the filter left out do not count.
Sources collect_sources(std::span<const reader::Process> processes, const SourceLimits& limits = {},
                        const std::optional<sandbox::Credentials>& as = std::nullopt);

}  // namespace karst::symbols
