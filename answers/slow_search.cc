// SPDX-License-Identifier: MIT
#include "answers/slow_search.h"

#include <algorithm>
#include <utility>

#include "analysis/selection.h"
#include "columns/scope.h"
#include "reader/trace.h"

namespace karst::answers {

SlowSearch::SlowSearch(const reader::Trace& trace, const std::optional<columns::TickRange>& asked, CallsOf calls_of,
                       bool follow, analysis::OutlierFinder& finder)
    : trace_(trace),
      follow_(follow),
      finder_(finder),
      lock_waits_(trace_),
      calls_of_(std::move(calls_of)),
      teller_(trace_, [this](const reader::Thread& of) { return columns::CallColumns(all_calls_of(of)); }) {
  if (!trace_.states().empty()) waits_ = std::make_unique<analysis::Waits>(trace_, 0);
  length_ = asked.value_or(columns::TickRange{}).clip(analysis::first_ticks(trace_), analysis::last_ticks(trace_));
}

const analysis::Wait* SlowSearch::wait_of(const analysis::Outlier& outlier) const {
  if (waits_ == nullptr) return nullptr;
  const std::uint64_t begin = outlier.call.begin;
  const analysis::Wait* wait = analysis::longest_wait(waits_->of(*outlier.call.thread), begin, outlier.call.end);
  return wait != nullptr && wait->length() * 10 >= outlier.excess() ? wait : nullptr;
}

SlowCall SlowSearch::tell(const analysis::OutlierGroup& group) {
  const analysis::Outlier& outlier = group.worst;
  const reader::Thread& thread = *outlier.call.thread;
  const reader::Calls& calls = calls_of_(thread);
  const analysis::CallValues& values = values_of(thread, calls);
  SlowCall told{.of = group, .noted = noted(thread, calls, values, outlier.call.row)};
  for (const std::uint32_t row : finder_.path_below(thread, calls, outlier.call.row))
    told.path.push_back({row, calls.function[row], calls.time(row), noted(thread, calls, values, row)});
  if (const analysis::Wait* wait = wait_of(outlier); wait != nullptr) {
    told.wait = teller_.tell(*wait);
    if (follow_) told.chain = chain(thread, *wait);
  } else if (const auto lock = follow_ ? lock_wait_of(outlier) : std::nullopt; lock) {
    told.chain = chain(thread, *lock);
  }
  return told;
}

std::vector<RareFunction> SlowSearch::rare_beside(const std::vector<analysis::OutlierGroup>& groups) const {
  constexpr std::uint64_t kOfExcess = 10;
  constexpr std::uint64_t kOfAll = 100;
  constexpr std::size_t kMost = 3;
  const std::uint64_t least = groups.empty() ? length_ / kOfAll : groups.front().worst.excess() / kOfExcess;
  std::vector<RareFunction> all;
  for (const analysis::RareFunction& function : finder_.rare(std::max<std::uint64_t>(least, 1), kMost)) {
    all.push_back({function, std::nullopt});
    if (const analysis::Wait* wait = own_wait_of(function.longest); wait != nullptr)
      all.back().wait = teller_.tell(*wait);
  }
  return all;
}

std::vector<LeftFunction> SlowSearch::left_beside(const std::vector<analysis::OutlierGroup>& groups,
                                                  analysis::LeftCallFinder& finder) const {
  std::vector<LeftFunction> all;
  for (const analysis::LeftFunction& function :
       finder.take(analysis::least_left_excess(groups, length_), analysis::kMostLeftFunctions)) {
    all.push_back({function, std::nullopt});
    if (const analysis::Wait* wait = wait_of(function.longest); wait != nullptr) all.back().wait = teller_.tell(*wait);
  }
  return all;
}

/// A longer one than the call by itself was a callee's.
const analysis::Wait* SlowSearch::own_wait_of(const analysis::Outlier& call) const {
  const analysis::Wait* wait = wait_of(call);
  return wait != nullptr && wait->length() <= call.excess() + call.excess() / 16 ? wait : nullptr;
}

/// A wait for a lock, whose thread may have run now and then meanwhile to try again.
std::optional<analysis::Wait> SlowSearch::lock_wait_of(const analysis::Outlier& outlier) {
  const analysis::LockWait* lock = lock_waits_.longest(*outlier.call.thread, outlier.call.begin, outlier.call.end);
  if (lock == nullptr || lock->open || lock->duration * 10 < outlier.excess()) return std::nullopt;
  analysis::Wait wait;
  wait.begin = lock->begin;
  wait.end = lock->begin + lock->duration;
  return wait;
}

std::vector<words::ToldLink> SlowSearch::chain(const reader::Thread& thread, const analysis::Wait& wait) {
  std::vector<words::ToldLink> links;
  for (analysis::ChainLink& link :
       analysis::follow_waits(waits_.get(), lock_waits_, &teller_.kept_off(), thread, wait,
                              [this](const reader::Thread& of) { return columns::CallColumns(all_calls_of(of)); }))
    links.push_back(teller_.tell(std::move(link)));
  return links;
}

// What others did meanwhile is told whatever the filter leaves of it.
const reader::Calls& SlowSearch::all_calls_of(const reader::Thread& thread) {
  if (all_calls_thread_ != &thread) all_calls_ = reader::rebuild_calls(trace_, thread, std::move(all_calls_));
  all_calls_thread_ = &thread;
  return all_calls_;
}

// Slow calls of one thread mostly follow each other.
const analysis::CallValues& SlowSearch::values_of(const reader::Thread& thread, const reader::Calls& calls) {
  if (!values_ || values_thread_ != &thread || values_calls_ != &calls) values_.emplace(calls);
  values_thread_ = &thread;
  values_calls_ = &calls;
  return *values_;
}

NotedValues SlowSearch::noted(const reader::Thread& thread, const reader::Calls& calls,
                              const analysis::CallValues& values, std::uint32_t row) const {
  const auto decoded = [&](const reader::Note* note) {
    return note == nullptr ? std::nullopt : std::optional(analysis::values_in(trace_, thread, calls, *note));
  };
  return {decoded(values.arguments(row)), decoded(values.returned(row))};
}

}  // namespace karst::answers
