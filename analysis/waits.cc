#include "analysis/waits.h"

#include <algorithm>
#include <utility>

#include "analysis/syscall_names.h"

namespace karst::analysis {

using reader::States;
using reader::ThreadState;
using reader::ThreadStates;

std::uint32_t innermost_at(const reader::Calls& calls, std::uint64_t ticks) {
  const auto behind = std::upper_bound(calls.begin.begin(), calls.begin.end(), ticks);
  if (behind == calls.begin.begin()) return reader::kNoParent;
  auto row = static_cast<std::uint32_t>(behind - calls.begin.begin()) - 1;
  // What is open then encloses the last call that began before, or is it.
  while (row != reader::kNoParent && calls.begin[row] + calls.duration[row] <= ticks) row = calls.parent[row];
  return row;
}

StateThreads::StateThreads(const reader::Trace& trace) : trace_(trace) {
  for (const reader::Process& process : trace.processes()) {
    for (const reader::Thread& thread : process.threads) by_tid_[thread.tid].push_back(&thread);
  }
}

const ThreadStates* StateThreads::states_of(const reader::Thread& thread) const {
  return trace_.states().of(trace_.processes()[thread.process].pid, thread.tid);
}

const reader::Thread* StateThreads::thread_of(std::uint32_t task, std::uint64_t ticks) const {
  const auto& tasks = trace_.states().tasks();
  if (task >= tasks.size() || !tasks[task].of_run) return nullptr;
  const auto at = by_tid_.find(tasks[task].tid);
  if (at == by_tid_.end()) return nullptr;
  const reader::Thread* found = nullptr;
  for (const reader::Thread* thread : at->second) {
    const reader::Process& process = trace_.processes()[thread->process];
    if (tasks[task].pid != 0 && tasks[task].pid != process.pid) continue;
    // After an exec, or where the number was used again, there are several: the latest that had begun.
    const std::uint64_t joined = std::max(thread->joined_ticks, process.start_ticks);
    if (found == nullptr || (joined <= ticks && joined >= found->joined_ticks)) found = thread;
  }
  return found;
}

std::vector<Wait> waits_of(const StateThreads& threads, const ThreadStates& states, std::uint64_t min_ticks) {
  std::vector<Wait> waits;
  for (std::size_t i = 0; i < states.size(); ++i) {
    const ThreadState state = states.state[i];
    // What is not known between two states that are may have been a wait.
    const bool doubtful = state == ThreadState::kUnknown && i != 0 && i + 1 < states.size();
    if (!doubtful && state != ThreadState::kBlocked && state != ThreadState::kPreempted && state != ThreadState::kWoken)
      continue;
    Wait wait;
    wait.begin = states.begin[i];
    wait.end = states.end_of(i);
    wait.state = state;
    wait.letter = states.letter[i];
    wait.syscall = states.syscall[i];
    wait.by = states.by[i];
    wait.cpu = states.cpu[i];
    if (state == ThreadState::kBlocked && i + 1 < states.size() && states.state[i + 1] == ThreadState::kWoken) {
      ++i;
      wait.runnable = states.end_of(i) - states.begin[i];
    }
    if (wait.length() < min_ticks) continue;
    wait.begun_before = i == 0 && wait.begin <= threads.recorded_from();
    wait.not_over = i + 1 == states.size() && states.end_of(i) >= threads.recorded_to();
    if (state != ThreadState::kPreempted) wait.waker.thread = threads.thread_of(wait.by, wait.end);
    waits.push_back(wait);
  }
  return waits;
}

Waits::Waits(const reader::Trace& trace, std::uint64_t min_ticks) {
  const StateThreads threads(trace);
  std::unordered_map<const reader::Thread*, std::vector<Wait*>> woken_by;
  for (const reader::Process& process : trace.processes()) {
    for (const reader::Thread& thread : process.threads) {
      const ThreadStates* const states = threads.states_of(thread);
      if (states == nullptr) continue;
      auto& waits = waits_[&thread] = waits_of(threads, *states, min_ticks);
      // A number that is used again, by an exec for one, has the states of all its threads.
      std::erase_if(waits,
                    [&](const Wait& wait) { return wait.end < std::max(thread.joined_ticks, process.start_ticks); });
    }
  }
  for (auto& [thread, waits] : waits_) {
    for (Wait& wait : waits) {
      if (wait.waker.thread != nullptr) woken_by[wait.waker.thread].push_back(&wait);
    }
  }
  for (auto& [thread, waits] : woken_by) {
    const reader::Calls calls = reader::rebuild_calls(trace, *thread);
    for (Wait* const wait : waits) {
      // A blocked thread's waking is at the end of the state; where the state was not seen, at the begin of being
      // woken.
      const std::uint64_t at = wait->state == ThreadState::kBlocked ? wait->end : wait->begin;
      wait->waker.row = innermost_at(calls, at);
      if (wait->waker.row != reader::kNoParent) wait->waker.function = calls.function[wait->waker.row];
    }
  }
}

const std::vector<Wait>& Waits::of(const reader::Thread& thread) const {
  static const std::vector<Wait> kNone;
  const auto at = waits_.find(&thread);
  return at == waits_.end() ? kNone : at->second;
}

std::string task_words(const States& states, std::uint32_t task) {
  if (task == reader::kInterruptTask) return "an interrupt";
  if (task == reader::kIdleTask) return "the idle thread";
  if (task >= states.tasks().size()) return {};
  const reader::Task& of = states.tasks()[task];
  return of.name.empty() ? std::to_string(of.tid) : std::to_string(of.tid) + " " + of.name;
}

std::string cut_words(const Wait& wait) {
  if (wait.begun_before && wait.not_over) return "; cut: it had begun before the recording, and went on after it";
  if (wait.begun_before) return "; cut: it had begun before the recording";
  return wait.not_over ? "; cut: it went on after the recording" : "";
}

std::string blocked_words(std::uint32_t syscall, char letter) {
  if (syscall != 0) {
    const std::string name = syscall_name(syscall - 1);
    return name.empty() ? "system call " + std::to_string(syscall - 1) : name;
  }
  switch (letter) {
    case 'S':
      return "sleep";
    case 'D':
      return "uninterruptible sleep (disk, or the like)";
    case 'T':
      return "stop by a signal";
    case 't':
      return "stop by a debugger";
    case 'I':
      return "idle sleep";
    default:
      return {};
  }
}

}  // namespace karst::analysis
