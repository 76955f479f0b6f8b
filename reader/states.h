// SPDX-License-Identifier: MIT
// What threads did beside their calls: ran, waited for a CPU, were blocked.
//
// task      a thread as the kernel knows it, of the run or of another process (format::TaskRecord)
// state     what a thread is doing between two moments; a thread's states follow each other without a hole
// lane      what one CPU did, in the same way
// waking    the moment at which a thread that was blocked may run again; who did it is its waker
//
// A StateLog is what the collectors record and a file holds; States is what everybody looks at. What is not known is
// kUnknown, never guessed: before the first record, after lost ones, behind the last.
// With perf's records alone (no format::kStatesWakes) a thread is kBlocked until it runs again: its wait for a CPU is
// part of that. All times are ticks of the trace's clock.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "format/trace.h"
#include "reader/column.h"
#include "reader/tracing_times.h"

namespace karst::reader {

/// Where states come from, and how good they are.
struct StateSource {
  format::StateBackend backend = format::StateBackend::kNone;
  std::uint32_t flags = 0;  ///< format::StatesFlag bits
  std::uint32_t clock_error_ns = 0;
  std::uint32_t cpus = 0;
  std::uint64_t begin_ticks = 0;
  std::uint64_t end_ticks = 0;
  std::uint64_t lost_events = 0;
  std::uint64_t overwritten_events = 0;
  std::uint64_t page_faults = 0;
  std::uint64_t migrations = 0;
  std::string note;  ///< what would be needed for more; empty when this is the best
};

struct Task {
  std::uint32_t tid = 0;
  std::uint32_t pid = 0;  ///< 0: not known
  bool of_run = false;    ///< of a process of the run or a descendant, traced or not
  std::string name;       ///< empty: not known
  bool tracer = false;    ///< of the karst that recorded this
};

/// Records in order of time, and the tasks that they name.
struct StateLog {
  StateSource source;
  std::vector<Task> tasks;
  Column<format::StateRecord> records;

  /// From when on wakers and threads of others are recorded (ticks), if the source's flags say that they are.
  std::uint64_t wakes_from() const;
  /// From when on all that ran on CPUs is recorded (ticks); ~0: never.
  std::uint64_t cpus_from() const;
};

enum class ThreadState : std::uint8_t {
  kUnknown = 0,
  kRunning = 1,    ///< on a CPU
  kPreempted = 2,  ///< gave up its CPU, or had to, and could run on
  kWoken = 3,      ///< may run again (or is new), and waits for a CPU
  kBlocked = 4,    ///< waits for something
  kGone = 5,       ///< has ended, or is not yet there
};

/// Places in States::tasks, and in their stead:
inline constexpr std::uint32_t kNoTask = 0xffffffffU;    ///< not known
inline constexpr std::uint32_t kIdleTask = 0xfffffffeU;  ///< a CPU's idle thread
inline constexpr std::uint32_t kInterruptTask =
    0xfffffffdU;  ///< an interrupt (timer, disk, network), while no known task ran
/// An interrupt while a task of the run was on that CPU: this, and the task's place. What the task asked the kernel for
/// may be what woke (bytes sent on the same machine), or the interrupt came by chance.
inline constexpr std::uint32_t kInterruptBit = 0x80000000U;
/// The task that an interrupt interrupted; kNoTask: `by` is no interrupt, or not one of a task of the run.
constexpr std::uint32_t interrupted_task(std::uint32_t by) {
  return by >= kInterruptBit && by < kInterruptTask ? by & ~kInterruptBit : kNoTask;
}
/// Whether `by` is an interrupt, whoever ran then.
constexpr bool is_interrupt(std::uint32_t by) { return by == kInterruptTask || interrupted_task(by) != kNoTask; }

/// Lengths of time in ticks; together the whole of what was asked for.
struct StateTimes {
  std::uint64_t running = 0;
  std::uint64_t runnable = 0;  ///< preempted or woken: could run, had no CPU
  std::uint64_t blocked = 0;
  std::uint64_t unknown = 0;  ///< or gone

  StateTimes& operator+=(const StateTimes& o) {
    running += o.running;
    runnable += o.runnable;
    blocked += o.blocked;
    unknown += o.unknown;
    return *this;
  }
  StateTimes operator-(const StateTimes& o) const {
    return {running - o.running, runnable - o.runnable, blocked - o.blocked, unknown - o.unknown};
  }
  friend bool operator==(const StateTimes&, const StateTimes&) = default;
};

/// The states of one thread, in columns. State i lasts from begin[i] to end_of(i).
struct ThreadStates {
  std::uint32_t task = kNoTask;  ///< this thread, in States::tasks
  Column<std::uint64_t> begin;
  Column<ThreadState> state;
  Column<std::uint16_t> cpu;  ///< running: where; else where it ran last
  /// Blocked: the kernel's letter (S: can be interrupted, D: cannot, T: stopped, ...); 0: not known.
  Column<char> letter;
  /// Blocked: 1 + the number of the system call in which; 0: in none or not known.
  Column<std::uint32_t> syscall;
  /// Blocked: who ended it by waking this thread; woken: who did; preempted: who took the CPU. A task or kNoTask,
  /// kIdleTask, or an interrupt (is_interrupt()). A blocked thread's waking was at the end of the state, in the waker's
  /// time too.
  Column<std::uint32_t> by;
  std::uint64_t end = 0;  ///< of the last state
  /// Records of page faults in user code: when, and how many there had been by then.
  Column<std::uint64_t> fault_at;
  Column<std::uint64_t> faults;

  std::size_t size() const { return begin.size(); }
  std::uint64_t end_of(std::size_t i) const { return i + 1 < begin.size() ? begin[i + 1] : end; }
  /// The state at `ticks`; size() if that lies before the first or behind the last.
  std::size_t at(std::uint64_t ticks) const;
  /// Times in [from, to), by prefix sums: O(log n).
  StateTimes between(std::uint64_t from, std::uint64_t to) const;
  /// Times from begin[0] up to `ticks`, so that between(a, b) is before(b) - before(a). `hint` is a place near that of
  /// the answer and is moved there: who asks in order of time pays O(1). Start with 0.
  StateTimes before(std::uint64_t ticks, std::size_t& hint) const;

  /// About how many page faults it had in [from, to): to some records' worth. O(log n).
  std::uint64_t faults_between(std::uint64_t from, std::uint64_t to) const;

  /// Makes the sums below of the columns above; the last thing that is done to them.
  void sum_up();
  /// Sums up to begin[i].
  Column<std::uint64_t> running_before;
  Column<std::uint64_t> runnable_before;
  Column<std::uint64_t> blocked_before;
};

/// Times in [begin, end) of a thread; all unknown when `states` is null. The hints are as of ThreadStates::before.
inline StateTimes states_between(const ThreadStates* states, std::uint64_t begin, std::uint64_t end,
                                 std::size_t& begin_hint, std::size_t& end_hint) {
  StateTimes times;
  if (states != nullptr && end > begin) {
    times = states->before(end, end_hint) - states->before(begin, begin_hint);
  }
  times.unknown = end - begin - times.running - times.runnable - times.blocked;
  return times;
}

/// What ran on one CPU. Stretch i lasts from begin[i] to begin[i + 1], the last one to StateSource::end_ticks.
struct CpuLane {
  std::uint16_t cpu = 0;
  Column<std::uint64_t> begin;
  Column<std::uint32_t> task;  ///< or kIdleTask, kNoTask (not known: other processes, or nobody)
  /// 1: `task` began it, but as it is no thread of the run it may have made room for others, who are not recorded.
  /// Where all that ran was recorded (format::kStatesCpus with kStatesOthers), only where a record of it is missing.
  Column<std::uint8_t> mixed;
  /// Of others and of idle time: who left the CPU at its end, by the next record; kNoTask: not known.
  Column<std::uint32_t> last;
};

/// Records of a CPU are missing: what is affected is kUnknown in the states already.
struct StateGap {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint16_t cpu = 0;
  std::uint64_t lost = 0;
};

/// Stretches in which what a thread did is not known, between two in which it is.
struct StateDoubts {
  /// Places at which the kernel left out records without a word. In an excerpt they are told already, and 0.
  std::uint64_t left_out = 0;
  std::uint64_t stretches = 0;
  std::uint64_t ticks = 0;    ///< of all stretches
  std::uint64_t longest = 0;  ///< of one, in ticks
};

/// Immutable once made; any thread may read it.
class States {
 public:
  States() = default;
  /// Never fails: what contradicts itself becomes kUnknown. In the times that `tracing` kept a thread it waited for no
  /// one of the program's: it is as if tracing had run in it.
  explicit States(StateLog log, const TracingTimes& tracing = {});

  bool empty() const { return log_.records.empty(); }
  const StateSource& source() const { return log_.source; }
  const std::vector<Task>& tasks() const { return log_.tasks; }
  /// The records as they are, in order of time, for who translates them.
  const StateLog& log() const { return log_; }
  /// Of a thread of the run; null when nothing is known of it. `pid`: its process; numbers of another namespace than
  /// the one that was watched are so not taken for others'. A number that was used twice is one thread here, kGone in
  /// between.
  const ThreadStates* of(std::uint32_t pid, std::uint32_t tid) const;
  /// Of all threads of the run, by task.
  const std::vector<ThreadStates>& threads() const { return threads_; }
  /// By number of the CPU.
  const std::vector<CpuLane>& cpus() const { return cpus_; }
  /// Of one CPU; null: nothing is known of it. O(log n).
  const CpuLane* cpu(std::uint16_t number) const;
  const std::vector<StateGap>& gaps() const { return gaps_; }
  /// What the records leave open, for whatever reason.
  const StateDoubts& doubts() const { return doubts_; }
  /// The place of a thread in tasks(), or kNoTask.
  std::uint32_t task_of(std::uint32_t tid) const;

 private:
  StateLog log_;
  std::vector<ThreadStates> threads_;
  std::vector<CpuLane> cpus_;
  std::vector<StateGap> gaps_;
  StateDoubts doubts_;
  std::unordered_map<std::uint32_t, std::uint32_t> task_of_;  // by tid
  std::unordered_map<std::uint32_t, std::size_t> thread_of_;  // by tid
};

/// The part of a log that says what happened in [begin, end): its records, before them what every thread and CPU was
/// doing at `begin`, and the tasks that occur. What the records behind show to be unknown in it is told in it.
StateLog excerpt_states(const StateLog& log, std::uint64_t begin, std::uint64_t end);

}  // namespace karst::reader
