// SPDX-License-Identifier: MIT
// Who had the CPU that a thread waited for: shares of the wait, the longest first.
//
// share   the time that one thread, or the idle one, had the CPU meanwhile
// others  threads of other programs. Unless all that ran is recorded (karst run --cpus), it is known of a stretch of
//         theirs who came first and who left last, not who ran between
//
// A thread that can run waits for one CPU at a time. A woken one waits for the CPU that it runs on next. A preempted
// one waits for the CPU that it left. When the kernel moves it to another is not recorded, but no CPU idles while a
// thread waits for it: from where that CPU idles, the thread waits for the one that it ran on next.
//
// A share of a thread of the trace names the innermost call that it was in for most of its longest stretch, by samples.
// What a wait costs to look at is bounded, whatever the trace says: kMostStretches, kMostShares.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "analysis/waits.h"
#include "reader/states.h"
#include "reader/trace.h"

namespace karst::analysis {

struct CpuShare {
  std::uint32_t task = reader::kNoTask;  ///< in States::tasks, or kIdleTask
  std::uint32_t last = reader::kNoTask;  ///< of others: who left last; kNoTask: not known
  bool others = false;                   ///< `task` came first; others may have followed it
  std::uint64_t ticks = 0;
  /// The call that it was in; `thread` alone when it is of the trace, but was in no call.
  CallOf in;
};

/// The shares and `more_ticks` and `unknown` add up to the wait for a CPU.
struct KeptOff {
  std::vector<CpuShare> shares;     ///< the longest first
  std::uint64_t more = 0;           ///< shares beyond kMostShares
  std::uint64_t more_ticks = 0;     ///< of these together
  std::uint64_t unknown = 0;        ///< ticks of which it is not known who had the CPU
  std::uint16_t cpu = kNoCpu;       ///< the one that it waited for
  std::uint16_t moved_to = kNoCpu;  ///< the one that it waited for then; kNoCpu: none

  bool empty() const { return shares.empty(); }
};

inline constexpr std::size_t kMostShares = 16;         // that are told of one wait
inline constexpr std::size_t kMostStretches = 16'384;  // of a CPU's lane that are looked at for one wait

/// Gives the thread of the trace that a task was at that time; null: none.
using ThreadOf = std::function<const reader::Thread*(std::uint32_t task, std::uint64_t ticks)>;

/// Keeps a reference to the trace. Use from one thread.
class KeptOffFinder {
 public:
  /// `calls_of` is asked once for each thread that had a CPU in one question.
  KeptOffFinder(const reader::Trace& trace, CallsOf calls_of);
  /// The same where threads are known by task already.
  KeptOffFinder(const reader::Trace& trace, ThreadOf thread_of, CallsOf calls_of);
  /// Remembered: one wait is told in several places, and calls may have to be rebuilt.
  const KeptOff& of(const Wait& wait) const;
  /// The same of many waits, in their order. Looks at each thread's calls once.
  std::vector<KeptOff> of(std::span<const Wait* const> waits) const;

 private:
  const reader::Trace& trace_;
  const ThreadOf thread_of_;
  const CallsOf calls_of_;
  mutable std::map<std::array<std::uint64_t, 6>, KeptOff> known_;  // by what an answer depends on
};

}  // namespace karst::analysis
