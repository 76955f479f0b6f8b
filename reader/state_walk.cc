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
  cpus_[cpu].tid = tid;
  if (on_cpu) on_cpu(cpu, ticks, tid);
}

void StateWalk::switched(const StateRecord& r) {
  if (Thread* t = thread(r.tid); t != nullptr) {
    catch_up(r.tid, *t, r.ticks);
    if (t->now.state != ThreadState::kGone) {
      StateNow now;
      now.cpu = r.cpu;
      now.letter = static_cast<char>(r.value & 0xff);
      now.syscall = t->syscall;
      if (now.letter == 'X' || now.letter == 'Z') {
        now.state = ThreadState::kGone;
      } else if ((r.value & format::kSwitchRunnable) != 0) {
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
  Thread* t = thread(r.tid);
  if (t == nullptr) return;
  catch_up(r.tid, *t, r.ticks);
  const bool interrupt = (r.value & 1) != 0;
  if (t->now.state == ThreadState::kRunning) {
    t->pending = true;
    t->pending_by = r.other;
    t->pending_interrupt = interrupt;
    return;
  }
  t->pending = false;
  if (t->now.state != ThreadState::kBlocked && t->now.state != ThreadState::kUnknown) return;
  StateNow now = t->now;
  now.state = ThreadState::kWoken;
  now.by = r.other;
  now.by_interrupt = interrupt;
  enter(r.tid, *t, r.ticks, now);
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
    cpu.lost.end(r.ticks);
    gaps_[cpu.gap].end = r.ticks;
    gaps_[cpu.gap].lost = r.value;
    if (--open_gaps_ == 0) lost_.end(r.ticks);
  }
}

void StateWalk::take(const StateRecord& r) {
  switch (r.kind) {
    case format::kStateSwitch:
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
  Thread* t = thread(r.tid);
  if (t == nullptr) return;
  if (r.kind == format::kStateSyscallEnter || r.kind == format::kStateSyscallExit) {
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
      to.push_back({ticks, kUnknownTid, cpu.tid, 0, number, format::kStateSwitch, 0});
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
      to.push_back({ticks, tid, t.pending_by, t.pending_interrupt ? 1U : 0U, t.now.cpu, format::kStateWaking, 0});
  }
}

StateLog cut_states(const StateLog& log, std::uint64_t begin, std::uint64_t end) {
  std::unordered_map<std::uint32_t, std::size_t> place;
  for (std::size_t i = 0; i < log.tasks.size(); ++i) place.try_emplace(log.tasks[i].tid, i);
  StateLog cut;
  cut.source = log.source;
  cut.source.begin_ticks = std::max(begin, log.source.begin_ticks);
  cut.source.end_ticks = std::max(std::min(end, log.source.end_ticks), cut.source.begin_ticks);
  StateWalk walk([&](std::uint32_t tid) {
    const auto at = place.find(tid);
    return at != place.end() && log.tasks[at->second].of_run;
  });
  const StateRecord* at = log.records.begin();
  for (; at != log.records.end() && at->ticks < begin; ++at) walk.take(*at);
  walk.finish(cut.source.begin_ticks);
  walk.restate(cut.source.begin_ticks, cut.records);
  // Losses and the like that lie in other parts are not this part's.
  cut.source.lost_events = 0;
  if (cut.source.begin_ticks > log.source.begin_ticks) cut.source.overwritten_events = 0;
  for (; at != log.records.end() && at->ticks < end; ++at) {
    cut.records.push_back(*at);
    if (at->kind == format::kStateLostEnd) cut.source.lost_events += at->value;
  }
  std::vector<bool> occurs(log.tasks.size());
  const auto mark = [&](std::uint32_t tid) {
    const auto found = place.find(tid);
    if (found != place.end()) occurs[found->second] = true;
  };
  for (const StateRecord& r : cut.records) {
    mark(r.tid);
    mark(r.other);
  }
  for (std::size_t i = 0; i < log.tasks.size(); ++i)
    if (occurs[i]) cut.tasks.push_back(log.tasks[i]);
  return cut;
}

}  // namespace karst::reader
