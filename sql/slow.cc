// SPDX-License-Identifier: MIT
#include "sql/slow.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <numeric>
#include <utility>

#include "answers/slow_search.h"

namespace karst::sql {
namespace {

/// The calls of one thread at a time.
class CallsOfOne {
 public:
  explicit CallsOfOne(const Source& source) : source_(source) {}
  const reader::Calls& of(const reader::Thread& thread) {
    if (thread_ == &thread) return calls_;
    thread_ = nullptr;  // where that fails
    calls_ = source_.rebuild(thread, std::move(calls_));
    source_.choose(thread, calls_);
    thread_ = &thread;
    return calls_;
  }

 private:
  const Source& source_;
  const reader::Thread* thread_ = nullptr;
  reader::Calls calls_;
};

}  // namespace

Slow::Slow(const Source& of) : source(of), times(of.trace), finder(of.trace, nullptr, 0, analysis::kMostOutliers) {}

void Slow::chosen(const reader::Thread& thread, const std::shared_ptr<const reader::Calls>& of) {
  finder.learn(thread, *of);
}

void Slow::finish() {
  source.work->total += source.events();
  analysis::LeftCallFinder left_calls(nullptr);
  CallsOfOne calls_of(source);
  for (const reader::Thread* thread : source.threads) {
    const reader::Calls& of = calls_of.of(*thread);
    finder.find(*thread, of);
    left_calls.add(*thread, columns::CallColumns(of));
  }
  std::vector<analysis::OutlierGroup> groups = analysis::group_outliers(finder.take(), false);
  answers::SlowSearch search(
      source.trace, std::nullopt,
      [&calls_of](const reader::Thread& thread) -> const reader::Calls& { return calls_of.of(thread); }, false, finder);
  analysis::put_idle_last(groups, source.trace, [&](const analysis::Outlier& of) { return search.wait_of(of); });
  left = search.left_beside(groups, left_calls);
  calls.resize(groups.size());
  std::vector<std::size_t> by_thread(groups.size());
  std::iota(by_thread.begin(), by_thread.end(), 0);
  std::stable_sort(by_thread.begin(), by_thread.end(), [&groups](std::size_t a, std::size_t b) {
    return std::less<>()(groups[a].worst.call.thread, groups[b].worst.call.thread);
  });
  for (const std::size_t at : by_thread) calls[at] = search.tell(groups[at]);  // so each is rebuilt once
  rare = search.rare_beside(groups);
}

}  // namespace karst::sql
