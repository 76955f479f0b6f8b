#include "symbols/function_filter.h"

#include <re2/re2.h>

#include <algorithm>

namespace karst::symbols {

struct FunctionFilter::Impl {
  std::vector<std::unique_ptr<RE2>> only;
  std::vector<std::unique_ptr<RE2>> not_;
  std::vector<std::string> only_patterns;
};

namespace {

Status add_patterns(const std::vector<std::string>& patterns, std::vector<std::unique_ptr<RE2>>& to) {
  RE2::Options options;
  options.set_log_errors(false);
  options.set_never_capture(true);
  for (const std::string& pattern : patterns) {
    auto regex = std::make_unique<RE2>(pattern, options);
    if (!regex->ok()) {
      std::string message = "bad regular expression \"" + pattern + "\": " + regex->error();
      // RE2 gives the piece at fault, not its offset; where that is found once, the offset is sure.
      const std::string& piece = regex->error_arg();
      if (auto at = pattern.find(piece); !piece.empty() && piece != pattern && at != std::string::npos &&
                                         pattern.find(piece, at + 1) == std::string::npos) {
        message += " (at character " + std::to_string(at + 1) + ")";
      }
      return Error{message + "; put a \\ before a character such as ( [ * + to mean the character itself"};
    }
    to.push_back(std::move(regex));
  }
  return Unit{};
}

bool any_matches(const std::vector<std::unique_ptr<RE2>>& regexes, std::string_view name) {
  re2::StringPiece text(name.data(), name.size());
  return std::any_of(regexes.begin(), regexes.end(),
                     [&](const auto& regex) { return RE2::PartialMatch(text, *regex); });
}

}  // namespace

FunctionFilter::FunctionFilter() : impl_(std::make_unique<Impl>()) {}
FunctionFilter::FunctionFilter(FunctionFilter&&) noexcept = default;
FunctionFilter& FunctionFilter::operator=(FunctionFilter&&) noexcept = default;
FunctionFilter::~FunctionFilter() = default;

Result<FunctionFilter> FunctionFilter::compile(const std::vector<std::string>& only,
                                               const std::vector<std::string>& not_) {
  FunctionFilter filter;
  if (auto status = add_patterns(only, filter.impl_->only); !status) return status.error();
  if (auto status = add_patterns(not_, filter.impl_->not_); !status) return status.error();
  filter.impl_->only_patterns = only;
  return filter;
}

bool FunctionFilter::keeps(std::string_view name) const {
  if (!impl_->only.empty() && !any_matches(impl_->only, name)) return false;
  return !any_matches(impl_->not_, name);
}

bool FunctionFilter::excludes(std::string_view name) const { return any_matches(impl_->not_, name); }

bool FunctionFilter::keeps_all() const { return impl_->only.empty() && impl_->not_.empty(); }

const std::vector<std::string>& FunctionFilter::only() const { return impl_->only_patterns; }

}  // namespace karst::symbols
