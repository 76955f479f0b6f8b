// SPDX-License-Identifier: MIT
// Calls of watched functions as they end: found on the thread's stack of open ones, judged by the thread itself without
// a lock, and noted for the maintenance process if they are to be kept.
#include "runtime/watching/watch.h"

#include <sys/mman.h>

#include "format/moments.h"
#include "runtime/clock/clock.h"
#include "runtime/maintenance/control.h"
#include "runtime/recording/arena.h"
#include "runtime/recording/state.h"
#include "runtime/recording/thread.h"
#include "runtime/system/assertion.h"
#include "runtime/system/memory.h"
#include "runtime/system/syscalls.h"
#include "runtime/watching/seams.h"
#include "runtime/watching/watch_keep.h"
#include "runtime/watching/watch_parts.h"

namespace karst::runtime {

using namespace format;

extern "C" {
__attribute__((visibility("hidden"))) WatchedFunction* karst_watched;
}

namespace {

constexpr std::uint32_t kCandidateWords = kWatchCandidates / 64;

std::uint64_t g_candidates[kCandidateWords];  // bit of a candidate: it is in use; that of number 0 stays set
std::uint32_t g_pending;

std::uint64_t* slots() { return g_arena.table<std::uint64_t>(g_arena.watching_layout().slots_offset); }
ArenaCandidate* candidates() { return g_arena.table<ArenaCandidate>(g_arena.watching_layout().candidates_offset); }

/// What others may have written over, read once: never more than there is.
struct Own {
  ArenaWatchRule rule;
  std::uint32_t first_slot;
};
Own own_of(const ArenaWatch& watch) {
  const std::uint32_t rule = load(watch.rule);
  Own own{watch_rules()[rule < kWatchRules ? rule : 0], load(watch.first_slot)};
  if (own.rule.most > kWatchMost) own.rule.most = kWatchMost;
  if (own.first_slot > kWatchSlots - own.rule.most) own.rule.most = own.first_slot = 0;
  return own;
}

void count(std::uint64_t& counter) { __atomic_add_fetch(&counter, 1, __ATOMIC_RELAXED); }

// ---- candidates --------------------------------------------------------------------------------------

/// A free candidate, taken; 0: there is none. Threads begin to search in different places.
std::uint32_t take_candidate(std::uint32_t thread) {
  for (std::uint32_t n = 0; n < kCandidateWords; ++n) {
    std::uint64_t& word = g_candidates[(thread + n) % kCandidateWords];
    for (std::uint64_t used = load(word); used != ~std::uint64_t{0}; used = load(word)) {
      const auto bit = static_cast<std::uint32_t>(__builtin_ctzll(~used));
      if (exchange_if(word, used, used | std::uint64_t{1} << bit)) return (thread + n) % kCandidateWords * 64 + bit;
    }
  }
  return 0;
}

void tell() {
  if (__atomic_exchange_n(&g_pending, 1U, __ATOMIC_ACQ_REL) == 0 && has_maintenance()) wake_maintenance();
}

// ---- judging, in the thread whose call has ended ------------------------------------------------

struct Ended {
  std::uint32_t function;
  std::uint32_t thread;
  std::uint64_t begin;
  std::uint64_t end;
};

void fill_candidate(std::uint32_t candidate, const Ended& call, std::uint32_t watch, std::uint32_t slot) {
  candidates()[candidate] = {call.begin, call.end, watch, slot, call.thread, g_arena.thread(call.thread).tid};
}

/// Takes the place of the shortest of the watch's calls, if that is shorter. Slots only grow, so the one found is the
/// shortest still when the exchange succeeds.
bool judge_slowest(ArenaWatch& watch, std::uint32_t number, const Ended& call) {
  const std::uint64_t ticks = call.end - call.begin;
  const auto [rule, first_slot] = own_of(watch);
  const std::uint32_t most = rule.most;
  std::uint64_t* const own = slots() + first_slot;
  if (most == 0) return false;
  for (;;) {
    std::uint32_t at = 0;
    std::uint64_t least = kNeverKept;
    for (std::uint32_t i = 0; i < most; ++i) {
      const std::uint64_t slot = load(own[i]);
      if (slot >= least) continue;
      least = slot;
      at = i;
    }
    if (least != 0 && slot_ticks(least) >= (ticks < kWatchLongest ? ticks : kWatchLongest)) return false;
    const std::uint32_t candidate = take_candidate(call.thread);
    if (candidate == 0) {
      count(watching().without_candidate);
      return false;
    }
    fill_candidate(candidate, call, number, first_slot + at);
    if (exchange_if(own[at], least, make_slot(ticks, candidate))) {
      if (slot_candidate(least) != 0) free_candidate(slot_candidate(least));
      return true;
    }
    free_candidate(candidate);
  }
}

bool judge_over(ArenaWatch& watch, std::uint32_t number, const Ended& call) {
  if (call.end - call.begin < watch.over_ticks) return false;
  const std::uint32_t most = own_of(watch).rule.most;
  if (load(watch.taken) >= most) {
    count(watch.given_up);
    return false;
  }
  if (watch.every_ticks != 0) {
    const std::uint64_t last = load(watch.last_ticks);
    if ((last != 0 && call.end - last < watch.every_ticks) || !exchange_if(watch.last_ticks, last, call.end)) {
      count(watch.given_up);
      return false;
    }
  }
  if (__atomic_fetch_add(&watch.taken, 1, __ATOMIC_ACQ_REL) >= most) {
    count(watch.given_up);
    return false;
  }
  const std::uint32_t slot = __atomic_fetch_add(&watching().slots_used, 1, __ATOMIC_ACQ_REL);
  const std::uint32_t candidate = slot < kWatchSlots && reserve_slots(slot, 1) ? take_candidate(call.thread) : 0;
  if (candidate == 0) {
    if (slot >= kWatchSlots) store(watching().slots_used, kWatchSlots);
    count(watching().without_candidate);
    return false;
  }
  fill_candidate(candidate, call, number, slot);
  store(slots()[slot], make_slot(call.end - call.begin, candidate));
  return true;
}

/// Between the two times the function was switched off or on: enter and exit are not of the same call, or others
/// between them are not known.
bool was_switched(std::uint32_t id, std::uint64_t begin, std::uint64_t end) {
  const std::uint64_t made = load(g_arena.control().switch_count);
  const std::uint64_t oldest = made > kArenaSwitches ? made - kArenaSwitches : 0;
  for (std::uint64_t i = made; i != oldest; --i) {
    const ArenaSwitch& s = g_arena.switches()[(i - 1) % kArenaSwitches];
    const std::uint64_t done = load(s.end_ticks);
    if (done != 0 && done <= begin) return false;
    if (s.begin_ticks <= end && (s.first == 0 || (id >= s.first && id - s.first < s.count))) return true;
  }
  return oldest != 0;
}

void judge(const Ended& call) {
  if (call.end <= call.begin || call.begin < load(karst_watched[call.function].since) ||
      was_switched(call.function, call.begin, call.end))
    return;
  bool kept = false;
  WatchedFunction& function = karst_watched[call.function];
  for_each_watch(load(function.first), [&](ArenaWatch& watch, std::uint32_t number) {
    const bool slowest = own_of(watch).rule.kind == static_cast<std::uint32_t>(MomentKind::kSlowest);
    if (!has_ended(watch))
      kept = (slowest ? judge_slowest(watch, number, call) : judge_over(watch, number, call)) || kept;
    return true;
  });
  if (!kept) return;
  // Others may store a lower one over it, which costs looks and loses nothing.
  store(function.limit, watch_limit(call.function));
  tell();
}

// ---- the thread's stack of open calls -----------------------------------------------------------

WatchEntry* stack_of(WatchEntry* top) {
  return reinterpret_cast<WatchEntry*>(align_down(reinterpret_cast<std::uintptr_t>(top) - 1, KARST_WATCH_STACK)) + 1;
}

/// Empty; its first entry is nobody's, so that an exit always finds one below.
WatchEntry* make_stack() {
  const long got = sys::mmap(0, std::size_t{2} * KARST_WATCH_STACK, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
  if (sys::failed(got)) return nullptr;
  const auto begin = static_cast<std::uintptr_t>(got);
  const std::uintptr_t stack = align_up(begin, KARST_WATCH_STACK);
  if (stack != begin) sys::munmap(reinterpret_cast<void*>(begin), stack - begin);
  const std::uintptr_t end = begin + std::uintptr_t{2} * KARST_WATCH_STACK;
  if (stack + KARST_WATCH_STACK != end)
    sys::munmap(reinterpret_cast<void*>(stack + KARST_WATCH_STACK), end - stack - KARST_WATCH_STACK);
  return reinterpret_cast<WatchEntry*>(stack) + 1;
}

bool is_full(const WatchEntry* top) { return reinterpret_cast<std::uintptr_t>(top) % KARST_WATCH_STACK == 0; }

/// Entries of calls whose exit never came (a function that was switched off meanwhile): stacks grow down, so no call is
/// open below the one that begins. Those of other stacks of the program's may go, too.
void drop_gone(ThreadState& state, std::uintptr_t pointer) {
  WatchEntry* const top = state.watch;
  WatchEntry* to = stack_of(top);
  for (WatchEntry* e = to; e != top; ++e)
    if (e->enter != 0 && e->pointer > pointer) *to++ = *e;
  for (WatchEntry* e = to; e != top; ++e) e->enter = 0;
  store(state.watch, to);
}

std::uint64_t full_ticks(std::uint32_t epoch, Event e) {
  return std::uint64_t{epoch & ~0xffU} << 32 | e >> KARST_EVENT_TICK_SHIFT;
}

bool same_function(std::uint32_t a, std::uint32_t b) {
  const ArenaFunction* functions = g_arena.functions();
  return a == b || functions[a].address == functions[b].address;
}

ThreadState* own_watch_state() {
  ThreadState* state = karst_state;
  return load(state->live) != 0 && load(state->ignored) == 0 ? state : nullptr;
}

}  // namespace

std::uint64_t watch_limit(std::uint32_t id) {
  std::uint64_t limit = kNeverKept;
  for_each_watch(load(karst_watched[id].first), [&limit](const ArenaWatch& watch, std::uint32_t) {
    const auto [rule, first_slot] = own_of(watch);
    std::uint64_t own = watch.over_ticks;
    if (rule.kind == static_cast<std::uint32_t>(MomentKind::kSlowest)) {
      own = kNeverKept;
      for (std::uint32_t i = 0; i < rule.most && own != 0; ++i) {
        const std::uint64_t slot = load(slots()[first_slot + i]);
        const std::uint64_t needed = slot == 0 ? 0 : slot_ticks(slot) + 1;
        own = needed < own ? needed : own;
      }
    }
    if (!has_ended(watch)) limit = own < limit ? own : limit;
    return true;
  });
  return limit;
}

void free_candidate(std::uint32_t candidate) {
  if (candidate >= kWatchCandidates) return;
  __atomic_and_fetch(&g_candidates[candidate / 64], ~(std::uint64_t{1} << candidate % 64), __ATOMIC_ACQ_REL);
}

std::uint32_t next_candidate(std::uint32_t from) {
  for (std::uint32_t candidate = from < 1 ? 1 : from; candidate < kWatchCandidates;) {
    const std::uint64_t left = load(g_candidates[candidate / 64]) >> candidate % 64;
    if (left != 0) return candidate + static_cast<std::uint32_t>(__builtin_ctzll(left));
    candidate = (candidate / 64 + 1) * 64;
  }
  return 0;
}

void renew_candidates() {
  g_pending = 0;
  zero(g_candidates, sizeof g_candidates);
  g_candidates[0] = 1;
}

bool take_pending() { return __atomic_exchange_n(&g_pending, 0U, __ATOMIC_ACQ_REL) != 0; }

extern "C" void karst_watch_enter(Event enter, std::uintptr_t pointer) {
  ThreadState* state = own_watch_state();
  if (state == nullptr) return;
  if (state->watch == nullptr) {
    const sys::SignalsBlocked guard;
    if (state->watch == nullptr) store(state->watch, make_stack());
    if (state->watch == nullptr) return count(watching().too_deep);
  }
  if (is_full(state->watch)) {
    const sys::SignalsBlocked guard;
    if (is_full(state->watch)) drop_gone(*state, pointer);
    if (is_full(state->watch)) return count(watching().too_deep);
  }
  WatchEntry* const entry = state->watch;
  store(state->watch, entry + 1);
  entry->epoch = state->epoch;
  entry->pointer = pointer;
  entry->limit = load(karst_watched[event_function(enter)].limit);
  store(entry->enter, enter);
}

extern "C" void karst_watch_exit(Event exit, std::uintptr_t pointer) {
  ThreadState* state = own_watch_state();
  if (state == nullptr || state->watch == nullptr) return;
  WatchEntry* const top = state->watch;
  WatchEntry* const first = stack_of(top);
  KARST_ASSERT(reinterpret_cast<std::uintptr_t>(top) % sizeof(WatchEntry) == 0 && first <= top);
  const std::uint32_t id = event_function(exit);
  WatchEntry* found = nullptr;
  WatchEntry* of_same_id = nullptr;  // code of -finstrument-functions may have pushed something meanwhile
  bool on_top = true;
  bool found_on_top = false;
  for (WatchEntry* e = top; e != first && found == nullptr;) {
    --e;
    if (e->enter == 0) continue;
    if (e->pointer == pointer && same_function(event_function(e->enter), id)) {
      found = e;
      found_on_top = on_top;
    } else if (of_same_id == nullptr && event_function(e->enter) == id) {
      of_same_id = e;
    }
    on_top = false;
  }
  if (found == nullptr && of_same_id != nullptr && is_called_by_address(id)) found = of_same_id;
  if (found == nullptr) return;
  const WatchEntry entry = *found;
  store(found->enter, Event{0});
  found->pointer = 0;
  if (found_on_top) store(state->watch, found);
  judge({event_function(entry.enter), state->thread, full_ticks(entry.epoch, entry.enter),
         full_ticks(state->epoch, exit)});
}

void calls_left(std::uintptr_t from, std::uintptr_t until) {
  if (!is_watching()) return;
  ThreadState* state = own_watch_state();
  if (state == nullptr || state->watch == nullptr) return;
  WatchEntry* const top = state->watch;
  WatchEntry* const first = stack_of(top);
  const std::uint64_t end = event_time();
  bool on_top = true;
  for (WatchEntry* e = top; e != first;) {
    --e;
    if (e->enter == 0) continue;
    if (e->pointer < from || e->pointer >= until) {
      on_top = false;
      continue;
    }
    const WatchEntry entry = *e;
    store(e->enter, Event{0});
    e->pointer = 0;
    if (on_top) store(state->watch, e);
    judge({event_function(entry.enter), state->thread, full_ticks(entry.epoch, entry.enter), end});
  }
}

void leave_watch(ThreadState& state) {
  WatchEntry* const top = state.watch;
  if (top == nullptr) return;
  store(state.watch, static_cast<WatchEntry*>(nullptr));
  sys::munmap(stack_of(top) - 1, KARST_WATCH_STACK);
}

}  // namespace karst::runtime
