// SPDX-License-Identifier: MIT
// --library GLOB[:FUNCTIONS]: which libraries without sleds are patched, and which of their functions.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "choice/function_lists.h"

namespace karst::choice {

struct LibraryChoice {
  std::string text;       ///< as it was given
  std::string files;      ///< a pattern, as of a shell, of files' names: libssl*
  std::string functions;  ///< a glob of functions' names; empty: all that are large enough

  /// Error: what is wrong with it, and how it is written. Also where it can mean libc, the loader or libkarst alone.
  static Result<LibraryChoice> parse(std::string_view text);
  /// `path`: of a library's file. libz.so.1 and libz.so mean libz.so.1.2.13 as well.
  bool means(std::string_view path) const;
  /// The pattern matches, whatever library it is.
  bool matches(std::string_view path) const;
};

inline constexpr const char* kWhyNeverPatched =
    "libc, the loader and libkarst are never patched, as tracing stands on them; --system "
    "files,net,time,memory,locks has libc's calls";

/// libc, the loader, libkarst: what the runtime stands on, or is. They are never patched.
bool is_below_runtime(std::string_view path);

/// What of one library was named.
struct NamedOfLibrary {
  bool whole = false;              ///< a choice without functions means it
  std::vector<std::string> globs;  ///< of functions
  bool any() const { return whole || !globs.empty(); }
};
/// `path`: of a library's file.
NamedOfLibrary named_of(const std::vector<LibraryChoice>& choices, std::string_view path);

}  // namespace karst::choice
