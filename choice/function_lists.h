// SPDX-License-Identifier: MIT
// Lists of functions to leave out, or to trace alone, by globs of names and of source paths (format/filter_list.h).
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "reader/model.h"
#include "sandbox/credentials.h"

namespace karst::choice {

/// What the user's lists say, or those that a program carries.
struct ListChoice {
  std::vector<std::string> no_trace;  ///< globs
  std::vector<std::string> only;      ///< globs; none: all functions
  /// Functions of fewer instructions that do not loop are left out.
  std::optional<std::uint32_t> min_instructions;

  bool empty() const { return no_trace.empty() && only.empty() && !min_instructions; }
};

/// The lists that the wrappers put into executables and libraries when they were linked, by a sandbox (sandbox.h).
/// Empty for one that carries none or is not readable. What is not understood in them is left out.
std::vector<ListChoice> carried_lists(const std::vector<std::string>& paths,
                                      const std::optional<sandbox::Credentials>& as = std::nullopt);

/// Those of one module, read here and now: what the sandbox does, without it.
ListChoice lists_in(const std::string& path);

/// Globs, made ready. Matching takes time linear in the text, for any number of globs. Immutable; any thread may use
/// it.
class GlobSet {
 public:
  /// No glob: matches nothing.
  GlobSet();
  GlobSet(GlobSet&&) noexcept;
  GlobSet& operator=(GlobSet&&) noexcept;
  ~GlobSet();

  /// Error: a glob that is none, or more of them than can be handled together.
  static Result<GlobSet> compile(const std::vector<std::string>& globs);

  bool empty() const;
  /// There is a glob of paths: functions without a known file match none of these.
  bool has_paths() const;
  /// A glob of names matches the whole demangled name, with or without its parameters, or the linker's name. One of
  /// paths matches the whole
  /// path of the function's source file; without a slash in front, from any directory on (`src/a.cc`, `third_party/*`).
  bool matches(const reader::Function& function) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace karst::choice
