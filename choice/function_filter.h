// SPDX-License-Identifier: MIT
// Which functions to look at, by patterns: `--function`, `--not-function`, `--over` and all other options that take a
// REGEX, the page's search, karst_handle(). One class for all of them:
//
//   const FunctionFilter filter(only, not_);   // a reader's `--function R` is filter({R})
//   if (filter.keeps(function.name)) ...
//
// A pattern matches a demangled name in three ways:
//
//   as text                   the name contains it as it stands: `serve(int)`, `operator()`, `char*`
//   as a shown name           tables leave out parameters, template arguments, anonymous namespaces and outer scopes
//                             (base/plain_name.h): `Server::serve` is `(anonymous namespace)::Server<int>::serve(int)`
//   as a regular expression   it matches somewhere in the name, unless anchored by ^ or $
//
// With (?i) in front all three take small letters and capitals for the same; the page's search puts it there.
//
// So no pattern is wrong: what is no regular expression, like `operator[]` or `?`, is a text. complaint() says so
// where nothing was found.
//
// Patterns come from other processes, too (karst_handle). The syntax of expressions is RE2's (Perl's without
// look-around and back-references): matching takes time linear in the name and a bounded amount of memory and stack for
// every pattern, which neither std::regex nor glibc's regexec promises. An expression that needs more memory is a text.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace karst::choice {

/// Immutable once made; any thread may use it.
class FunctionFilter {
 public:
  /// Keeps everything.
  FunctionFilter();
  /// A name is kept when it matches one of `only` (or `only` is empty) and none of `not_`.
  explicit FunctionFilter(const std::vector<std::string>& only, const std::vector<std::string>& not_ = {});
  FunctionFilter(FunctionFilter&&) noexcept;
  FunctionFilter& operator=(FunctionFilter&&) noexcept;
  ~FunctionFilter();

  bool keeps(std::string_view name) const;
  /// It matches one of `not_`.
  bool excludes(std::string_view name) const;
  /// No pattern: keeps() is always true.
  bool keeps_all() const;
  /// The patterns of which a name must match one.
  const std::vector<std::string>& only() const;
  /// For messages that nothing matches: " ('[a' is no regular expression: missing ])" for the first pattern of `only`
  /// that is none, with where it is wrong; empty if all are.
  const std::string& complaint() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace karst::choice
