// SPDX-License-Identifier: MIT
#include "choice/function_lists.h"

#include <re2/re2.h>
#include <re2/set.h>

#include <algorithm>

#include "format/filter_list.h"

namespace karst::choice {
namespace {

constexpr std::int64_t kMemory = std::int64_t{64} << 20;  // of compiled globs and of the automaton made of them

RE2::Options options() {
  RE2::Options o;
  o.set_log_errors(false);
  o.set_never_capture(true);
  o.set_dot_nl(true);
  o.set_encoding(RE2::Options::EncodingLatin1);  // names and paths are bytes
  o.set_max_mem(kMemory);
  return o;
}

/// A set in brackets, from behind its [ on; `at` moves behind its ].
std::string bracket_regex(std::string_view glob, std::size_t& at) {
  std::string out = "[";
  if (glob[at] == '!' || glob[at] == '^') {
    out += '^';
    ++at;
  }
  for (const std::size_t first = at; glob[at] != ']' || at == first; ++at) {
    const bool escaped = glob[at] == '\\';
    if (escaped) ++at;
    if (escaped || glob[at] != '-' || at == first || glob[at + 1] == ']') {
      out += RE2::QuoteMeta(re2::StringPiece(&glob[at], 1));
    } else {
      out += '-';
    }
  }
  ++at;
  return out + "]";
}

/// Requires that glob_problem() finds none.
std::string glob_regex(std::string_view glob) {
  std::string out;
  for (std::size_t at = 0; at < glob.size();) {
    const char c = glob[at++];
    if (c == '*') {
      out += ".*";
    } else if (c == '?') {
      out += '.';
    } else if (c == '[') {
      out += bracket_regex(glob, at);
    } else {
      const char plain = c == '\\' ? glob[at++] : c;
      out += RE2::QuoteMeta(re2::StringPiece(&plain, 1));
    }
  }
  return out;
}

std::string path_regex(std::string_view glob) {
  std::string regex = glob_regex(glob);
  if (glob.back() == '/') regex += ".*";  // a directory: all below it
  return glob.front() == '/' || glob.front() == '*' ? regex : "(?:.*/)?" + regex;
}

/// `f<int>(char const*) const` is `f<int>` without its parameters. `operator()` keeps its own.
std::string_view without_parameters(std::string_view name) {
  int depth = 0;
  const auto close = name.rfind(')');
  if (close == std::string_view::npos) return name;
  for (std::size_t i = close + 1; i-- > 0;) {
    if (name[i] == ')') ++depth;
    if (name[i] == '(' && --depth == 0)
      return i == 0 || name.substr(0, i).ends_with("operator") ? name : name.substr(0, i);
  }
  return name;
}

/// Many regular expressions at once, anchored at both ends.
class Expressions {
 public:
  Expressions() : set_(options(), RE2::ANCHOR_BOTH) {}

  bool add(const std::string& regex) {
    ++size_;
    return set_.Add(regex, nullptr) >= 0;
  }
  bool compile() { return size_ == 0 || set_.Compile(); }
  bool empty() const { return size_ == 0; }
  bool matches(std::string_view text) const {
    return size_ != 0 && set_.Match(re2::StringPiece(text.data(), text.size()), nullptr);
  }

 private:
  RE2::Set set_;
  std::size_t size_ = 0;
};

}  // namespace

struct GlobSet::Impl {
  Expressions names;
  Expressions paths;
};

GlobSet::GlobSet() : impl_(std::make_unique<Impl>()) {}
GlobSet::GlobSet(GlobSet&&) noexcept = default;
GlobSet& GlobSet::operator=(GlobSet&&) noexcept = default;
GlobSet::~GlobSet() = default;

Result<GlobSet> GlobSet::compile(const std::vector<std::string>& globs) {
  GlobSet set;
  for (const std::string& glob : globs) {
    if (glob.empty()) continue;
    if (const std::string problem = format::glob_problem(glob); !problem.empty())
      return Error{std::string("bad glob \"").append(glob).append("\": ").append(problem)};
    const bool path = format::is_path_glob(glob);
    if (!(path ? set.impl_->paths.add(path_regex(glob)) : set.impl_->names.add(glob_regex(glob))))
      return Error{std::string("the glob \"").append(glob).append("\" cannot be handled; make it simpler")};
  }
  if (!set.impl_->names.compile() || !set.impl_->paths.compile())
    return Error{"the lists of functions are too long to be handled together; shorten them with * and ?"};
  return set;
}

bool GlobSet::empty() const { return impl_->names.empty() && impl_->paths.empty(); }
bool GlobSet::has_paths() const { return !impl_->paths.empty(); }

bool GlobSet::matches(const reader::Function& function) const {
  if (!impl_->names.empty()) {
    const std::string_view shorter = without_parameters(function.name);
    if (impl_->names.matches(function.name)) return true;
    if (shorter.size() != function.name.size() && impl_->names.matches(shorter)) return true;
    if (!function.link_name.empty() && impl_->names.matches(function.link_name)) return true;
  }
  return !function.file.empty() && impl_->paths.matches(function.file);
}

}  // namespace karst::choice
