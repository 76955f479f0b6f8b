// SPDX-License-Identifier: MIT
#include "answers/states.h"

#include "analysis/waits.h"
#include "words/wait_words.h"

namespace karst::answers {
namespace {

using reader::ThreadState;

bool is_blocked(const StateRow& r) { return r.of.state[r.at] == ThreadState::kBlocked; }

/// The task that woke the thread, or took its CPU; null: not known, or none of the kernel's threads.
const reader::Task* other_task(const StateRow& r) {
  const std::uint32_t by = r.of.by[r.at];
  const auto& tasks = r.trace.states().tasks();
  return by < tasks.size() ? &tasks[by] : nullptr;
}

}  // namespace

const Relation& thread_states() {
  using Row = StateRow;
  static const Relation relation{
      "thread_states",
      "thread_state",
      "A row for each stretch of time in which a thread ran, or did not",
      {field<Row>("process", Type::kProcess, "whose thread it is",
                  [](const Row& r) { return ProcessRef{r.thread.process}; }),
       field<Row>("thread", Type::kThread, "whose state it is", [](const Row& r) { return ThreadRef{&r.thread}; }),
       field<Row>("state", Type::kText,
                  "running; blocked; woken or preempted: it could run and had no CPU; gone; unknown",
                  [](const Row& r) { return words::state_word(r.of.state[r.at]); }),
       field<Row>("begin", Type::kTime, "after the trace's first event",
                  [](const Row& r) { return r.times.since_start(r.of.begin[r.at]); }),
       field<Row>(
           "duration", Type::kDuration, "how long, from the trace's first event on",
           [](const Row& r) { return r.times.since_start(r.of.end_of(r.at)) - r.times.since_start(r.of.begin[r.at]); }),
       field<Row>("end", Type::kTime, "when the next one began",
                  [](const Row& r) { return r.times.since_start(r.of.end_of(r.at)); }),
       field_if_known<Row>("cpu", Type::kNumber, "where it ran, or ran last",
                           [](const Row& r) {
                             const std::uint16_t cpu = r.of.cpu[r.at];
                             return cpu == analysis::kNoCpu ? Value() : value_of(cpu);
                           }),
       field_if_known<Row>("blocked_in", Type::kText, "the system call in which it waited, or how",
                           [](const Row& r) {
                             if (!is_blocked(r)) return Value();
                             std::string told = words::blocked_words(r.of.syscall[r.at], r.of.letter[r.at]);
                             return told.empty() ? Value() : value_of(std::move(told));
                           }),
       field_if_known<Row>("other", Type::kText, "who woke it, or who took its CPU",
                           [](const Row& r) {
                             std::string told = words::task_words(r.trace.states(), r.of.by[r.at]);
                             return told.empty() ? Value() : value_of(std::move(told));
                           }),
       field_if_known<Row>("other_tid", Type::kNumber, "that one's number, where it is a thread", [](const Row& r) {
         const reader::Task* task = other_task(r);
         return task == nullptr ? Value() : value_of(task->tid);
       })}};
  return relation;
}

}  // namespace karst::answers
