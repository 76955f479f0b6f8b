// SPDX-License-Identifier: MIT
// Medians need all durations: the first pass keeps them by function, the second compares. No outlier is inside another,
// so to go down each one's path takes a look at each call at most once or twice.
#include "analysis/outliers.h"

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "analysis/function_key.h"
#include "analysis/syscall_names.h"
#include "base/plain_name.h"
#include "columns/left.h"
#include "columns/scope.h"
#include "columns/table.h"
#include "format/note.h"
#include "reader/column.h"

namespace karst::analysis {
namespace {

constexpr std::size_t kLeastCalls = 10;
constexpr std::uint64_t kTimes = 3;
constexpr std::size_t kLongestChain = 8;
constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

bool greater(const Outlier& a, const Outlier& b) {
  return std::tuple(b.excess(), a.call.begin, a.call.thread, a.call.row) <
         std::tuple(a.excess(), b.call.begin, b.call.thread, b.call.row);
}

template <typename Columns>
std::uint64_t end_of(const Columns& calls, std::uint32_t row) {
  return calls.begin[row] + calls.duration[row];
}

std::uint64_t overlap(std::uint64_t begin, std::uint64_t end, std::uint64_t from, std::uint64_t to) {
  begin = std::max(begin, from);
  end = std::min(end, to);
  return end > begin ? end - begin : 0;
}

/// Such a function's calls take as long as they are told to, or until there is work.
bool idles(const reader::Function& function) {
  static constexpr std::string_view kNames[] = {"usleep",
                                                "nanosleep",
                                                "clock_nanosleep",
                                                "sleep",
                                                "thrd_sleep",
                                                "poll",
                                                "ppoll",
                                                "select",
                                                "pselect",
                                                "epoll_wait",
                                                "epoll_pwait",
                                                "epoll_pwait2",
                                                "pause",
                                                "sigsuspend",
                                                "sigwait",
                                                "sigwaitinfo",
                                                "sigtimedwait",
                                                "std::this_thread::sleep_for",
                                                "std::this_thread::sleep_until",
                                                "wait for condition",
                                                "wait for semaphore"};
  return (function.note && function.name == format::kSuspended) ||
         std::find(std::begin(kNames), std::end(kNames), plain_name(function.name)) != std::end(kNames);
}

bool waits_for_work(const Wait& wait) {
  static constexpr std::string_view kCalls[] = {
      "poll",        "ppoll",        "select",       "pselect6",        "epoll_wait",
      "epoll_pwait", "epoll_pwait2", "io_getevents", "rt_sigtimedwait", "pause"};
  return wait.state == reader::ThreadState::kBlocked && wait.syscall != 0 &&
         std::find(std::begin(kCalls), std::end(kCalls), syscall_name(wait.syscall - 1)) != std::end(kCalls);
}

/// So little may be tracing's own, whose cost is a mean: less than one recorded call costs, or than that may be off by,
/// or a quarter of what all within it do.
bool is_within_cost(const columns::CallColumns& calls, std::uint32_t row, std::uint64_t excess, std::uint32_t off_by) {
  if (calls.taken.empty()) return false;
  constexpr std::uint64_t kQuarters = 4;
  return excess < std::max(calls.call_cost, off_by) / format::kCallCostUnit || excess < calls.cost(row) / kQuarters;
}

}  // namespace

struct OutlierFinder::Impl {
  const reader::Trace& trace;
  const FunctionSet* functions;
  const std::uint64_t min_ticks;
  const std::size_t most;

  std::unordered_map<std::string, std::uint32_t> number_of_key;
  std::uint32_t process = kNone;                                     // whose ids `number_of_id` maps
  std::vector<std::uint32_t> number_of_id;                           // of those in its table
  std::unordered_map<std::uint32_t, std::uint32_t> number_of_other;  // an event may name any of 8 million
  std::vector<reader::Column<std::uint64_t>> durations;              // by number, until settled
  std::vector<std::uint64_t> usual;                                  // by number; 0: not known
  bool settled = false;
  std::vector<Outlier> heap;                             // its top is the least
  std::unordered_map<std::uint32_t, RareFunction> rare;  // by number
  std::uint64_t found = 0;

  std::uint32_t number(std::uint32_t of_process, std::uint32_t id) {
    if (process != of_process) {
      process = of_process;
      number_of_id.assign(trace.processes()[process].functions.size(), kNone);
      number_of_other.clear();
    }
    std::uint32_t& known =
        id < number_of_id.size() ? number_of_id[id] : number_of_other.try_emplace(id, kNone).first->second;
    if (known == kNone) {
      const auto [at, fresh] =
          number_of_key.try_emplace(function_key(trace, process, id), static_cast<std::uint32_t>(durations.size()));
      if (fresh) durations.emplace_back();
      known = at->second;
    }
    return known;
  }

  void settle() {
    if (settled) return;
    settled = true;
    usual.resize(durations.size());
    for (std::size_t i = 0; i < durations.size(); ++i) {
      const reader::Column<std::uint64_t> of = std::move(durations[i]);
      if (of.size() >= kLeastCalls)
        usual[i] = std::max<std::uint64_t>(columns::percentile({of.data(), of.size()}, 50), 1);
    }
  }

  std::uint64_t usual_of(std::uint32_t of_process, std::uint32_t id) {
    const std::uint32_t of = number(of_process, id);
    return of < usual.size() ? usual[of] : 0;
  }

  /// Calls `use(row)` for those on the path below `row`.
  template <typename Use>
  void descend(const reader::Thread& thread, const columns::CallColumns& calls, std::uint32_t row, Use&& use) {
    const std::uint64_t whole = usual_of(thread.process, calls.function[row]);
    const auto excess = [&](std::uint32_t of) {
      std::uint64_t usually = usual_of(thread.process, calls.function[of]);
      if (usually > whole) usually = 0;
      return calls.time(of) > usually ? calls.time(of) - usually : 0;
    };
    const std::uint64_t least = (excess(row) + 1) / 2;
    const auto count = static_cast<std::uint32_t>(calls.size());
    for (std::uint32_t at = row;;) {
      std::uint32_t best = reader::kNoParent;
      for (std::uint32_t r = at + 1; r < count && calls.begin[r] < end_of(calls, at);
           r = columns::row_behind(calls, r)) {
        if (calls.parent[r] != at) continue;
        if (best == reader::kNoParent ||
            std::pair(excess(r), calls.time(r)) > std::pair(excess(best), calls.time(best)))
          best = r;
      }
      if (best == reader::kNoParent || excess(best) < least) return;
      use(best);
      at = best;
    }
  }

  void see_rare(const reader::Thread& thread, const columns::CallColumns& calls, std::uint32_t row,
                std::uint32_t number) {
    if (calls.parent[row] == reader::kNoParent) return;
    const std::uint64_t duration = calls.time(row);
    std::uint64_t in_callees = 0;
    const auto count = static_cast<std::uint32_t>(calls.size());
    for (std::uint32_t r = row + 1; r < count && calls.begin[r] < end_of(calls, row); r = columns::row_behind(calls, r))
      if (calls.parent[r] == row) in_callees += calls.time(r);
    RareFunction& of = rare[number];
    const Outlier call{{&thread, row, duration, calls.begin[row], calls.end(row)},
                       calls.function[row],
                       number,
                       number,
                       std::min(in_callees, duration)};
    if (of.calls++ == 0 || greater(call, of.longest)) of.longest = call;
  }

  /// Calls `use(row, number)` for each complete call that is inside no other of its function; when it returns true,
  /// nothing inside that call is looked at.
  template <typename Use>
  void outermost(const reader::Thread& thread, const columns::CallColumns& calls, Use&& use) {
    struct Frame {
      std::uint32_t row;
      std::uint32_t number;
    };
    std::vector<Frame> stack;
    std::vector<std::uint32_t> active;  // by number: calls on the stack
    std::uint64_t skip_until = 0;
    const auto count = static_cast<std::uint32_t>(calls.size());
    for (std::uint32_t row = 0; row < count; ++row) {
      while (!stack.empty() && stack.back().row != calls.parent[row]) {
        --active[stack.back().number];
        stack.pop_back();
      }
      const std::uint32_t of = number(thread.process, calls.function[row]);
      if (of >= active.size()) active.resize(durations.size());
      const bool complete = !reader::call_is_open(calls.marks[row]) && (calls.marks[row] & reader::kCallInherited) == 0;
      if (active[of]++ == 0 && complete && calls.begin[row] >= skip_until && use(row, of))
        skip_until = end_of(calls, row);
      stack.push_back({row, of});
    }
  }
};

OutlierFinder::OutlierFinder(const reader::Trace& trace, const FunctionSet* functions, std::uint64_t min_ticks,
                             std::size_t most)
    : impl_(std::make_unique<Impl>(
          Impl{trace, functions, min_ticks, most, {}, kNone, {}, {}, {}, {}, false, {}, {}, 0})) {}

OutlierFinder::~OutlierFinder() = default;

void OutlierFinder::learn(const reader::Thread& thread, const columns::CallColumns& calls) {
  impl_->outermost(thread, calls, [&](std::uint32_t row, std::uint32_t number) {
    reader::Column<std::uint64_t>& of = impl_->durations[number];
    if (of.size() == of.capacity()) of.reserve(of.size() + std::max<std::size_t>(64, of.size() / 2));
    of.push_back(calls.time(row));
    return false;
  });
}

void OutlierFinder::find(const reader::Thread& thread, const columns::CallColumns& calls) {
  Impl& i = *impl_;
  i.settle();
  i.outermost(thread, calls, [&](std::uint32_t row, std::uint32_t number) {
    const std::uint64_t usual = number < i.usual.size() ? i.usual[number] : 0;
    const std::uint64_t duration = calls.time(row);
    if (duration / kTimes < usual || duration < i.min_ticks) return false;
    if (i.functions != nullptr && !i.functions->contains(thread.process, calls.function[row])) return false;
    if (usual == 0) {
      i.see_rare(thread, calls, row, number);
      return false;
    }
    if (is_within_cost(calls, row, duration - usual, i.trace.processes()[thread.process].cost.off_by)) return false;
    ++i.found;
    Outlier outlier{
        {&thread, row, duration, calls.begin[row], calls.end(row)}, calls.function[row], number, number, usual};
    if (i.heap.size() == i.most) {
      if (i.most == 0 || !greater(outlier, i.heap.front())) return true;
      std::pop_heap(i.heap.begin(), i.heap.end(), greater);
      i.heap.pop_back();
    }
    i.descend(thread, calls, row,
              [&](std::uint32_t below) { outlier.cause = i.number(thread.process, calls.function[below]); });
    i.heap.push_back(outlier);
    std::push_heap(i.heap.begin(), i.heap.end(), greater);
    return true;
  });
}

std::vector<Outlier> OutlierFinder::take() {
  std::sort(impl_->heap.begin(), impl_->heap.end(), greater);
  return std::move(impl_->heap);
}

std::vector<RareFunction> OutlierFinder::rare(std::uint64_t least, std::size_t most) const {
  std::vector<RareFunction> found, idle;
  for (const auto& [number, function] : impl_->rare) {
    if (function.longest.excess() < least) continue;
    const reader::Process& process = impl_->trace.processes()[function.longest.call.thread->process];
    (idles(impl_->trace.function(process, function.longest.function)) ? idle : found).push_back(function);
  }
  if (found.empty()) found = std::move(idle);
  std::sort(found.begin(), found.end(),
            [](const RareFunction& a, const RareFunction& b) { return greater(a.longest, b.longest); });
  if (found.size() > most) found.resize(most);
  return found;
}

bool OutlierFinder::knows_any() {
  impl_->settle();
  return std::any_of(impl_->usual.begin(), impl_->usual.end(), [](std::uint64_t usual) { return usual != 0; });
}

std::uint64_t OutlierFinder::found() const { return impl_->found; }

std::uint64_t OutlierFinder::usual_of(std::uint32_t process, std::uint32_t id) {
  impl_->settle();
  return impl_->usual_of(process, id);
}

std::vector<std::uint32_t> OutlierFinder::path_below(const reader::Thread& thread, const columns::CallColumns& calls,
                                                     std::uint32_t row) {
  impl_->settle();
  std::vector<std::uint32_t> path;
  impl_->descend(thread, calls, row, [&](std::uint32_t below) { path.push_back(below); });
  return path;
}

reader::StateTimes states_of(const Outlier& outlier, const reader::ThreadStates& states) {
  const std::uint64_t recorded = outlier.call.end - outlier.call.begin;
  reader::StateTimes times = states.between(outlier.call.begin, outlier.call.end);
  columns::take_cost_out(times, recorded - std::min(outlier.call.duration, recorded));
  if (static_cast<std::int64_t>(times.running) < 0) times.running = 0;  // the cost is an estimate
  return times;
}

const Wait* longest_wait(const std::vector<Wait>& waits, std::uint64_t begin, std::uint64_t end) {
  const Wait* longest = nullptr;
  std::uint64_t most = 0;
  for (const Wait& wait : waits) {
    if (wait.begin >= end) break;
    const std::uint64_t inside = overlap(wait.begin, wait.begin + wait.length(), begin, end);
    if (inside <= most) continue;
    most = inside;
    longest = &wait;
  }
  return longest;
}

std::vector<OutlierGroup> group_outliers(const std::vector<Outlier>& outliers, bool each) {
  std::vector<OutlierGroup> groups;
  std::unordered_map<std::uint64_t, std::size_t> group_of;
  for (const Outlier& outlier : outliers) {
    const std::uint64_t key = std::uint64_t{outlier.number} << 32 | outlier.cause;
    const auto [at, fresh] = group_of.try_emplace(key, groups.size());
    if (fresh || each) groups.push_back({outlier, 0, 0});
    OutlierGroup& of = groups[each ? groups.size() - 1 : at->second];
    ++of.calls;
    of.duration += outlier.call.duration;
  }
  return groups;
}

void put_idle_last(std::vector<OutlierGroup>& groups, const reader::Trace& trace, const WaitOf& wait_of) {
  const auto is_idle = [&](const OutlierGroup& group) {
    const Outlier& worst = group.worst;
    if (idles(trace.function(trace.processes()[worst.call.thread->process], worst.function))) return true;
    if (worst.cause != worst.number) return false;
    const Wait* const wait = wait_of(worst);
    return wait != nullptr && waits_for_work(*wait) && wait->length() / 9 >= worst.excess() / 10;
  };
  std::stable_partition(groups.begin(), groups.end(), [&](const OutlierGroup& group) { return !is_idle(group); });
}

namespace {

/// Who had the CPU that was waited for in `wait`, or in the end of it; without a thread if nobody of the trace had it
/// for half of that time.
ChainLink who_had_cpu(const KeptOffFinder& finder, const Wait& wait) {
  ChainLink link;
  const bool blocked = wait.state == reader::ThreadState::kBlocked;
  link.begin = blocked ? wait.end : wait.begin;
  link.end = wait.begin + wait.length();
  const KeptOff& kept = finder.of(wait);
  if (!kept.empty() && kept.shares[0].ticks >= (link.end - link.begin) / 2) link.thread = kept.shares[0].in.thread;
  return link;
}

/// Who ended `wait`, of `waiter`, or had the lock; without a thread if that is not known.
ChainLink who_ended(LockWaitFinder& locks, const reader::Thread& waiter, const Wait& wait) {
  ChainLink link;
  link.begin = wait.begin;
  link.end = wait.end;
  link.thread = wait.waker.thread;
  if (link.thread != nullptr) return link;
  const LockWait* const lock = locks.longest(waiter, wait.begin, wait.end);
  if (lock != nullptr && lock->duration >= (wait.end - wait.begin) / 2) link.thread = locks.holder(*lock);
  return link;
}

bool is_for_cpu(const Wait& wait) {
  if (wait.state == reader::ThreadState::kBlocked) return wait.runnable > wait.end - wait.begin;
  return wait.state == reader::ThreadState::kPreempted || wait.state == reader::ThreadState::kWoken;
}

}  // namespace

std::vector<ChainLink> follow_waits(const Waits* waits, LockWaitFinder& locks, const KeptOffFinder* kept_off,
                                    const reader::Thread& waiter, const Wait& wait, const CallsOf& calls_of) {
  std::vector<ChainLink> chain;
  Wait at = wait;
  const reader::Thread* waits_now = &waiter;
  while (chain.size() != kLongestChain) {
    const bool for_cpu = kept_off != nullptr && is_for_cpu(at);
    if (!for_cpu && at.state != reader::ThreadState::kBlocked) break;
    ChainLink link = for_cpu ? who_had_cpu(*kept_off, at) : who_ended(locks, *waits_now, at);
    if (link.thread == nullptr || link.thread == waits_now || link.end <= link.begin) break;
    const std::uint64_t window = link.end - link.begin;
    const columns::CallColumns calls = calls_of(*link.thread);
    // From the outermost call on, into the one that has most of the window.
    const auto first = static_cast<std::uint32_t>(std::lower_bound(calls.begin.begin(), calls.begin.end(), link.begin) -
                                                  calls.begin.begin());
    std::vector<std::uint32_t> open;  // at the window's begin, outermost first
    for (std::uint32_t row = columns::innermost_at(calls, link.begin); row != reader::kNoParent;
         row = calls.parent[row])
      open.insert(open.begin(), row);
    std::uint32_t parent = reader::kNoParent;
    for (std::size_t level = 0;; ++level) {
      std::uint32_t best = reader::kNoParent;
      std::uint64_t most = 0;
      const auto consider = [&](std::uint32_t row) {
        const std::uint64_t inside = overlap(calls.begin[row], end_of(calls, row), link.begin, link.end);
        if (calls.parent[row] != parent || inside <= most) return;
        most = inside;
        best = row;
      };
      if (level < open.size()) consider(open[level]);
      for (std::uint32_t row = first; row < calls.size() && calls.begin[row] < link.end; ++row) consider(row);
      if (best == reader::kNoParent || most * 2 < window) break;
      link.functions.push_back(calls.function[best]);
      parent = best;
    }
    const Wait* const own = waits == nullptr ? nullptr : longest_wait(waits->of(*link.thread), link.begin, link.end);
    if (own != nullptr) {
      link.wait = *own;
      link.waited = overlap(own->begin, own->begin + own->length(), link.begin, link.end) * 10 >= window * 3;
    }
    chain.push_back(link);
    if (!link.waited) break;
    at = link.wait;
    waits_now = link.thread;
    if (kept_off != nullptr && is_for_cpu(at)) continue;
    // Its part in the window is what the first one waited for.
    at.begin = std::max(at.begin, link.begin);
    at.end = std::min(at.end, link.end);
    if (at.end <= at.begin) break;
  }
  return chain;
}

}  // namespace karst::analysis
