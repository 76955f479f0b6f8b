// SPDX-License-Identifier: MIT
#include "choice/function_filter.h"

#include <re2/re2.h>

#include <algorithm>

#include "base/plain_name.h"

namespace karst::choice {
namespace {

constexpr std::string_view kAnyCase = "(?i)";

struct Pattern {
  std::string text;                 // in small letters if `any_case`
  bool any_case;                    // it began with (?i)
  std::unique_ptr<RE2> expression;  // null: it is none
};

std::string in_small_letters(std::string_view text) {
  std::string small(text);
  for (char& c : small)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return small;
}

/// What is wrong with it, and where.
std::string complaint_of(const std::string& pattern, const RE2& expression) {
  // RE2 gives the piece at fault, not its offset; where that is found once, the offset is sure.
  const std::string& piece = expression.error_arg();
  const auto at = pattern.find(piece);
  const bool is_sure =
      !piece.empty() && piece != pattern && at != std::string::npos && pattern.find(piece, at + 1) == std::string::npos;
  return " ('" + pattern + "' is no regular expression: " + expression.error() +
         (is_sure ? " at character " + std::to_string(at + 1) : "") + ")";
}

std::vector<Pattern> patterns_of(const std::vector<std::string>& texts, std::string& complaint) {
  RE2::Options options;
  options.set_log_errors(false);
  options.set_never_capture(true);
  std::vector<Pattern> patterns;
  for (const std::string& text : texts) {
    auto expression = std::make_unique<RE2>(text, options);
    if (!expression->ok()) {
      if (complaint.empty()) complaint = complaint_of(text, *expression);
      expression.reset();
    }
    const bool any_case = text.starts_with(kAnyCase);
    patterns.push_back(
        {any_case ? in_small_letters(text.substr(kAnyCase.size())) : text, any_case, std::move(expression)});
  }
  return patterns;
}

/// The last parts of the name as tables show it.
bool is_shown_as(std::string_view name, std::string_view pattern) {
  if (pattern.find("::") == std::string_view::npos) return false;  // a single part is in the name as it stands
  const std::string plain = plain_name(name);
  if (!plain.ends_with(pattern)) return false;
  const std::string_view scopes = std::string_view(plain).substr(0, plain.size() - pattern.size());
  return scopes.empty() || scopes.ends_with("::");
}

bool is_text_of(const Pattern& pattern, std::string_view name) {
  const std::string small = pattern.any_case ? in_small_letters(name) : std::string();
  if (pattern.any_case) name = small;
  return name.find(pattern.text) != std::string_view::npos || is_shown_as(name, pattern.text);
}

bool any_matches(const std::vector<Pattern>& patterns, std::string_view name) {
  const re2::StringPiece text(name.data(), name.size());
  return std::any_of(patterns.begin(), patterns.end(), [&](const Pattern& pattern) {
    return (pattern.expression != nullptr && RE2::PartialMatch(text, *pattern.expression)) || is_text_of(pattern, name);
  });
}

}  // namespace

struct FunctionFilter::Impl {
  std::vector<std::string> texts;
  std::vector<Pattern> only;
  std::vector<Pattern> not_;
  std::string complaint;
};

FunctionFilter::FunctionFilter() : impl_(std::make_unique<Impl>()) {}
FunctionFilter::FunctionFilter(const std::vector<std::string>& only, const std::vector<std::string>& not_)
    : FunctionFilter() {
  std::string unused;
  impl_->texts = only;
  impl_->only = patterns_of(only, impl_->complaint);
  impl_->not_ = patterns_of(not_, unused);
}
FunctionFilter::FunctionFilter(FunctionFilter&&) noexcept = default;
FunctionFilter& FunctionFilter::operator=(FunctionFilter&&) noexcept = default;
FunctionFilter::~FunctionFilter() = default;

bool FunctionFilter::keeps(std::string_view name) const {
  if (!impl_->only.empty() && !any_matches(impl_->only, name)) return false;
  return !any_matches(impl_->not_, name);
}

bool FunctionFilter::excludes(std::string_view name) const { return any_matches(impl_->not_, name); }

bool FunctionFilter::keeps_all() const { return impl_->only.empty() && impl_->not_.empty(); }

const std::vector<std::string>& FunctionFilter::only() const { return impl_->texts; }

const std::string& FunctionFilter::complaint() const { return impl_->complaint; }

}  // namespace karst::choice
