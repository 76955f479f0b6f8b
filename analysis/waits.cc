// SPDX-License-Identifier: MIT
#include "analysis/waits.h"

#include <algorithm>
#include <utility>

#include "columns/selection.h"

namespace karst::analysis {

using reader::States;
using reader::ThreadState;
using reader::ThreadStates;

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

namespace {

/// A blocking and the wait for a CPU that follows it are one wait.
bool is_followed(const ThreadStates& states, std::size_t i) {
  return states.state[i] == ThreadState::kBlocked && i + 1 < states.size() &&
         states.state[i + 1] == ThreadState::kWoken;
}

}  // namespace

Wait wait_at(const ThreadStates& states, std::size_t i) {
  Wait wait;
  wait.begin = states.begin[i];
  wait.end = states.end_of(i);
  wait.state = states.state[i];
  wait.letter = states.letter[i];
  wait.syscall = states.syscall[i];
  wait.by = states.by[i];
  wait.cpu = states.cpu[i];
  if (is_followed(states, i)) {
    ++i;
    wait.runnable = states.end_of(i) - states.begin[i];
  }
  if (i + 1 < states.size() && states.state[i + 1] == ThreadState::kRunning) wait.next_cpu = states.cpu[i + 1];
  return wait;
}

std::vector<Wait> waits_of(const StateThreads& threads, const ThreadStates& states, std::uint64_t min_ticks) {
  std::vector<Wait> waits;
  for (std::size_t i = 0; i < states.size(); ++i) {
    const ThreadState state = states.state[i];
    // What is not known between two states that are may have been a wait.
    const bool doubtful = state == ThreadState::kUnknown && i != 0 && i + 1 < states.size();
    if (!doubtful && state != ThreadState::kBlocked && state != ThreadState::kPreempted && state != ThreadState::kWoken)
      continue;
    Wait wait = wait_at(states, i);
    if (is_followed(states, i)) ++i;
    if (wait.length() < min_ticks) continue;
    wait.begun_before = i == 0 && wait.begin <= threads.recorded_from();
    wait.not_over = i + 1 == states.size() && states.end_of(i) >= threads.recorded_to();
    if (state != ThreadState::kPreempted) {
      wait.waker.thread = threads.thread_of(wait.by, wait.end);
      wait.interrupted.thread = threads.thread_of(reader::interrupted_task(wait.by), wait.end);
    }
    waits.push_back(wait);
  }
  return waits;
}

namespace {

/// The waker, or who ran where an interrupt woke; its thread is null: neither is known.
CallOf& other_of(Wait& wait) { return wait.waker.thread != nullptr ? wait.waker : wait.interrupted; }

void find_other(Wait& wait, const columns::CallColumns& calls) {
  CallOf& other = other_of(wait);
  // A blocked thread's waking is at the end of the state; where the state was not seen, at the begin of being woken.
  other.row = columns::innermost_at(calls, wait.state == ThreadState::kBlocked ? wait.end : wait.begin);
  if (other.row != reader::kNoParent) other.function = calls.function[other.row];
}

}  // namespace

std::vector<Wait> Waits::without_wakers(const reader::Thread& thread, const ThreadStates& states) const {
  std::vector<Wait> waits = waits_of(threads_, states, min_ticks_);
  // A number that is used again, by an exec for one, has the states of all its threads.
  const std::uint64_t joined = std::max(thread.joined_ticks, trace_.processes()[thread.process].start_ticks);
  std::erase_if(waits, [&](const Wait& wait) { return wait.end < joined; });
  for (Wait& wait : waits)
    if (wait.state == ThreadState::kBlocked) wait.in = stacks_.code_of(states.task, wait.begin);
  return waits;
}

Waits::Waits(const reader::Trace& trace, std::uint64_t min_ticks)
    : trace_(trace), threads_(trace), stacks_(trace), min_ticks_(min_ticks) {
  std::unordered_map<const reader::Thread*, std::vector<Wait*>> woken_by;
  for (const reader::Process& process : trace.processes()) {
    for (const reader::Thread& thread : process.threads) {
      if (const ThreadStates* const states = threads_.states_of(thread); states != nullptr)
        waits_[&thread] = without_wakers(thread, *states);
    }
  }
  for (auto& [thread, waits] : waits_) {
    for (Wait& wait : waits) {
      if (const CallOf& other = other_of(wait); other.thread != nullptr) woken_by[other.thread].push_back(&wait);
    }
  }
  for (auto& [thread, waits] : woken_by) {
    const reader::Calls calls = reader::rebuild_calls(trace, *thread);
    for (Wait* const wait : waits) find_other(*wait, columns::CallColumns(calls));
  }
}

Waits::Waits(const reader::Trace& trace, std::uint64_t min_ticks, CallsOf calls_of)
    : trace_(trace), threads_(trace), stacks_(trace), min_ticks_(min_ticks), calls_of_(std::move(calls_of)) {}

const std::vector<Wait>& Waits::of(const reader::Thread& thread) const {
  static const std::vector<Wait> kNone;
  if (const auto at = waits_.find(&thread); at != waits_.end()) return at->second;
  const ThreadStates* const states = calls_of_ ? threads_.states_of(thread) : nullptr;
  if (states == nullptr) return kNone;
  std::vector<Wait>& waits = waits_[&thread] = without_wakers(thread, *states);
  for (Wait& wait : waits) {
    if (const CallOf& other = other_of(wait); other.thread != nullptr) find_other(wait, calls_of_(*other.thread));
  }
  return waits;
}

}  // namespace karst::analysis
