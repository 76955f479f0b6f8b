// SPDX-License-Identifier: MIT
#include "reader/states.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "reader/state_walk.h"

namespace karst::reader {
namespace {

using format::StateRecord;

/// Adds a state to a thread's columns; one that lasted no time gives way to the next.
void push(ThreadStates& to, std::uint64_t begin, const StateNow& now) {
  std::size_t n = to.size();
  if (n != 0 && to.begin[n - 1] >= begin) {
    // A state that was entered and left at one moment is not seen; the first one of all stays where it began.
    begin = to.begin[n - 1];
    --n;
    to.begin.set_size(n);
    to.state.set_size(n);
    to.cpu.set_size(n);
    to.letter.set_size(n);
    to.syscall.set_size(n);
    to.by.set_size(n);
  }
  if (n != 0 && now.state == ThreadState::kUnknown && to.state[n - 1] == now.state) return;
  to.begin.push_back(begin);
  to.state.push_back(now.state);
  to.cpu.push_back(now.cpu);
  to.letter.push_back(now.letter);
  to.syscall.push_back(now.state == ThreadState::kBlocked ? now.syscall : 0);
  to.by.push_back(now.by);
}

void run_instead(ThreadStates& t, std::size_t i) {
  t.state[i] = ThreadState::kRunning;
  t.letter[i] = 0;
  t.syscall[i] = 0;
  t.by[i] = kNoTask;
}

// What begins while tracing keeps the thread, which ran until then, ends then, too. `error`: of the clocks, in ticks.
void run_while_traced(ThreadStates& t, const std::vector<TracingTime>& times, std::uint64_t error) {
  std::size_t i = 0;
  for (const TracingTime& time : times) {
    const std::uint64_t begin = time.begin > error ? time.begin - error : 0, end = time.end + error;
    i = std::max(i,
                 static_cast<std::size_t>(std::lower_bound(t.begin.begin(), t.begin.end(), begin) - t.begin.begin()));
    for (; i < t.size() && t.begin[i] < end && t.end_of(i) <= end; ++i) {
      const ThreadState state = t.state[i];
      if (i != 0 && t.state[i - 1] != ThreadState::kRunning) continue;
      if (state == ThreadState::kBlocked || state == ThreadState::kWoken || state == ThreadState::kPreempted)
        run_instead(t, i);
    }
  }
}

// Who slept until karst woke it waited for its own tracing, which is no wait of the program: as if tracing had run in
// the thread.
void run_while_traced(ThreadStates& t, const std::vector<Task>& tasks) {
  const auto by_tracer = [&](std::size_t i) { return t.by[i] < tasks.size() && tasks[t.by[i]].tracer; };
  for (std::size_t i = 0; i < t.size(); ++i) {
    if (t.state[i] != ThreadState::kBlocked || t.letter[i] != 'S' || !by_tracer(i)) continue;
    for (; i < t.size() && by_tracer(i) && t.state[i] != ThreadState::kPreempted; ++i) {
      run_instead(t, i);
    }
    --i;
  }
}

// Before `birth` there was no thread; whether it was there before it was first seen, without a birth, is not known.
void count(const ThreadStates& t, std::optional<std::uint64_t> birth, StateDoubts& doubts) {
  for (std::size_t i = 0; i + 1 < t.size(); ++i) {
    if (t.state[i] != ThreadState::kUnknown || (i == 0 && (!birth || *birth >= t.end_of(0)))) continue;
    const std::uint64_t length = t.end_of(i) - std::max(t.begin[i], birth.value_or(0));
    ++doubts.stretches;
    doubts.ticks += length;
    doubts.longest = std::max(doubts.longest, length);
  }
}

void push(CpuLane& lane, std::uint64_t begin, std::uint32_t task, bool mixed) {
  if (!lane.begin.empty() && lane.begin.back() >= begin) {
    lane.task.back() = task;
    lane.mixed.back() = mixed ? 1 : 0;
    lane.last.back() = kNoTask;
    return;
  }
  if (!lane.task.empty() && lane.task.back() == task && lane.mixed.back() == (mixed ? 1 : 0)) return;
  lane.begin.push_back(begin);
  lane.task.push_back(task);
  lane.mixed.push_back(mixed ? 1 : 0);
  lane.last.push_back(kNoTask);
}

// An other or nobody was on the CPU. Who leaves it may not be who came: switches between such are not always recorded.
void note_last(CpuLane& lane, std::uint32_t task) {
  lane.last.back() = task;
  if (task != kNoTask && task != lane.task.back() && lane.task.back() != kIdleTask) lane.mixed.back() = 1;
}

}  // namespace

std::uint64_t StateLog::wakes_from() const {
  const auto* const at = std::find_if(records.begin(), records.end(),
                                      [](const StateRecord& r) { return r.kind == format::kStateWakesBegin; });
  return at != records.end() ? at->ticks : source.begin_ticks;
}

std::uint64_t StateLog::cpus_from() const {
  constexpr std::uint32_t kAll = format::kStatesCpus | format::kStatesOthers;
  return (source.flags & kAll) == kAll ? wakes_from() : ~std::uint64_t{0};
}

States::States(StateLog log, const TracingTimes& tracing) : log_(std::move(log)) {
  const auto before = [](const StateRecord& a, const StateRecord& b) { return a.ticks < b.ticks; };
  if (!std::is_sorted(log_.records.begin(), log_.records.end(), before))
    std::stable_sort(log_.records.begin(), log_.records.end(), before);
  for (std::uint32_t i = 0; i < log_.tasks.size(); ++i) task_of_.try_emplace(log_.tasks[i].tid, i);

  // What lies at the end is known up to there.
  std::uint64_t end = std::max(log_.source.end_ticks, log_.source.begin_ticks);
  if (!log_.records.empty()) end = std::max(end, log_.records.back().ticks);
  log_.source.end_ticks = end;

  std::map<std::uint16_t, CpuLane> lanes;
  const auto lane_of = [&](std::uint16_t cpu) -> CpuLane& {
    CpuLane& lane = lanes[cpu];
    lane.cpu = cpu;
    return lane;
  };
  const auto name = [&](std::uint32_t tid) { return tid == 0 ? kIdleTask : task_of(tid); };
  const auto is_run = [&](std::uint32_t task) { return task < log_.tasks.size() && log_.tasks[task].of_run; };
  const auto is_other = [&](std::uint32_t task) { return task < log_.tasks.size() && !log_.tasks[task].of_run; };
  const auto by = [&](const StateNow& now) {
    const std::uint32_t task = name(now.by);
    if (!now.by_interrupt) return task;
    return is_run(task) && task < (kInterruptTask & ~kInterruptBit) ? kInterruptBit | task : kInterruptTask;
  };
  const std::uint64_t all_from = log_.cpus_from();
  StateWalk walk([&](std::uint32_t tid) {
    const std::uint32_t task = task_of(tid);
    return task != kNoTask && log_.tasks[task].of_run;
  });
  walk.on_state = [&](std::uint32_t tid, std::uint64_t begin, const StateNow& now) {
    const auto [at, fresh] = thread_of_.try_emplace(tid, threads_.size());
    if (fresh) {
      threads_.emplace_back().task = task_of(tid);
      if (begin > log_.source.begin_ticks) push(threads_.back(), log_.source.begin_ticks, {});
    }
    StateNow named = now;
    named.by = by(now);
    ThreadStates& states = threads_[at->second];
    // The waker is known when the state ends.
    if (now.state == ThreadState::kWoken && !states.state.empty() && states.state.back() == ThreadState::kBlocked)
      states.by.back() = named.by;
    push(states, begin, named);
  };
  walk.on_amend = [&](std::uint32_t tid, const StateNow& now) {
    ThreadStates& states = threads_[thread_of_.at(tid)];
    states.state.back() = now.state;
    states.letter.back() = now.letter;
    states.syscall.back() = 0;
    states.by.back() = by(now);
  };
  walk.on_cpu = [&](std::uint16_t cpu, std::uint64_t begin, std::uint32_t tid) {
    const std::uint32_t task = name(tid);
    push(lane_of(cpu), begin, task, begin < all_from && is_other(task));
  };
  std::unordered_map<std::uint32_t, std::uint64_t> births;  // by task
  for (const StateRecord& record : log_.records) {
    if (record.kind == format::kStateNewThread) births.try_emplace(task_of(record.tid), record.ticks);
    if (record.kind == format::kStateLeaveCpu) {
      const auto lane = lanes.find(record.cpu);
      const std::uint32_t left = name(record.tid);
      // What contradicts the run's own threads, the walk finds.
      if (lane != lanes.end() && !lane->second.task.empty() && lane->second.task.back() != kNoTask &&
          !is_run(lane->second.task.back()) && !is_run(left))
        note_last(lane->second, left);
    }
    walk.take(record);
    if (record.kind != format::kStateFaults) continue;
    const auto of = thread_of_.find(record.tid);
    if (of == thread_of_.end()) continue;
    ThreadStates& thread = threads_[of->second];
    thread.fault_at.push_back(record.ticks);
    thread.faults.push_back((thread.faults.empty() ? 0 : thread.faults.back()) + record.value);
  }
  walk.finish(end);
  gaps_ = walk.gaps();
  doubts_.left_out = walk.left_out();

  for (ThreadStates& t : threads_) {
    t.end = std::max(end, t.begin.back());
    run_while_traced(t, log_.tasks);
    const auto times = t.task < log_.tasks.size() ? tracing.find(log_.tasks[t.task].tid) : tracing.end();
    constexpr std::uint64_t kTicksInNs = 4;  // at most
    if (times != tracing.end()) run_while_traced(t, times->second, kTicksInNs * log_.source.clock_error_ns);
    t.sum_up();
    const auto birth = births.find(t.task);
    count(t, birth == births.end() ? std::nullopt : std::optional(birth->second), doubts_);
  }
  for (auto& [cpu, lane] : lanes) cpus_.push_back(std::move(lane));
}

const ThreadStates* States::of(std::uint32_t pid, std::uint32_t tid) const {
  const auto at = thread_of_.find(tid);
  if (at == thread_of_.end()) return nullptr;
  const std::uint32_t known = log_.tasks[threads_[at->second].task].pid;
  return known == 0 || known == pid ? &threads_[at->second] : nullptr;
}

const CpuLane* States::cpu(std::uint16_t number) const {
  const auto at = std::lower_bound(cpus_.begin(), cpus_.end(), number,
                                   [](const CpuLane& lane, std::uint16_t of) { return lane.cpu < of; });
  return at != cpus_.end() && at->cpu == number ? &*at : nullptr;
}

std::uint32_t States::task_of(std::uint32_t tid) const {
  if (tid == format::kUnknownTid) return kNoTask;
  const auto at = task_of_.find(tid);
  return at != task_of_.end() ? at->second : kNoTask;
}

}  // namespace karst::reader
