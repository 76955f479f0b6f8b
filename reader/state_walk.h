// SPDX-License-Identifier: MIT
// The one place that knows what records of thread states mean: goes through them in order of time and says which state
// each thread of the run enters when, and who is on each CPU. Columns are made of it (States), excerpts are made with
// it (excerpt_states), and collectors forget their oldest records with it (StateFold).
//
// Three things need care.
//
// Lost records. In a gap of CPU c any thread may have begun to run on c, so whoever is not known to run elsewhere is
// unknown from the gap's begin (or from the begin of its state, if that lies in the gap) until its next record. A
// thread that runs on another CPU goes on running there.
//
// Wakings that come before the switch. A thread on its way to sleep may be woken by another CPU before its own has
// recorded the switch. Such a waking is kept; if the thread then runs again without another waking it was this one, and
// the thread was never blocked. If another one comes, the first had met it awake.
//
// Records that the kernel left out without a word. Who leaves a CPU, wakes or makes another, or calls the system was on
// that CPU. If by the records somebody else was, or the thread was elsewhere or waited, one is missing, behind the last
// that fits. From that one on it is not known what the thread did that had to go, up to its next record, nor what the
// thread did that had come, up to this one, nor who was on the CPU. Likewise a thread that is woken twice ran in
// between. Such a doubt is told as records too (on_doubt): added to the others they say it where it begins.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "format/trace.h"
#include "reader/column.h"
#include "reader/states.h"

namespace karst::reader {

/// A thread's state with the kernel's numbers in it.
struct StateNow {
  ThreadState state = ThreadState::kUnknown;
  char letter = 0;
  std::uint16_t cpu = 0;
  std::uint32_t syscall = 0;               ///< 1 + number; 0: in none or not known
  std::uint32_t by = format::kUnknownTid;  ///< tid
  bool by_interrupt = false;
};

/// Times in which something holds, apart from each other and in order; the last may go on.
class Stretches {
 public:
  void begin(std::uint64_t ticks);
  void end(std::uint64_t ticks);
  bool open() const { return !pairs_.empty() && pairs_.back().second == kForEver; }
  /// The begin of the first that ends behind `ticks`, or kForEver.
  std::uint64_t next(std::uint64_t ticks) const;

  static constexpr std::uint64_t kForEver = ~std::uint64_t{0};

 private:
  std::vector<std::pair<std::uint64_t, std::uint64_t>> pairs_;
};

/// take() the records in order of time. Callbacks, which may be left empty, come in order of time for each thread and
/// each CPU; a thread's is made when the next record of it is met, or by finish().
class StateWalk {
 public:
  /// `of_run` says for a tid whether its states are wanted.
  explicit StateWalk(std::function<bool(std::uint32_t)> of_run) : of_run_(std::move(of_run)) {}
  /// Goes on from where `other` is, beside it; what that one calls, this one calls too.
  StateWalk(const StateWalk& other, std::function<bool(std::uint32_t)> of_run) : StateWalk(other) {
    of_run_ = std::move(of_run);
  }

  /// A thread enters a state.
  std::function<void(std::uint32_t tid, std::uint64_t begin, const StateNow&)> on_state;
  /// The state that a thread entered last was this one.
  std::function<void(std::uint32_t tid, const StateNow&)> on_amend;
  /// From now on this thread, 0 (the idle one) or kUnknownTid is on the CPU.
  std::function<void(std::uint16_t cpu, std::uint64_t begin, std::uint32_t tid)> on_cpu;
  /// What a thread or a CPU did is not known from this record's time on, as the one that is being taken shows: belongs
  /// before that one, behind all others that are not later.
  std::function<void(const format::StateRecord&)> on_doubt;

  void take(const format::StateRecord& record);
  /// Nothing is known behind `end`.
  void finish(std::uint64_t end);
  /// After finish(ticks): records that bring another walk to where this one is, all at `ticks`.
  void restate(std::uint64_t ticks, Column<format::StateRecord>& to) const;
  const std::vector<StateGap>& gaps() const { return gaps_; }
  /// Places at which the kernel left out at least one record.
  std::uint64_t left_out() const { return left_out_; }

 private:
  struct Thread {
    StateNow now;
    std::uint64_t since = 0;
    std::uint32_t syscall = 0;
    bool pending = false;  ///< a waking came while it ran
    bool pending_interrupt = false;
    std::uint32_t pending_by = format::kUnknownTid;
    std::vector<format::StateRecord> wakings;  ///< all that came while it ran, if one is pending
  };
  struct Cpu {
    std::uint32_t tid = format::kUnknownTid;
    std::uint64_t seen = 0;  ///< of the last record that tells who was on it
    Stretches lost;
    std::size_t gap = 0;  ///< the open one's place in gaps_
  };
  Thread* thread(std::uint32_t tid);
  void enter(std::uint32_t tid, Thread& thread, std::uint64_t ticks, const StateNow& now);
  void catch_up(std::uint32_t tid, Thread& thread, std::uint64_t ticks);
  void doubt(std::uint32_t tid, Thread& thread, std::uint64_t ticks);
  void doubt_cpu(std::uint16_t number, Cpu& cpu);
  void leave_unseen(std::uint32_t tid, Thread& thread);
  void ran(std::uint16_t number, std::uint32_t tid, std::uint64_t ticks);
  void put_on_cpu(std::uint16_t cpu, std::uint64_t ticks, std::uint32_t tid);
  void switched(const format::StateRecord& record);
  void woken(const format::StateRecord& record);
  void wake(Thread& thread, const format::StateRecord& record);
  void restored(const format::StateRecord& record);
  void lose(const format::StateRecord& record);

  std::function<bool(std::uint32_t)> of_run_;
  std::unordered_map<std::uint32_t, Thread> threads_;
  std::map<std::uint16_t, Cpu> cpus_;
  std::vector<StateGap> gaps_;
  Stretches lost_;  ///< on any CPU
  std::size_t open_gaps_ = 0;
  std::uint64_t left_out_ = 0;
  std::uint64_t now_ = 0;  ///< of the record that is being taken
};

}  // namespace karst::reader
