// SPDX-License-Identifier: MIT
// What threads waited for while they were inside calls: a model of thread states (reader/states.h) beside one of calls.
//
// wait   a stretch in which a thread was blocked, was kept from a CPU after that, or had to give one up
// waker  who ended a blocking; when it is a thread of the trace, the call that it was in is known too
//
// A wait belongs to the innermost call that was open when it began: whether one call or the one that follows it was
// inside is a matter of the clocks' error (StateSource::clock_error_ns).
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "analysis/wait_stacks.h"
#include "columns/columns.h"
#include "reader/model.h"
#include "reader/states.h"
#include "reader/trace.h"

namespace karst::analysis {

/// A call of a thread of the trace.
struct CallOf {
  const reader::Thread* thread = nullptr;
  std::uint32_t row = reader::kNoParent;
  std::uint32_t function = 0;  ///< id in the thread's process
};

/// Of Wait::next_cpu: not known.
inline constexpr std::uint16_t kNoCpu = 0xffff;

struct Wait {
  std::uint64_t begin = 0;     ///< ticks
  std::uint64_t end = 0;       ///< of the state; the wait for a CPU follows it
  std::uint64_t runnable = 0;  ///< blocked: ticks from `end` on until it ran
  reader::ThreadState state =
      reader::ThreadState::kBlocked;  ///< kBlocked, kPreempted, kWoken (its begin is not known), kUnknown (may be none)
  char letter = 0;                    ///< as ThreadStates::letter
  std::uint32_t syscall = 0;          ///< as ThreadStates::syscall
  std::uint32_t by = reader::kNoTask;           ///< as ThreadStates::by
  std::uint16_t cpu = 0;                        ///< where it ran last
  std::uint16_t next_cpu = kNoCpu;              ///< where it ran next
  const reader::SampledFunction* in = nullptr;  ///< blocked: as WaitStacks::code_of
  bool begun_before = false;                    ///< cut: it had begun when the recording of states did
  bool not_over = false;                        ///< cut: it went on when that ended
  /// The call that the waker was in; `thread` alone when it is of the trace, but in no call then. Not of preemptors.
  CallOf waker;
  /// As `waker`, of the thread that ran where an interrupt woke this one (reader::interrupted_task).
  CallOf interrupted;

  std::uint64_t length() const { return end - begin + runnable; }
};

/// State `i` of a thread as a wait, together with the wait for a CPU that follows a blocking (state i + 1 then). Whose
/// code waited, and who the waker was, is not filled in.
Wait wait_at(const reader::ThreadStates& states, std::size_t i);

/// Gives a thread's calls, all of them; valid until the next one is asked for.
using CallsOf = std::function<columns::CallColumns(const reader::Thread&)>;

/// Which thread of the trace is which in the kernel, and back. Keeps references to both.
class StateThreads {
 public:
  explicit StateThreads(const reader::Trace& trace);
  const reader::ThreadStates* states_of(const reader::Thread& thread) const;
  /// The time in which states were recorded, in ticks.
  std::uint64_t recorded_from() const { return trace_.states().source().begin_ticks; }
  std::uint64_t recorded_to() const { return trace_.states().source().end_ticks; }
  /// The thread of the trace that `task` was at `ticks`; null: none is.
  const reader::Thread* thread_of(std::uint32_t task, std::uint64_t ticks) const;

 private:
  const reader::Trace& trace_;
  std::unordered_map<std::uint32_t, std::vector<const reader::Thread*>> by_tid_;
};

/// The waits of a thread that last at least `min_ticks`, in order of time, without the rows of `waker` and
/// `interrupted`.
std::vector<Wait> waits_of(const StateThreads& threads, const reader::ThreadStates& states, std::uint64_t min_ticks);

/// The waits of threads, with the calls of their wakers. Use from one thread.
class Waits {
 public:
  /// Of all threads. Rebuilds the calls of each thread that woke another, one at a time.
  Waits(const reader::Trace& trace, std::uint64_t min_ticks);
  /// The same where calls are at hand. Looks at a thread when it is asked for first.
  Waits(const reader::Trace& trace, std::uint64_t min_ticks, CallsOf calls_of);
  const std::vector<Wait>& of(const reader::Thread& thread) const;

 private:
  std::vector<Wait> without_wakers(const reader::Thread& thread, const reader::ThreadStates& states) const;

  const reader::Trace& trace_;
  const StateThreads threads_;
  const WaitStacks stacks_;
  const std::uint64_t min_ticks_;
  const CallsOf calls_of_;
  mutable std::unordered_map<const reader::Thread*, std::vector<Wait>> waits_;
};

}  // namespace karst::analysis
