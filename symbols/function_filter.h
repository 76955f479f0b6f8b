// Which functions to look at, by regular expressions on their demangled names: `--functions`, `--not-functions` of
// `karst run`, `--function` of the subcommands that read a trace. One class for all of them:
//
//   auto filter = FunctionFilter::compile(only, not_);   // a reader's `--function R` is compile({R}, {})
//   if (!filter) return filter.error();
//   if (filter->keeps(function.name)) ...
//
// The syntax is RE2's (Perl's without look-around and back-references): matching takes time linear in the name and a
// bounded amount of memory and stack for every pattern, which neither std::regex nor glibc's regexec promises; and it
// says which part of a bad pattern is bad.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace karst::symbols {

/// Immutable once made; any thread may use it.
class FunctionFilter {
 public:
  /// Keeps everything.
  FunctionFilter();
  FunctionFilter(FunctionFilter&&) noexcept;
  FunctionFilter& operator=(FunctionFilter&&) noexcept;
  ~FunctionFilter();

  /// A name is kept when it matches one of `only` (or `only` is empty) and none of `not_`. The error of a bad pattern
  /// names the pattern, what is wrong, and where.
  static Result<FunctionFilter> compile(const std::vector<std::string>& only, const std::vector<std::string>& not_);

  /// Patterns match anywhere in the name, unless they are anchored by ^ or $.
  bool keeps(std::string_view name) const;
  /// It matches one of `not_`.
  bool excludes(std::string_view name) const;
  /// No pattern: keeps() is always true.
  bool keeps_all() const;
  /// The patterns of which a name must match one.
  const std::vector<std::string>& only() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace karst::symbols
