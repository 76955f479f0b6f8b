// SPDX-License-Identifier: MIT
#include "analysis/call_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "analysis/values.h"

namespace karst::analysis {

CallGroups::CallGroups(const reader::Trace& trace, GroupBy by, std::string argument, const FunctionSet* functions,
                       std::size_t most_values)
    : trace_(trace),
      by_(by),
      argument_(std::move(argument)),
      functions_(functions),
      most_(kRest + 1 + most_values),
      texts_{"<others>",
             by == GroupBy::kRequest ? "<no request>"
             : by == GroupBy::kFrame ? "<no frame>"
                                     : "<not noted>",
             by == GroupBy::kRequest ? "<other requests>"
             : by == GroupBy::kFrame ? "<other frames>"
                                     : "<other values>"} {}

bool CallGroups::is_asked_for(const reader::Thread& thread, std::uint32_t function) const {
  if (functions_ != nullptr) return functions_->contains(thread.process, function);
  return by_ != GroupBy::kReturned || has_returned(trace_.function(trace_.processes()[thread.process], function));
}

std::uint32_t CallGroups::group_of(std::string_view text) {
  std::string key(text);
  if (const auto at = known_.find(key); at != known_.end()) return at->second;
  if (texts_.size() == most_) return kRest;
  const auto fresh = static_cast<std::uint32_t>(texts_.size());
  texts_.emplace_back(text);
  known_.emplace(std::move(key), fresh);
  return fresh;
}

void CallGroups::by_values(const reader::Thread& thread, const reader::Calls& calls) {
  const CallValues noted(calls);
  for (std::uint32_t row = 0; row < calls.size(); ++row) {
    if (!is_asked_for(thread, calls.function[row])) continue;
    group_[row] = kNone;
    const reader::Note* note = by_ == GroupBy::kReturned ? noted.returned(row) : noted.arguments(row);
    if (note == nullptr) continue;
    const std::vector<Value> values = values_in(trace_, thread, calls, *note);
    if (by_ == GroupBy::kReturned) {
      if (!values.empty()) group_[row] = group_of(values_text(values));
      continue;
    }
    for (const Value& value : values)
      if (value.name == argument_) group_[row] = group_of(value.text);
  }
}

void CallGroups::by_requests(const reader::Thread& thread, const reader::Calls& calls) {
  auto work = work_.begin();
  std::uint32_t group = kNone;
  bool known = false;  // `group` is that of `work`
  for (std::uint32_t row = 0; row < calls.size(); ++row) {
    const std::uint64_t begin = calls.begin[row];
    for (; work != work_.end() && work->range.end <= begin; ++work) known = false;
    if (!is_asked_for(thread, calls.function[row])) continue;
    group_[row] = kNone;
    if (work == work_.end() || work->range.begin > begin) continue;
    if (!std::exchange(known, true)) group = group_of(fmt::to_string(work->id));
    group_[row] = group;
  }
}

const columns::Scope::Part& CallGroups::of(const reader::Thread& thread, const reader::Calls& calls,
                                           const columns::Scope::Part& part) {
  group_.assign(calls.size(), kOthers);
  if (by_ == GroupBy::kRequest || by_ == GroupBy::kFrame) {
    by_requests(thread, calls);
  } else {
    by_values(thread, calls);
  }
  while (itself_.size() < texts_.size()) itself_.push_back(static_cast<std::uint32_t>(itself_.size()));
  columns_ = *part.thread;
  columns_.calls.function = group_;
  part_ = part;
  part_.thread = &columns_;
  part_.function_of = itself_;
  return part_;
}

}  // namespace karst::analysis
