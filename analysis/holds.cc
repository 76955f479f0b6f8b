// SPDX-License-Identifier: MIT
// Each thread's records are replayed by themselves, as a thread lets go what it took; what another one let go is looked
// up afterwards. Clocks of several CPUs are compared there alone, and where a hold follows another one.
#include "analysis/holds.h"

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>

#include "analysis/lock_orders.h"
#include "analysis/values.h"
#include "format/lock.h"
#include "format/note.h"
#include "format/trace.h"

namespace karst::analysis {
namespace {

constexpr std::size_t kMostHeld = 64;      // locks at once: of a thread that has more, orders are not told
constexpr std::size_t kMostKnown = 1024;   // locks at once: of more, the first ones count as not known
constexpr std::size_t kFarthestKept = 64;  // records between letting go, and that it failed
constexpr std::size_t kLeastConvoy = 3;
constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

/// `holds` are in order of begin.
std::vector<Convoy> convoys_of(const std::vector<LockHold>& holds) {
  std::map<std::uint32_t, std::vector<std::size_t>> by_lock;
  for (std::size_t i = 0; i < holds.size(); ++i)
    if (!holds[i].shared) by_lock[holds[i].id].push_back(i);
  std::vector<Convoy> found;
  for (const auto& [id, of] : by_lock) {
    Convoy now;
    const auto end = [&] {
      if (now.holds.size() >= kLeastConvoy) {
        now.begin = holds[now.holds.front()].waited_from;
        now.end = holds[now.holds.back()].end;
        found.push_back(now);
      }
      now.holds.clear();
    };
    for (const std::size_t i : of) {
      const LockHold& hold = holds[i];
      if (!now.holds.empty()) {
        const LockHold& before = holds[now.holds.back()];
        if (hold.waited_from == 0 || hold.waited_from >= before.end || before.thread == hold.thread) end();
      }
      if (hold.waited_from != 0) now.holds.push_back(i);
    }
    end();
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Convoy& a, const Convoy& b) { return a.holds.size() > b.holds.size(); });
  return found;
}

/// Waits that have ended, of one thread for one lock, in order.
using WaitsByLock = std::map<std::pair<const reader::Thread*, std::uint64_t>, std::vector<const LockWait*>>;

/// `holds` are in order of begin.
void join_waits(const WaitsByLock& waits, std::vector<LockHold>& holds) {
  std::map<std::pair<const reader::Thread*, std::uint64_t>, std::uint64_t> before;  // end of the last hold
  for (LockHold& hold : holds) {
    const std::pair key{hold.thread, hold.lock};
    const std::uint64_t free_from = std::exchange(before[key], hold.end);
    const auto of = waits.find(key);
    if (of == waits.end()) continue;
    const auto after = std::upper_bound(of->second.begin(), of->second.end(), hold.begin,
                                        [](std::uint64_t ticks, const LockWait* wait) { return ticks < wait->begin; });
    if (after == of->second.begin()) continue;
    const LockWait& wait = **std::prev(after);
    if (wait.begin >= free_from && wait.begin + wait.duration <= hold.begin) hold.waited_from = wait.begin;
  }
}

}  // namespace

bool has_holds(const reader::Trace& trace) {
  for (const reader::Process& process : trace.processes())
    for (const reader::Function& function : process.functions)
      if (function.note && function.values == format::kLockTaken) return true;
  return false;
}

const std::vector<HoldFinder::Kind>& HoldFinder::kinds_of(std::uint32_t process) {
  const auto [at, fresh] = kinds_.try_emplace(process);
  if (!fresh) return at->second;
  constexpr std::pair<std::string_view, What> kKinds[] = {{format::kLockTaken, What::kTaken},
                                                          {format::kLockReleased, What::kReleased},
                                                          {format::kLockKept, What::kKept},
                                                          {format::kLockMade, What::kMade}};
  const std::vector<reader::Function>& functions = trace_.processes()[process].functions;
  at->second.resize(functions.size());
  for (std::size_t id = 0; id < functions.size(); ++id)
    for (const auto& [values, what] : kKinds)
      if (functions[id].note && functions[id].values == values) at->second[id] = {what, functions[id].name};
  return at->second;
}

void HoldFinder::add(const reader::Thread& thread, const reader::Calls& calls) {
  const std::vector<Kind>& kinds = kinds_of(thread.process);
  OfThread of;
  of.thread = &thread;
  of.last_ticks = calls.last_ticks;
  of.whole = calls.missing_blocks == 0 && thread.lost_events == 0;
  of.from_begin = thread.overwritten_events == 0 && thread.inherited == 0 && !thread.excerpt &&
                  (trace_.processes()[thread.process].flags & format::kProcessForked) == 0;
  for (const reader::Note& note : calls.notes) {
    if (!note.is(format::NoteKind::kRecord) || note.name >= kinds.size()) continue;
    const What what = kinds[note.name].what;
    if (what == What::kNothing) continue;
    const RecordNumbers numbers = record_numbers(calls.bytes_of(note));
    if (numbers.empty() || numbers[0] == 0) {  // as karst resolve --strip leaves them
      stripped_ = true;
      continue;
    }
    if (what == What::kMade) {
      made_[{thread.process, numbers[0]}].push_back(note.ticks);
      continue;
    }
    if (what == What::kKept) {
      const auto end = of.records.rbegin() + static_cast<std::ptrdiff_t>(std::min(of.records.size(), kFarthestKept));
      const auto last = std::find_if(of.records.rbegin(), end, [&](const Record& record) {
        return record.lock == numbers[0] && record.what == What::kReleased;
      });
      if (last != end) of.records.erase(std::next(last).base());
      continue;
    }
    const std::uint32_t function = note.row != reader::kNoParent ? calls.function[note.row] : 0;
    of.records.push_back({note.ticks, numbers[0], function, note.name, what, numbers[1] != 0});
  }
  threads_.push_back(std::move(of));
}

/// All threads' records, one thread after the other.
class HoldFinder::Replay {
 public:
  Replay(HoldFinder& finder, LockHolds& result) : finder_(finder), result_(result) {}

  void run(const OfThread& of, const LockWait* waiting) {
    held_.clear();
    of_ = &of;
    if (!of.from_begin) find_earlier();
    const std::vector<std::uint64_t>& cuts = cuts_of(of.thread->process);
    auto cut = cuts.begin();
    const auto pass_cuts = [&](std::uint64_t ticks) {
      for (; cut != cuts.end() && *cut <= ticks; ++cut) {
        for (const Held& held : held_) end(held, HoldEnd::kUnknown, *cut, 0);
        held_.clear();
      }
    };
    for (const Record& record : of.records) {
      pass_cuts(record.ticks);
      record.what == What::kTaken ? take(record) : release(record);
    }
    if (waiting != nullptr) pass_cuts(waiting->begin);
    if (waiting != nullptr) wait(*waiting);
    pass_cuts(kNever);
    const reader::Process& process = finder_.trace_.processes()[of.thread->process];
    const bool exited = of.thread->exited && of.thread->exited_ticks != 0;
    const std::uint64_t last = exited ? of.thread->exited_ticks : std::max(process.end_ticks, of.last_ticks);
    for (const Held& held : held_)
      end(held, !of.whole ? HoldEnd::kUnknown : exited ? HoldEnd::kThreadEnded : HoldEnd::kTraceEnded, last, 0);
  }

  /// Ends holds that another thread let go.
  void settle() {
    for (auto& [id, of] : let_go_) std::sort(of.begin(), of.end());
    for (std::size_t i = 0; i < result_.holds.size(); ++i) {
      LockHold& hold = result_.holds[i];
      const auto of = let_go_.find(hold.id);
      if (of == let_go_.end() || hold.ended == HoldEnd::kReleased || hold.shared) continue;
      const auto at = std::upper_bound(of->second.begin(), of->second.end(), hold.begin);
      // It may well be let go after its thread has ended.
      if (at == of->second.end() || (hold.ended == HoldEnd::kUnknown && *at > hold.end)) continue;
      hold.end = *at;
      hold.ended = HoldEnd::kReleasedByOther;
    }
    result_.inversions = inversions_of(places_);
    result_.rings = rings_of(places_, result_.inversions, result_.rings_cut);
  }

 private:
  static constexpr std::size_t kEarlier = std::numeric_limits<std::size_t>::max();
  struct Held {
    std::uint32_t id;
    std::uint64_t lock;
    std::size_t hold;  // in the result; kEarlier: it was taken before the history
    std::uint64_t depth;
    bool shared;
  };

  std::uint32_t id_of(std::uint64_t address, std::uint64_t ticks, std::string_view kind) {
    const std::uint32_t process = of_->thread->process;
    std::uint64_t made = 0;
    if (const auto at = finder_.made_.find({process, address}); at != finder_.made_.end())
      made = static_cast<std::uint64_t>(std::upper_bound(at->second.begin(), at->second.end(), ticks) -
                                        at->second.begin());
    const auto [at, fresh] = ids_.try_emplace({process, address, made}, static_cast<std::uint32_t>(ids_.size()));
    if (fresh) result_.locks.push_back({process, address, kind.substr(0, kind.find(' '))});
    return at->second;
  }

  /// What a thread lets go first of all, and takes later if at all, it had before its history begins.
  void find_earlier() {
    std::set<std::uint64_t> seen;
    for (const Record& record : of_->records) {
      if (!seen.insert(record.lock).second || record.what != What::kReleased) continue;
      held_.push_back({id_of(record.lock, record.ticks, kind(record)), record.lock, kEarlier, 1, false});
    }
  }

  /// When records were switched off.
  const std::vector<std::uint64_t>& cuts_of(std::uint32_t process) {
    const auto [at, fresh] = cuts_.try_emplace(process);
    if (!fresh) return at->second;
    const std::vector<Kind>& kinds = finder_.kinds_of(process);
    std::vector<std::uint64_t> ids;  // of records' names, in order
    for (std::size_t id = 0; id < kinds.size(); ++id)
      if (kinds[id].what != What::kNothing) ids.push_back(id);
    for (const reader::Switch& change : finder_.trace_.processes()[process].switches) {
      const auto id = std::lower_bound(ids.begin(), ids.end(), change.first);
      const bool concerns = id != ids.end() && *id < std::uint64_t{change.first} + change.count;
      if (!change.on && (change.first == 0 || concerns)) at->second.push_back(change.begin_ticks);
    }
    std::sort(at->second.begin(), at->second.end());
    return at->second;
  }

  std::string_view kind(const Record& record) const {
    return finder_.kinds_.at(of_->thread->process)[record.name].name;
  }

  void take(const Record& record) {
    const std::string_view name = kind(record);
    const bool shared = name.ends_with("(shared)");
    const std::uint32_t id = id_of(record.lock, record.ticks, name);
    const auto again = std::find_if(held_.begin(), held_.end(), [&](const Held& h) { return h.lock == record.lock; });
    if (again != held_.end() && again->shared && shared && again->id == id) {
      ++again->depth;
      return;
    }
    if (again != held_.end()) {  // nobody saw how it was let go
      end(*again, HoldEnd::kUnknown, record.ticks, 0);
      held_.erase(again);
    }
    if (!record.gives_up) add_orders(id, shared, record.function, record.ticks, false);
    LockHold hold;
    hold.thread = of_->thread;
    hold.kind = name;
    hold.lock = record.lock;
    hold.id = id;
    hold.taken_in = record.function;
    hold.begin = record.ticks;
    hold.shared = shared;
    if (held_.size() == kMostKnown) {
      end(held_.front(), HoldEnd::kUnknown, record.ticks, 0);
      held_.erase(held_.begin());
    }
    held_.push_back({id, record.lock, result_.holds.size(), 1, shared});
    result_.holds.push_back(hold);
  }

  void release(const Record& record) {
    const auto held = std::find_if(held_.rbegin(), held_.rend(), [&](const Held& h) { return h.lock == record.lock; });
    if (held == held_.rend()) {
      let_go_[id_of(record.lock, record.ticks, kind(record))].push_back(record.ticks);
    } else if (--held->depth == 0) {
      end(*held, HoldEnd::kReleased, record.ticks, record.function);
      held_.erase(std::next(held).base());
    }
  }

  void end(const Held& held, HoldEnd how, std::uint64_t ticks, std::uint32_t function) {
    if (held.hold == kEarlier) return;
    LockHold& hold = result_.holds[held.hold];
    hold.ended = how;
    hold.end = std::max(ticks, hold.begin);
    hold.released_in = function;
  }

  /// It did not get the lock until the end.
  void wait(const LockWait& wait) {
    const std::string_view kind = lock_kind(finder_.trace_, of_->thread->process, wait.zone);
    if (!has_holder(kind)) return;
    const bool has = std::any_of(held_.begin(), held_.end(), [&](const Held& h) { return h.lock == wait.lock; });
    if (!has) add_orders(id_of(wait.lock, wait.begin, kind), kind.ends_with("(shared)"), wait.caller, wait.begin, true);
  }

  /// A lock is taken while those of held_ are held.
  void add_orders(std::uint32_t id, bool shared, std::uint32_t function, std::uint64_t ticks, bool waits) {
    if (!of_->whole || held_.size() > kMostHeld) return;  // where parts are missing it may have others by now
    for (std::size_t i = 0; i < held_.size(); ++i) {
      if (held_[i].id == id || held_[i].hold == kEarlier) continue;
      LockPlace place;
      place.order = {of_->thread, result_.holds[held_[i].hold].taken_in, function, ticks, 1, waits};
      place.first_shared = held_[i].shared;
      place.second_shared = shared;
      for (std::size_t guard = 0; guard < held_.size(); ++guard)
        if (guard != i) place.guards.push_back({held_[guard].id, held_[guard].shared});
      std::sort(place.guards.begin(), place.guards.end());
      add_place(places_, held_[i].id, id, std::move(place));
    }
  }

  HoldFinder& finder_;
  LockHolds& result_;
  const OfThread* of_ = nullptr;
  std::map<std::uint32_t, std::vector<std::uint64_t>> cuts_;  // by process
  std::vector<Held> held_;                                    // in the order in which they were taken
  std::map<std::tuple<std::uint32_t, std::uint64_t, std::uint64_t>, std::uint32_t> ids_;
  std::map<std::uint32_t, std::vector<std::uint64_t>>
      let_go_;  // by lock: when a thread let it go that had not taken it
  LockPlaces places_;
};

LockHolds HoldFinder::take(const std::vector<LockWait>& waits) {
  for (auto& [lock, ticks] : made_) std::sort(ticks.begin(), ticks.end());
  std::map<const reader::Thread*, const LockWait*> waiting;  // until the end
  WaitsByLock ended;
  for (const LockWait& wait : waits) {
    if (wait.open)
      waiting[wait.thread] = &wait;
    else
      ended[{wait.thread, wait.lock}].push_back(&wait);
  }
  LockHolds result;
  result.stripped = stripped_;
  Replay replay(*this, result);
  for (const OfThread& of : threads_) {
    const auto at = waiting.find(of.thread);
    const bool is_last = at != waiting.end() && (of.records.empty() || of.records.back().ticks <= at->second->begin);
    replay.run(of, is_last ? at->second : nullptr);
  }
  replay.settle();
  threads_.clear();
  std::stable_sort(result.holds.begin(), result.holds.end(),
                   [](const LockHold& a, const LockHold& b) { return a.begin < b.begin; });
  join_waits(ended, result.holds);
  result.convoys = convoys_of(result.holds);
  return result;
}

std::vector<LockAndUse> locks_with_use(const reader::Trace& trace, const LockNames& names,
                                       const std::vector<LockWait>& waits, const LockHolds& holds,
                                       const FunctionSet* functions) {
  auto uses = use_of_locks(holds, functions);
  std::vector<LockAndUse> all;
  for (Lock& lock : locks_of(trace, names, waits)) {
    const auto use = uses.extract({lock.process, lock.address});
    all.push_back({std::move(lock), use.empty() ? LockUse() : std::move(use.mapped())});
  }
  const auto waited = static_cast<std::ptrdiff_t>(all.size());
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::string_view> kinds;
  for (const LockHold& hold : holds.holds) kinds[{hold.thread->process, hold.lock}] = hold.kind;
  for (auto& [address, use] : uses) {
    Lock lock;
    std::tie(lock.process, lock.address) = address;
    lock.kind = kinds[address].substr(0, kinds[address].find(' '));  // shared or not: it is one lock
    lock.name = names.of(lock.process, lock.address);
    all.push_back({std::move(lock), std::move(use)});
  }
  std::stable_sort(all.begin() + waited, all.end(),
                   [](const LockAndUse& a, const LockAndUse& b) { return a.use.total > b.use.total; });
  return all;
}

void fill_in_holders(const LockHolds& holds, std::vector<LockWait>& waits) {
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::vector<const LockHold*>> by_lock;
  for (const LockHold& hold : holds.holds) by_lock[{hold.thread->process, hold.lock}].push_back(&hold);
  for (LockWait& wait : waits) {
    const auto of = by_lock.find({wait.thread->process, wait.lock});
    if (of == by_lock.end()) continue;
    const auto later = std::upper_bound(of->second.begin(), of->second.end(), wait.begin,
                                        [](std::uint64_t ticks, const LockHold* h) { return ticks < h->begin; });
    // A lock has few owners at once: one that began long ago is looked for among the last ones alone.
    constexpr std::ptrdiff_t kFar = 1000;
    const auto first = later - std::min<std::ptrdiff_t>(kFar, later - of->second.begin());
    for (auto at = first; at != later; ++at) {
      if ((*at)->end <= wait.begin || (*at)->thread == wait.thread) continue;
      ++wait.owners;
      if (wait.holder == 0) wait.holder = (*at)->thread->tid;
      if (wait.holder != (*at)->thread->tid) continue;
      wait.taken_in = (*at)->taken_in;
      wait.taken_known = true;
    }
  }
}

std::map<std::pair<std::uint32_t, std::uint64_t>, LockUse> use_of_locks(const LockHolds& holds,
                                                                        const FunctionSet* functions) {
  std::map<std::pair<std::uint32_t, std::uint64_t>, LockUse> use;
  for (const LockHold& hold : holds.holds) {
    if (functions != nullptr && !functions->contains(hold.thread->process, hold.taken_in)) continue;
    LockUse& of = use[{hold.thread->process, hold.lock}];
    if (hold.ended == HoldEnd::kUnknown) {
      ++of.unknown;
      continue;
    }
    const std::uint64_t ticks = hold.end - hold.begin;
    ++of.holds;
    of.total += ticks;
    if (of.holds != 1 && ticks <= of.longest) continue;
    of.longest = ticks;
    of.longest_in = hold.taken_in;
  }
  for (const Convoy& convoy : holds.convoys) {
    const LockHold& first = holds.holds[convoy.holds.front()];
    const auto of = use.find({first.thread->process, first.lock});
    if (of != use.end()) of->second.convoys.push_back(&convoy);
  }
  return use;
}

}  // namespace karst::analysis
