// SPDX-License-Identifier: MIT
// A wait is laid over the lane of its CPU (reader::CpuLane), stretch by stretch, and times are summed up by who ran.
// Calls are looked at afterwards, thread by thread, as who asks may have to rebuild them.
#include "analysis/kept_off.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "columns/selection.h"

namespace karst::analysis {
namespace {

using reader::CpuLane;
using reader::kIdleTask;
using reader::kNoTask;
using reader::ThreadState;

/// A share while it is summed up.
struct Summed {
  CpuShare share;
  std::uint64_t begin = 0, end = 0;  ///< its longest stretch
};

class Summer {
 public:
  explicit Summer(const reader::States& states) : states_(states) {}

  /// The CPU's part in [from, to). Stops where it idles, if `until_idle`; gives where it stopped.
  std::uint64_t add(std::uint16_t cpu, std::uint64_t from, std::uint64_t to, bool until_idle) {
    const CpuLane* const lane = cpu == kNoCpu ? nullptr : states_.cpu(cpu);
    if (lane == nullptr) return to;
    const auto behind = std::upper_bound(lane->begin.begin(), lane->begin.end(), from);
    auto i = static_cast<std::size_t>(behind - lane->begin.begin());
    if (i != 0) --i;
    for (; i < lane->begin.size() && lane->begin[i] < to && stretches_ != kMostStretches; ++i, ++stretches_) {
      const std::uint64_t begin = std::max(from, lane->begin[i]);
      const std::uint64_t until = i + 1 < lane->begin.size() ? lane->begin[i + 1] : states_.source().end_ticks;
      const std::uint64_t end = std::min(to, until);
      if (end <= begin) continue;
      const bool idle = lane->task[i] == kIdleTask && (lane->last[i] == kIdleTask || lane->last[i] == kNoTask);
      if (idle && until_idle) return begin;
      add(*lane, i, begin, end);
    }
    return to;
  }

  std::vector<Summed> take() { return std::move(summed_); }

 private:
  void add(const CpuLane& lane, std::size_t i, std::uint64_t begin, std::uint64_t end) {
    if (lane.task[i] == kNoTask) return;
    CpuShare share;
    share.task = lane.task[i];
    // A CPU that was left to nobody, and that others left, was theirs at some time between.
    share.others =
        lane.mixed[i] != 0 || (share.task == kIdleTask && lane.last[i] != kIdleTask && lane.last[i] != kNoTask);
    if (share.others) share.last = lane.last[i];
    const std::uint64_t key = std::uint64_t{share.task} << 32 | share.last;
    const auto [at, fresh] = places_[share.others].try_emplace(key, summed_.size());
    if (fresh) summed_.push_back({share, begin, begin});
    Summed& of = summed_[at->second];
    of.share.ticks += end - begin;
    if (end - begin > of.end - of.begin) std::tie(of.begin, of.end) = std::pair(begin, end);
  }

  const reader::States& states_;
  std::size_t stretches_ = 0;
  std::vector<Summed> summed_;
  std::unordered_map<std::uint64_t, std::size_t> places_[2];  // by whether there are others
};

/// Where a wait's part for a CPU begins.
std::uint64_t runnable_from(const Wait& wait) { return wait.state == ThreadState::kBlocked ? wait.end : wait.begin; }

std::uint64_t runnable_length(const Wait& wait) {
  switch (wait.state) {
    case ThreadState::kBlocked:
      return wait.runnable;
    case ThreadState::kPreempted:
    case ThreadState::kWoken:
      return wait.end - wait.begin;
    default:
      return 0;
  }
}

std::vector<Summed> sum(const reader::States& states, const Wait& wait, KeptOff& kept) {
  const std::uint64_t from = runnable_from(wait);
  const std::uint64_t to = from + runnable_length(wait);
  const bool left = wait.state == ThreadState::kPreempted;
  kept.cpu = left ? wait.cpu : wait.next_cpu;
  Summer summer(states);
  const std::uint64_t moved = summer.add(kept.cpu, from, to, left && wait.next_cpu != wait.cpu);
  if (moved != to && wait.next_cpu != kNoCpu) {
    summer.add(wait.next_cpu, moved, to, false);
    kept.moved_to = wait.next_cpu;
  }
  std::vector<Summed> all = summer.take();
  std::sort(all.begin(), all.end(), [](const Summed& a, const Summed& b) {
    return std::tuple(b.share.ticks, a.begin) < std::tuple(a.share.ticks, b.begin);
  });
  kept.unknown = to - from;
  for (const Summed& of : all) kept.unknown -= of.share.ticks;
  for (std::size_t i = kMostShares; i < all.size(); ++i) kept.more_ticks += all[i].share.ticks;
  kept.more = all.size() - std::min(all.size(), kMostShares);
  all.resize(std::min(all.size(), kMostShares));
  return all;
}

/// The innermost call for most of [begin, end), by samples; kNoParent: none was.
std::uint32_t mostly_in(const columns::CallColumns& calls, std::uint64_t begin, std::uint64_t end) {
  constexpr std::uint64_t kSamples = 64;
  // Calls of one function count together; the last one stands for them.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> rows;  // how often, which
  const std::uint64_t step = std::max<std::uint64_t>(1, (end - begin) / kSamples);
  std::uint64_t at = begin + step / 2;
  for (std::uint64_t i = 0; i < kSamples && at < end; ++i, at += step) {
    const std::uint32_t row = columns::innermost_at(calls, at);
    const auto same = std::find_if(rows.begin(), rows.end(), [&](const auto& of) {
      return row == of.second || (row != reader::kNoParent && of.second != reader::kNoParent &&
                                  calls.function[row] == calls.function[of.second]);
    });
    if (same == rows.end()) {
      rows.emplace_back(1, row);
    } else {
      ++same->first;
    }
  }
  const auto most =
      std::max_element(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return most == rows.end() ? reader::kNoParent : most->second;
}

/// A share whose call is to be found.
struct Sought {
  const reader::Thread* thread = nullptr;
  std::uint64_t begin = 0, end = 0;
  std::size_t wait = 0, share = 0;
};

}  // namespace

KeptOffFinder::KeptOffFinder(const reader::Trace& trace, CallsOf calls_of)
    : KeptOffFinder(
          trace,
          [threads = std::make_shared<StateThreads>(trace)](std::uint32_t task, std::uint64_t ticks) {
            return threads->thread_of(task, ticks);
          },
          std::move(calls_of)) {}

KeptOffFinder::KeptOffFinder(const reader::Trace& trace, ThreadOf thread_of, CallsOf calls_of)
    : trace_(trace), thread_of_(std::move(thread_of)), calls_of_(std::move(calls_of)) {}

std::vector<KeptOff> KeptOffFinder::of(std::span<const Wait* const> waits) const {
  std::vector<KeptOff> found(waits.size());
  std::vector<Sought> sought;
  for (std::size_t i = 0; i < waits.size(); ++i) {
    KeptOff& kept = found[i];
    for (Summed& of : sum(trace_.states(), *waits[i], kept)) {
      if (!of.share.others) of.share.in.thread = thread_of_(of.share.task, of.begin);
      if (of.share.in.thread != nullptr)
        sought.push_back({of.share.in.thread, of.begin, of.end, i, kept.shares.size()});
      kept.shares.push_back(of.share);
    }
  }
  std::stable_sort(sought.begin(), sought.end(), [](const Sought& a, const Sought& b) {
    return std::less<const reader::Thread*>()(a.thread, b.thread);
  });
  for (std::size_t i = 0; i < sought.size();) {
    const reader::Thread* const thread = sought[i].thread;
    const columns::CallColumns calls = calls_of_(*thread);
    for (; i < sought.size() && sought[i].thread == thread; ++i) {
      const Sought& one = sought[i];
      CallOf& in = found[one.wait].shares[one.share].in;
      in.row = mostly_in(calls, one.begin, one.end);
      if (in.row != reader::kNoParent) in.function = calls.function[in.row];
    }
  }
  return found;
}

const KeptOff& KeptOffFinder::of(const Wait& wait) const {
  const std::array<std::uint64_t, 6> key = {
      wait.begin, wait.end, wait.runnable, static_cast<std::uint64_t>(wait.state), wait.cpu, wait.next_cpu};
  const auto [at, fresh] = known_.try_emplace(key);
  const Wait* const one = &wait;
  if (fresh) at->second = std::move(of(std::span(&one, 1))[0]);
  return at->second;
}

}  // namespace karst::analysis
