// SPDX-License-Identifier: MIT
#include "reader/state_walk.h"

#include <algorithm>
#include <utility>

namespace karst::reader {

using format::kUnknownTid;
using format::StateRecord;

void Stretches::begin(std::uint64_t ticks) {
  if (open()) return;
  // Those that touch become one.
  if (!pairs_.empty() && pairs_.back().second >= ticks) {
    pairs_.back().second = kForEver;
  } else {
    pairs_.emplace_back(ticks, kForEver);
  }
}

void Stretches::end(std::uint64_t ticks) {
  if (open()) pairs_.back().second = std::max(ticks, pairs_.back().first);
}

std::uint64_t Stretches::next(std::uint64_t ticks) const {
  const auto at = std::upper_bound(pairs_.begin(), pairs_.end(), ticks,
                                   [](std::uint64_t t, const auto& pair) { return t < pair.second; });
  return at != pairs_.end() ? at->first : kForEver;
}

StateWalk::Thread* StateWalk::thread(std::uint32_t tid) {
  if (tid == 0 || tid == kUnknownTid) return nullptr;
  const auto at = threads_.find(tid);
  if (at != threads_.end()) return &at->second;
  return of_run_(tid) ? &threads_[tid] : nullptr;
}

// What the thread did may have become unknown in a gap since.
void StateWalk::catch_up(std::uint32_t tid, Thread& t, std::uint64_t ticks) {
  if (t.now.state == ThreadState::kUnknown || t.now.state == ThreadState::kGone) return;
  std::uint64_t gap = Stretches::kForEver;
  if (t.now.state == ThreadState::kRunning) {
    const auto cpu = cpus_.find(t.now.cpu);
    if (cpu != cpus_.end()) gap = cpu->second.lost.next(t.since);
  } else {
    gap = lost_.next(t.since);
  }
  if (gap >= ticks) return;
  t.syscall = 0;
  t.pending = false;
  StateNow unknown;
  unknown.cpu = t.now.cpu;
  enter(tid, t, std::max(gap, t.since), unknown);
}

void StateWalk::enter(std::uint32_t tid, Thread& t, std::uint64_t ticks, const StateNow& now) {
  t.now = now;
  t.since = ticks;
  if (on_state) on_state(tid, ticks, now);
}

void StateWalk::put_on_cpu(std::uint16_t cpu, std::uint64_t ticks, std::uint32_t tid) {
  Cpu& of = cpus_[cpu];
  of.tid = tid;
  of.seen = ticks;
  if (on_cpu) on_cpu(cpu, ticks, tid);
}

// From `ticks` on, or from the begin of its state, it is not known what the thread did.
void StateWalk::doubt(std::uint32_t tid, Thread& t, std::uint64_t ticks) {
  ticks = std::max(ticks, t.since);
  const std::vector<StateRecord> wakings = t.pending ? std::move(t.wakings) : std::vector<StateRecord>();
  t.syscall = 0;
  t.pending = false;
  StateNow now;
  now.cpu = t.now.cpu;
  enter(tid, t, ticks, now);
  if (on_doubt) on_doubt({ticks, tid, kUnknownTid, 0, now.cpu, format::kStateAt, 0});
  // These did not come while it ran.
  for (const StateRecord& waking : wakings)
    if (waking.ticks > ticks) wake(t, waking);
  catch_up(tid, t, now_);
}

void StateWalk::doubt_cpu(std::uint16_t number, Cpu& cpu) {
  put_on_cpu(number, cpu.seen, kUnknownTid);
  if (on_doubt) on_doubt({cpu.seen, kUnknownTid, kUnknownTid, 0, number, format::kStateLeaveCpu, 0});
}

// A thread that runs, by the records, has left its CPU without one.
void StateWalk::leave_unseen(std::uint32_t tid, Thread& t) {
  const auto cpu = cpus_.find(t.now.cpu);
  ++left_out_;
  if (cpu == cpus_.end() || cpu->second.tid != tid) return doubt(tid, t, t.since);
  doubt(tid, t, cpu->second.seen);
  doubt_cpu(cpu->first, cpu->second);
}

// At `ticks` `tid` was on the CPU. If that is not known: at least somebody who comes there then was not.
void StateWalk::ran(std::uint16_t number, std::uint32_t tid, std::uint64_t ticks) {
  Cpu& cpu = cpus_[number];
  const std::uint64_t seen = cpu.seen;
  const std::uint64_t before = left_out_;
  Thread* const t = thread(tid);
  if (t != nullptr) catch_up(tid, *t, ticks);
  if (cpu.tid != tid && cpu.tid != kUnknownTid) {
    Thread* const other = thread(cpu.tid);
    if (other != nullptr) catch_up(cpu.tid, *other, ticks);
    if (other != nullptr && other->now.state == ThreadState::kRunning && other->now.cpu == number) {
      leave_unseen(cpu.tid, *other);
    } else if (tid != kUnknownTid && (other != nullptr || t != nullptr)) {
      // Between two threads that are not of the run nothing needs to be recorded.
      ++left_out_;
      doubt_cpu(number, cpu);
    }
  }
  cpu.seen = std::max(cpu.seen, ticks);
  // A thread that has ended still has some way to go on its CPU, but may be gone from it unseen.
  if (t == nullptr || t->now.state == ThreadState::kGone) return;
  if (t->now.state != ThreadState::kRunning || t->now.cpu != number) {
    if (t->now.state == ThreadState::kRunning) leave_unseen(tid, *t);
    if (t->now.state != ThreadState::kUnknown) {
      if (left_out_ == before) ++left_out_;
      doubt(tid, *t, seen);
    }
    StateNow now;
    now.state = ThreadState::kRunning;
    now.cpu = number;
    enter(tid, *t, ticks, now);
  }
  if (cpu.tid != tid) put_on_cpu(number, ticks, tid);
}

void StateWalk::switched(const StateRecord& r) {
  ran(r.cpu, r.tid, r.ticks);
  if (Thread* t = thread(r.tid); t != nullptr) {
    if (t->now.state != ThreadState::kGone) {
      StateNow now;
      now.cpu = r.cpu;
      now.letter = static_cast<char>(r.value & 0xff);
      now.syscall = t->syscall;
      if (now.letter == 'X' || now.letter == 'Z') {
        now.state = ThreadState::kGone;
      } else if ((r.value & format::kLeaveRunnable) != 0) {
        now.state = ThreadState::kPreempted;
        now.by = r.other;
      } else {
        now.state = ThreadState::kBlocked;
      }
      enter(r.tid, *t, r.ticks, now);
    }
  }
  if (Thread* t = thread(r.other); t != nullptr) {
    catch_up(r.other, *t, r.ticks);
    if (t->now.state == ThreadState::kRunning) leave_unseen(r.other, *t);
    if (t->now.state == ThreadState::kBlocked && t->pending) {
      StateNow woken = t->now;
      woken.state = ThreadState::kWoken;
      woken.by = t->pending_by;
      woken.by_interrupt = t->pending_interrupt;
      if (on_amend) on_amend(r.other, woken);
    }
    t->pending = false;
    StateNow now;
    now.state = ThreadState::kRunning;
    now.cpu = r.cpu;
    enter(r.other, *t, r.ticks, now);
  }
  put_on_cpu(r.cpu, r.ticks, r.other);
}

void StateWalk::woken(const StateRecord& r) {
  if ((r.value & format::kWakingRestated) == 0) ran(r.cpu, r.other, r.ticks);
  if (Thread* t = thread(r.tid); t != nullptr) wake(*t, r);
}

void StateWalk::wake(Thread& t, const StateRecord& r) {
  catch_up(r.tid, t, r.ticks);
  const bool interrupt = (r.value & format::kWakingByInterrupt) != 0;
  if (t.now.state == ThreadState::kRunning) {
    if (!t.pending) t.wakings.clear();
    t.wakings.push_back(r);
    t.pending = true;
    t.pending_by = r.other;
    t.pending_interrupt = interrupt;
    return;
  }
  // Nobody is woken who may run; unless it ran and went to wait again.
  if (t.now.state == ThreadState::kWoken) {
    ++left_out_;
    doubt(r.tid, t, t.since);
  }
  t.pending = false;
  if (t.now.state != ThreadState::kBlocked && t.now.state != ThreadState::kUnknown) return;
  StateNow now = t.now;
  now.state = ThreadState::kWoken;
  now.by = r.other;
  now.by_interrupt = interrupt;
  enter(r.tid, t, r.ticks, now);
}

void StateWalk::restored(const StateRecord& r) {
  Thread* t = thread(r.tid);
  if (t == nullptr) return;
  const std::uint32_t state = r.value & format::kStateAtState;
  if (state > static_cast<std::uint32_t>(ThreadState::kGone)) return;
  StateNow now;
  now.state = static_cast<ThreadState>(state);
  now.letter = static_cast<char>(r.value >> format::kStateAtLetterShift & 0xff);
  now.cpu = r.cpu;
  now.syscall = r.value >> format::kStateAtSyscallShift;
  now.by = r.other;
  now.by_interrupt = (r.value & format::kStateAtInterrupt) != 0;
  t->syscall = now.syscall;
  t->pending = now.state == ThreadState::kBlocked && (r.value & format::kStateAtEarly) != 0;
  if (t->pending) {
    t->pending_by = std::exchange(now.by, kUnknownTid);
    t->pending_interrupt = std::exchange(now.by_interrupt, false);
  }
  enter(r.tid, *t, r.ticks, now);
  if (now.state == ThreadState::kRunning) put_on_cpu(r.cpu, r.ticks, r.tid);
}

void StateWalk::lose(const StateRecord& r) {
  Cpu& cpu = cpus_[r.cpu];
  if (r.kind == format::kStateLostBegin) {
    if (cpu.lost.open()) return;
    cpu.lost.begin(r.ticks);
    cpu.gap = gaps_.size();
    gaps_.push_back({r.ticks, Stretches::kForEver, r.cpu, 0});
    if (open_gaps_++ == 0) lost_.begin(r.ticks);
    put_on_cpu(r.cpu, r.ticks, kUnknownTid);
  } else if (cpu.lost.open()) {
    cpu.seen = r.ticks;
    cpu.lost.end(r.ticks);
    gaps_[cpu.gap].end = r.ticks;
    gaps_[cpu.gap].lost = r.value;
    if (--open_gaps_ == 0) lost_.end(r.ticks);
  }
}

void StateWalk::take(const StateRecord& r) {
  now_ = r.ticks;
  switch (r.kind) {
    case format::kStateLeaveCpu:
      return switched(r);
    case format::kStateWaking:
      return woken(r);
    case format::kStateAt:
      return restored(r);
    case format::kStateLostBegin:
    case format::kStateLostEnd:
      return lose(r);
    default:
      break;
  }
  const bool called = r.kind == format::kStateSyscallEnter || r.kind == format::kStateSyscallExit;
  if (called || r.kind == format::kStateExit) ran(r.cpu, r.tid, r.ticks);
  if (r.kind == format::kStateNewThread) ran(r.cpu, r.other, r.ticks);
  Thread* t = thread(r.tid);
  if (t == nullptr) return;
  if (called) {
    t->syscall = r.kind == format::kStateSyscallEnter && r.value < 0xffff ? r.value + 1 : 0;
  } else if (r.kind == format::kStateNewThread || r.kind == format::kStateExit) {
    catch_up(r.tid, *t, r.ticks);
    const bool made = r.kind == format::kStateNewThread;
    // ftrace's filter has forgotten a thread that ends, so the switch away from it may be missing.
    const auto cpu = cpus_.find(r.cpu);
    if (!made && cpu != cpus_.end() && cpu->second.tid == r.tid) put_on_cpu(r.cpu, r.ticks, kUnknownTid);
    StateNow now;
    now.state = made ? ThreadState::kWoken : ThreadState::kGone;
    now.by = made ? r.other : kUnknownTid;
    now.cpu = r.cpu;
    t->syscall = 0;
    t->pending = false;
    enter(r.tid, *t, r.ticks, now);
  }
}

void StateWalk::finish(std::uint64_t end) {
  for (auto& [tid, t] : threads_) catch_up(tid, t, end);
  for (StateGap& gap : gaps_)
    if (gap.end == Stretches::kForEver) gap.end = std::max(end, gap.begin);
}

void StateWalk::restate(std::uint64_t ticks, Column<StateRecord>& to) const {
  for (const auto& [number, cpu] : cpus_) {
    // Threads of the run say themselves where they run.
    if (cpu.tid != kUnknownTid && !threads_.contains(cpu.tid))
      to.push_back({ticks, kUnknownTid, cpu.tid, 0, number, format::kStateLeaveCpu, 0});
    if (cpu.lost.open()) to.push_back({ticks, 0, 0, 0, number, format::kStateLostBegin, 0});
  }
  std::vector<std::uint32_t> tids;
  for (const auto& [tid, t] : threads_)
    if (t.now.state != ThreadState::kUnknown && t.now.state != ThreadState::kGone) tids.push_back(tid);
  std::sort(tids.begin(), tids.end());
  for (const std::uint32_t tid : tids) {
    const Thread& t = threads_.at(tid);
    const std::uint32_t syscall = t.now.state == ThreadState::kBlocked ? t.now.syscall : t.syscall;
    const bool early = t.pending && t.now.state == ThreadState::kBlocked;
    const bool interrupt = early ? t.pending_interrupt : t.now.by_interrupt;
    const std::uint32_t value =
        static_cast<std::uint32_t>(t.now.state) | (early ? std::uint32_t{format::kStateAtEarly} : 0) |
        (interrupt ? std::uint32_t{format::kStateAtInterrupt} : 0) |
        static_cast<std::uint32_t>(static_cast<unsigned char>(t.now.letter)) << format::kStateAtLetterShift |
        syscall << format::kStateAtSyscallShift;
    to.push_back({ticks, tid, early ? t.pending_by : t.now.by, value, t.now.cpu, format::kStateAt, 0});
    if (t.pending && !early)
      to.push_back({ticks, tid, t.pending_by,
                    std::uint32_t{format::kWakingRestated} |
                        (t.pending_interrupt ? std::uint32_t{format::kWakingByInterrupt} : 0),
                    t.now.cpu, format::kStateWaking, 0});
  }
}

}  // namespace karst::reader
