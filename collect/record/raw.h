// SPDX-License-Identifier: MIT
// Makes a raw trace, which a process has written of itself, self-contained.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <vector>

#include "base/descriptor.h"
#include "base/result.h"
#include "collect/record/strip.h"
#include "reader/model.h"
#include "symbols/resolve.h"

namespace karst::collect {

struct RawOptions {
  bool source = true;  ///< keep the text of the source files
  symbols::ResolveOptions resolve;
  Strip strip;  ///< what is taken out
  /// Called with the output, once it has its name. May be empty.
  std::function<void(const Descriptor&)> on_written{};
};

struct RawSummary {
  std::uint64_t named = 0;
  std::uint64_t unnamed = 0;
  std::uint64_t events = 0;
  std::vector<reader::Problem> problems;  ///< what names, files or events are missing, and what to do about it
};

/// Writes the trace at `raw` to `output` with names, lines and sources, without what is to be stripped. All else that
/// this Karst knows goes over as it is. A trace that has names already gets none anew. Error: it cannot be read, or the
/// output cannot be written.
Result<RawSummary> resolve_raw(const std::filesystem::path& raw, const std::filesystem::path& output,
                               const RawOptions& options);

}  // namespace karst::collect
