// Records of thread states for tests, written short.
#pragma once
#include <initializer_list>
#include <string>

#include "analysis/syscall_names.h"
#include "format/trace.h"
#include "reader/states.h"

namespace karst::test {

using format::StateRecord;
inline constexpr std::uint32_t kNobody = format::kUnknownTid;
inline constexpr std::uint32_t kCouldRun = format::kLeaveRunnable | 'R';

/// `from` leaves the CPU to `to`, waiting in state `letter`, or able to run on (kCouldRun).
inline StateRecord leave_cpu(std::uint64_t ticks, std::uint16_t cpu, std::uint32_t from, std::uint32_t to,
                             std::uint32_t value = 'S') {
  return {ticks, from, to, value, cpu, format::kStateLeaveCpu, 0};
}
inline StateRecord wake(std::uint64_t ticks, std::uint16_t cpu, std::uint32_t by, std::uint32_t woken,
                        bool interrupt = false) {
  return {ticks, woken, by, interrupt ? 1U : 0U, cpu, format::kStateWaking, 0};
}
inline StateRecord enter_syscall(std::uint64_t ticks, std::uint32_t tid, std::uint32_t number) {
  return {ticks, tid, 0, number, 0, format::kStateSyscallEnter, 0};
}
inline StateRecord lost_from(std::uint64_t ticks, std::uint16_t cpu) {
  return {ticks, 0, 0, 0, cpu, format::kStateLostBegin, 0};
}
inline StateRecord lost_to(std::uint64_t ticks, std::uint16_t cpu, std::uint32_t count) {
  return {ticks, 0, 0, count, cpu, format::kStateLostEnd, 0};
}

/// A log of [0, 1000) whose threads 1 to 9 are of the run, of process 1, and 11 to 19 of others.
inline reader::StateLog make_log(std::initializer_list<StateRecord> records) {
  reader::StateLog log;
  log.source.backend = format::StateBackend::kFtrace;
  log.source.end_ticks = 1000;
  for (std::uint32_t tid = 1; tid < 20; ++tid)
    if (tid != 10) log.tasks.push_back({tid, tid < 10 ? 1U : tid, tid < 10, "thread " + std::to_string(tid)});
  for (const StateRecord& r : records) log.records.push_back(r);
  return log;
}

/// `unknown 0-10 running@0 10-20 blocked(S) 20-30 by 2 ...`
inline std::string describe(const reader::States& states, std::uint32_t tid) {
  const reader::ThreadStates* t = states.of(tid < 10 ? 1 : tid, tid);
  if (t == nullptr) return "nothing";
  constexpr const char* kNames[] = {"unknown", "running", "preempted", "woken", "blocked", "gone"};
  std::string text;
  for (std::size_t i = 0; i < t->size(); ++i) {
    if (i != 0) text += ' ';
    text += kNames[static_cast<std::size_t>(t->state[i])];
    if (t->state[i] == reader::ThreadState::kRunning) text += "@" + std::to_string(t->cpu[i]);
    if (t->state[i] == reader::ThreadState::kBlocked && t->letter[i] != 0)
      text += "(" + std::string(1, t->letter[i]) +
              (t->syscall[i] != 0 ? " in " + analysis::syscall_name(t->syscall[i] - 1) : "") + ")";
    text += " " + std::to_string(t->begin[i]) + "-" + std::to_string(t->end_of(i));
    if (t->by[i] == reader::kIdleTask)
      text += " by idle";
    else if (reader::is_interrupt(t->by[i]))
      text += " by interrupt";
    else if (t->by[i] != reader::kNoTask)
      text += " by " + std::to_string(states.tasks()[t->by[i]].tid);
  }
  return text;
}

}  // namespace karst::test
