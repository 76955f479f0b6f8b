// SPDX-License-Identifier: MIT
#include "engine/api/states.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <vector>

#include "analysis/kept_off.h"
#include "analysis/waits.h"
#include "answers/waits.h"
#include "base/text.h"
#include "engine/api/answers.h"
#include "engine/api/rows.h"
#include "engine/protocol.h"
#include "words/wait_words.h"

namespace karst::engine {
namespace {

using answers::Field;
using answers::field;
using answers::Relation;
using answers::Type;
using answers::Value;
using answers::value_of;
using reader::ThreadState;

constexpr std::size_t kMostWaits = 20;      // of a call
constexpr std::size_t kMostTasks = 20'000;  // in api/trace

double ns(const TraceIndex& index, std::uint64_t ticks) {
  return static_cast<std::int64_t>(ticks) < 0 ? 0 : index.to_ns(static_cast<double>(ticks));
}

// State `i` as a wait; with the wait for a CPU that follows it.
analysis::Wait wait_of(const TraceIndex& index, const reader::ThreadStates& states, std::size_t i) {
  analysis::Wait wait = analysis::wait_at(states, i);
  if (wait.state == ThreadState::kBlocked && index.wait_stacks() != nullptr)
    wait.in = index.wait_stacks()->code_of(states.task, wait.begin);
  return wait;
}

analysis::KeptOff kept_off(const TraceIndex& index, const analysis::Wait& wait) {
  std::unordered_map<const reader::Thread*, const ThreadIndex*> found;
  const analysis::KeptOffFinder finder(
      index.trace(),
      [&](std::uint32_t task, std::uint64_t) -> const reader::Thread* {
        const std::int64_t number = index.thread_of_task(task);
        if (number < 0) return nullptr;
        const ThreadIndex& thread = index.threads()[static_cast<std::size_t>(number)];
        return found.try_emplace(thread.thread, &thread).first->first;
      },
      [&](const reader::Thread& thread) { return found.at(&thread)->calls; });
  return finder.of(wait);
}

bool is_wait(ThreadState state) {
  return state == ThreadState::kBlocked || state == ThreadState::kPreempted || state == ThreadState::kWoken;
}

/// Of those that begin in [begin, end).
std::vector<std::size_t> longest_waits(const reader::ThreadStates& states, std::uint64_t begin, std::uint64_t end) {
  std::vector<std::size_t> waits;
  const auto longer = [&](std::size_t a, std::size_t b) {
    const std::uint64_t of_a = states.end_of(a) - states.begin[a];
    const std::uint64_t of_b = states.end_of(b) - states.begin[b];
    return of_a != of_b ? of_a > of_b : a < b;
  };
  const auto first = std::lower_bound(states.begin.begin(), states.begin.end(), begin);
  for (auto i = static_cast<std::size_t>(first - states.begin.begin()); i < states.size() && states.begin[i] < end;
       ++i) {
    if (!is_wait(states.state[i])) continue;
    // One after a blocking is told with it.
    if (states.state[i] == ThreadState::kWoken && i != 0 && states.state[i - 1] == ThreadState::kBlocked) continue;
    waits.push_back(i);
    std::push_heap(waits.begin(), waits.end(), longer);
    if (waits.size() <= kMostWaits) continue;
    std::pop_heap(waits.begin(), waits.end(), longer);
    waits.pop_back();
  }
  std::sort(waits.begin(), waits.end(), longer);
  return waits;
}

/// A state, which may be a wait.
struct StateRow {
  const TraceIndex& index;
  const reader::ThreadStates& states;
  std::size_t at;
  answers::Times times;
  bool waits = false;
  analysis::Wait wait = {};
  analysis::KeptOff kept = {};
  const ThreadIndex* waker = nullptr;  // null: nobody of the trace ended it, or in no call

  const reader::States& all() const { return index.trace().states(); }
  ThreadState state() const { return states.state[at]; }
  std::uint32_t waker_row() const { return wait.waker.row; }
  bool is_kept_off_known() const { return waits && (!kept.empty() || kept.unknown != 0); }
};

/// Who ended a wait, or ran where an interrupt did, if it was in a call.
void find_waker(StateRow& row) {
  analysis::Wait& wait = row.wait;
  const std::uint32_t interrupted = reader::interrupted_task(wait.by);
  const bool by_interrupt = interrupted != reader::kNoTask;
  const std::int64_t number = row.index.thread_of_task(by_interrupt ? interrupted : wait.by);
  if (number < 0 || wait.state == ThreadState::kPreempted) return;
  const ThreadIndex& waker = row.index.threads()[static_cast<std::size_t>(number)];
  const std::uint64_t at = wait.state == ThreadState::kBlocked ? wait.end : wait.begin;
  const std::uint32_t call = innermost_at(waker.calls, at);
  if (call == reader::kNoParent) return;
  const analysis::CallOf of{waker.thread, call, waker.calls.function[call]};
  (by_interrupt ? wait.interrupted : wait.waker) = of;
  if (!by_interrupt) row.waker = &waker;
}

StateRow state_row(const TraceIndex& index, const reader::ThreadStates& states, std::size_t at) {
  StateRow row{index, states, at, times_of(index)};
  if (!is_wait(states.state[at])) return row;
  row.waits = true;
  row.wait = wait_of(index, states, at);
  find_waker(row);
  row.kept = kept_off(index, row.wait);
  return row;
}

std::string words_of(const StateRow& r) {
  if (!r.waits)
    return r.state() == ThreadState::kRunning ? "running on CPU " + std::to_string(r.states.cpu[r.at])
                                              : "not known: the system's records are missing here";
  const words::Writing writing{
      [&](const reader::Thread& of, std::uint32_t id) {
        return r.index.trace().function(r.index.trace().processes()[of.process], id).name;
      },
      [&](std::uint64_t ticks) { return duration_text(static_cast<std::uint64_t>(std::llround(ns(r.index, ticks)))); }};
  return words::wait_words(r.wait, r.all(), writing, words::kept_off_words(r.kept, r.all(), writing));
}

const Relation& wakers() {
  using Row = StateRow;
  static const Relation relation{
      "wakers",
      "waker",
      "A row for each call that ended a wait",
      {field<Row>("thread", Type::kThread, "that it is in",
                  [](const Row& r) { return answers::ThreadRef{r.waker->thread}; }),
       field<Row>("index", Type::kNumber, "its place there", [](const Row& r) { return r.waker_row(); }),
       field<Row>("function", Type::kNumber, "in TraceInfo.functions",
                  [](const Row& r) { return r.index.function_of(*r.waker, r.waker_row()); }),
       field<Row>("depth", Type::kNumber, "its level",
                  [](const Row& r) { return r.waker->calls.depth[r.waker_row()]; })}};
  return relation;
}

}  // namespace

const Relation& state_lines() {
  using Row = StateRow;
  static const Relation relation{
      "state_lines",
      "state_line",
      "A row for each state of a thread",
      {field<Row>("index", Type::kNumber, "its place among the thread's states", [](const Row& r) { return r.at; }),
       field<Row>("begin", Type::kTime, "when it begins",
                  [](const Row& r) { return r.index.since_origin(r.states.begin[r.at]); }),
       field<Row>("duration", Type::kDuration, "how long it is",
                  [](const Row& r) { return ns(r.index, r.states.end_of(r.at) - r.states.begin[r.at]); }),
       field<Row>("runnable", Type::kDuration, "the wait for a CPU that follows a blocking",
                  [](const Row& r) { return ns(r.index, r.wait.runnable); }),
       field<Row>("state", Type::kText, "running, blocked, preempted, woken, unknown or gone",
                  [](const Row& r) { return words::state_word(r.state()); }),
       field<Row>("cpu", Type::kNumber, "where it ran last", [](const Row& r) { return r.states.cpu[r.at]; }),
       field<Row>("where", Type::kText, "the system call that it waited in; empty: not known",
                  [](const Row& r) { return words::blocked_words(r.wait.syscall, r.wait.letter); }),
       field<Row>("by", Type::kText, "who ended it, `4711 worker`; empty: not known",
                  [](const Row& r) { return words::task_words(r.all(), r.wait.by); }),
       answers::row<Row>("waker", "the call that ended it; null: none, or not known", wakers(),
                         [](const Row& r, const answers::UseRow& use) {
                           if (r.waker != nullptr) use(&r);
                         }),
       field<Row>("words", Type::kText, "all that in words", words_of),
       answers::rows<Row>("kept_off_by", "who had the CPU that it waited for", answers::cpu_shares(),
                          [](const Row& r, const answers::UseRow& use) {
                            for (const analysis::CpuShare& share : r.kept.shares) {
                              const answers::CpuShareRow row{r.index.trace(), r.times, share};
                              use(&row);
                            }
                          }),
       answers::field_if_known<Row>(
           "kept_off_not_known", Type::kDuration, "in which nobody knows who had it",
           [](const Row& r) { return r.is_kept_off_known() ? value_of(ns(r.index, r.kept.unknown)) : Value(); })}};
  return relation;
}

std::optional<StatesOfCall> states_of_call(const ThreadIndex& thread, std::uint32_t row, std::uint64_t cost,
                                           std::uint64_t self_cost) {
  const reader::ThreadStates* const states = thread.states;
  if (states == nullptr) return std::nullopt;
  const CallColumns& calls = thread.calls;
  const std::uint64_t begin = calls.begin[row];
  const std::uint64_t end = calls.end(row);
  StatesOfCall found;
  found.own = found.all = states->between(begin, end);
  columns::take_cost_out(found.all, cost);
  // Direct children follow one another, so this takes a step for each.
  std::size_t begin_hint = 0;
  std::size_t end_hint = 0;
  const std::uint32_t last = subtree_end(calls, row);
  for (std::uint32_t child = row + 1; child < last; child = subtree_end(calls, child)) {
    found.own = found.own - reader::states_between(states, calls.begin[child], calls.end(child), begin_hint, end_hint);
  }
  columns::take_cost_out(found.own, self_cost);
  found.waits = longest_waits(*states, begin, end);
  return found;
}

void use_state(const TraceIndex& index, const ThreadIndex& thread, std::size_t state, const answers::UseRow& use) {
  const StateRow row = state_row(index, *thread.states, state);
  use(&row);
}

void write_state(Json& json, const TraceIndex& index, const ThreadIndex& thread, std::size_t state) {
  json.open('{');
  use_state(index, thread, state, [&](const void* row) { write_row(json, index, state_lines(), row); });
  json.close('}');
}

namespace {

Field of_source(std::string key, Type type, std::string sentence,
                Value (*get)(const TraceIndex& index, const reader::StateSource& source)) {
  return field<TraceIndex>(std::move(key), type, std::move(sentence),
                           [get](const TraceIndex& index) { return get(index, index.trace().states().source()); });
}

template <format::StatesFlag flag>
Value has_flag(const TraceIndex&, const reader::StateSource& source) {
  return value_of((source.flags & flag) != 0);
}

struct TaskFact {
  const reader::Task& of;
  std::int64_t thread;
};

struct CpuGap {
  const TraceIndex& index;
  const reader::StateGap& of;
};

const Relation& cpu_gaps() {
  using Row = CpuGap;
  static const Relation relation{
      "cpu_gaps",
      "cpu_gap",
      "A row for each time in which it is not known what ran on a CPU",
      {field<Row>("begin", Type::kTime, "when it begins",
                  [](const Row& r) { return r.index.since_origin(r.of.begin); }),
       field<Row>("end", Type::kTime, "when it ends", [](const Row& r) { return r.index.since_origin(r.of.end); }),
       field<Row>("lost", Type::kCount, "records that the kernel left out", [](const Row& r) { return r.of.lost; })}};
  return relation;
}

struct CpuFact {
  const TraceIndex& index;
  const reader::CpuLane& of;
};

}  // namespace

const Relation& state_facts() {
  static const Relation relation{
      "states_infos",
      "states_info",
      "What is known of thread states, and from whom",
      {of_source("backend", Type::kText, "ftrace or perf",
                 [](const TraceIndex&, const reader::StateSource& s) {
                   return value_of(s.backend == format::StateBackend::kFtrace ? "ftrace" : "perf");
                 }),
       of_source("wakes", Type::kFlag, "whether it says who woke whom", has_flag<format::kStatesWakes>),
       of_source("others", Type::kFlag, "whether it says what else ran", has_flag<format::kStatesOthers>),
       of_source("syscalls", Type::kFlag, "whether it says in which system call a thread waited",
                 has_flag<format::kStatesSyscalls>),
       of_source("clock_error_ns", Type::kDuration, "how far times may be off from the calls'",
                 [](const TraceIndex&, const reader::StateSource& s) { return value_of(s.clock_error_ns); }),
       of_source("lost_events", Type::kCount, "that the kernel left out",
                 [](const TraceIndex&, const reader::StateSource& s) { return value_of(s.lost_events); }),
       of_source("begin", Type::kTime, "from when on they are known",
                 [](const TraceIndex& index, const reader::StateSource& s) {
                   return value_of(index.since_origin(s.begin_ticks));
                 }),
       of_source("end", Type::kTime, "until when",
                 [](const TraceIndex& index, const reader::StateSource& s) {
                   return value_of(index.since_origin(s.end_ticks));
                 }),
       of_source("note", Type::kText, "what would be needed for more",
                 [](const TraceIndex&, const reader::StateSource& s) { return value_of(s.note); })}};
  return relation;
}

const Relation& task_facts() {
  using Row = TaskFact;
  static const Relation relation{
      "task_infos",
      "task_info",
      "A row for each thread as the kernel knows it, of the run or not",
      {field<Row>("tid", Type::kNumber, "its number", [](const Row& r) { return r.of.tid; }),
       field<Row>("pid", Type::kNumber, "that of its process; 0: not known", [](const Row& r) { return r.of.pid; }),
       field<Row>("name", Type::kText, "what it is called",
                  [](const Row& r) -> const std::string& { return r.of.name; }),
       field<Row>("of_run", Type::kFlag, "whether it is of a process of the run",
                  [](const Row& r) { return r.of.of_run; }),
       field<Row>("thread", Type::kNumber, "in TraceInfo.threads; -1: none", [](const Row& r) { return r.thread; })}};
  return relation;
}

void each_task(const TraceIndex& index, const answers::UseRow& use) {
  const auto& tasks = index.trace().states().tasks();
  for (std::uint32_t i = 0; i < tasks.size() && i < kMostTasks; ++i) {
    const TaskFact fact{tasks[i], index.thread_of_task(i)};
    use(&fact);
  }
}

const Relation& cpu_facts() {
  using Row = CpuFact;
  static const Relation relation{
      "cpu_infos",
      "cpu_info",
      "A row for each CPU on which threads ran",
      {field<Row>("cpu", Type::kNumber, "its number", [](const Row& r) { return r.of.cpu; }),
       answers::rows<Row>("gaps", "when it is not known what ran there, the first ones", cpu_gaps(),
                          [](const Row& r, const answers::UseRow& use) {
                            std::size_t gaps = 0;
                            for (const reader::StateGap& gap : r.index.trace().states().gaps()) {
                              if (gap.cpu != r.of.cpu || ++gaps > kMaxGaps) continue;
                              const CpuGap of{r.index, gap};
                              use(&of);
                            }
                          })}};
  return relation;
}

void each_cpu(const TraceIndex& index, const answers::UseRow& use) {
  if (index.is_partial()) return;  // which function ran there is known when all threads are
  for (const reader::CpuLane& lane : index.trace().states().cpus()) {
    const CpuFact fact{index, lane};
    use(&fact);
  }
}

}  // namespace karst::engine
