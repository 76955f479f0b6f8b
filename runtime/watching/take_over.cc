// SPDX-License-Identifier: MIT
// Takes over which functions are to be watched, as requesters enter it (format/watch.h), and ends watches or lets them
// go on. One thread at a time does so; hooks find the result without a lock.
#include <sys/mman.h>

#include "runtime/clock/clock.h"
#include "runtime/maintenance/control.h"
#include "runtime/recording/arena.h"
#include "runtime/recording/seams.h"
#include "runtime/recording/thread.h"
#include "runtime/system/lock.h"
#include "runtime/system/memory.h"
#include "runtime/system/message.h"
#include "runtime/system/patch_lock.h"
#include "runtime/system/syscalls.h"
#include "runtime/timing/rate.h"
#include "runtime/watching/seams.h"
#include "runtime/watching/watch.h"
#include "runtime/watching/watch_keep.h"
#include "runtime/watching/watch_parts.h"

namespace karst::runtime {

using namespace format;

namespace {

WipedLock g_lock;         // of taking watches over
std::uint32_t g_changes;  // ArenaWatching::changes as far as they are applied

/// Memory for all that watching needs, when the first watch comes.
bool begin_watching() {
  if (is_watching()) return true;
  const std::uint64_t size = sizeof(WatchedFunction) * (std::uint64_t{kMaxFunctionId} + 1);
  if (!g_arena.reserve_part(g_arena.watching_layout().candidates_offset,
                            sizeof(ArenaCandidate) * std::uint64_t{kWatchCandidates}) ||
      !prepare_keeping())
    return false;
  const long got = sys::mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
  if (sys::failed(got)) return false;
  renew_candidates();
  store(karst_watched, reinterpret_cast<WatchedFunction*>(got));
  choose_hooks();
  return true;
}

/// The function's hooks find the watch from now on.
void link(std::uint32_t id, ArenaWatch& watch, std::uint32_t number) {
  WatchedFunction& function = karst_watched[id];
  if (function.first == 0) store(function.since, event_time());
  watch.next = function.first;
  store(function.first, number + 1);
}

bool is_linked(std::uint32_t id, std::uint32_t number) {
  bool found = false;
  for_each_watch(karst_watched[id].first, [&](const ArenaWatch&, std::uint32_t n) {
    found = n == number;
    return !found;
  });
  return found;
}

bool take_over(ArenaWatch& watch, std::uint32_t number) {
  const std::uint32_t number_of_rule = load(watch.rule);
  const std::uint32_t id = load(watch.function);
  const ArenaWatchRule rule = watch_rules()[number_of_rule < kWatchRules ? number_of_rule : 0];
  const bool slowest = rule.kind == static_cast<std::uint32_t>(MomentKind::kSlowest);
  const bool over = rule.kind == static_cast<std::uint32_t>(MomentKind::kOver);
  if (number_of_rule >= kWatchRules || id == 0 || id > g_arena.function_count() || (!slowest && !over) ||
      rule.most == 0 || rule.most > kWatchMost || (over && rule.over_ns == 0))
    return false;
  if (!begin_watching()) return false;
  watch.over_ticks = over ? ticks_of(rule.over_ns) : 0;
  watch.every_ticks = rule.every_ns != 0 ? ticks_of(rule.every_ns) : 0;
  watch.margin_ticks = rule.margin_ns != 0 ? ticks_of(rule.margin_ns) : 0;
  watch.taken = 0;
  watch.given_up = 0;
  watch.last_ticks = 0;
  if (slowest) {
    std::uint32_t used = load(watching().slots_used);
    do {
      used = load(watching().slots_used);
      if (used > kWatchSlots || rule.most > kWatchSlots - used) return false;
    } while (!exchange_if(watching().slots_used, used, used + rule.most));
    watch.first_slot = used;
    if (!reserve_slots(used, rule.most)) return false;
  }
  // A budget would make its calls unseen.
  __atomic_or_fetch(&g_arena.functions()[id].flags, std::uint32_t{kArenaFunctionKeep}, __ATOMIC_ACQ_REL);
  link(id, watch, number);
  store(karst_watched[id].limit, watch_limit(id));
  return true;
}

/// Ends watches that were taken over, or lets them go on. True if any function is watched that was not, or the other
/// way round.
bool change_all() {
  const Locked lock(g_lock);
  ArenaWatching& w = watching();
  const std::uint32_t changes = load(w.changes);
  if (changes == g_changes || !is_watching()) return false;
  bool any = false;
  for (std::uint32_t i = 0; i < w.applied && i < kWatches; ++i) {
    ArenaWatch& watch = watches()[i];
    const std::uint32_t id = load(watch.function);
    const std::uint32_t state = load(watch.state);
    const bool ends = state == static_cast<std::uint32_t>(WatchState::kUnwanted);
    if ((!ends && state != static_cast<std::uint32_t>(WatchState::kWanted)) || id == 0 || id > g_arena.function_count())
      continue;
    if (!ends && !is_linked(id, i)) link(id, watch, i);
    exchange_if(watch.state, state, static_cast<std::uint32_t>(ends ? WatchState::kEnded : WatchState::kWatching));
    WatchedFunction& function = karst_watched[id];
    bool all_ended = true;
    for_each_watch(function.first,
                   [&all_ended](const ArenaWatch& other, std::uint32_t) { return all_ended = has_ended(other); });
    store(function.limit, all_ended ? kNeverKept : watch_limit(id));
    if (all_ended) store(function.first, 0U);
    any = true;
  }
  g_changes = changes;
  return any;
}

/// True if any function is watched that was not.
bool take_over_all() {
  const Locked lock(g_lock);
  ArenaWatching& w = watching();
  const std::uint32_t wanted = load(w.watch_count) < kWatches ? load(w.watch_count) : kWatches;
  bool any = false;
  for (std::uint32_t i = w.applied; i < wanted; ++i) {
    ArenaWatch& watch = watches()[i];
    const std::uint32_t state = load(watch.state);
    if (state == static_cast<std::uint32_t>(WatchState::kNone)) break;  // it is being written
    if (state == static_cast<std::uint32_t>(WatchState::kWanted)) {
      const bool taken = take_over(watch, i);
      if (!taken) ++w.refused;
      any = any || taken;
      store(watch.state, static_cast<std::uint32_t>(taken ? WatchState::kWatching : WatchState::kRefused));
    } else if (has_ended(watch)) {
      // It has nothing that it could go on with.
      store(watch.state, static_cast<std::uint32_t>(WatchState::kRefused));
    }
    store(w.applied, i + 1);
  }
  return any;
}

}  // namespace

void apply_watches(bool sleds) {
  if (g_arena.watching() == nullptr) return;
  const bool more = load(watching().watch_count) != load(watching().applied);
  const bool changed = load(watching().changes) != load(g_changes) && change_all();
  if (!(more && take_over_all()) && !changed) return;
  if (!sleds) return;
  const Patching lock;
  watch_sleds();
}

void prepare_watching(bool no_system_calls) {
  // Watching takes some, in the threads that have something to tell.
  if (g_arena.watching() == nullptr || no_system_calls || !g_lock.create()) {
    if (g_arena.watching() != nullptr) g_arena.give_up_watching();
    return;
  }
  add_task(keep_moments);
}

void renew_watches() {
  if (!is_watching()) return;
  ArenaWatching& w = watching();
  renew_candidates();
  for (std::uint32_t i = 0; i < w.watch_count && i < kWatches; ++i) {
    ArenaWatch& watch = watches()[i];
    const std::uint32_t id = load(watch.function);
    if (id > g_arena.function_count()) continue;
    karst_watched[id] = {kNeverKept, 0, 0, 0, 0};
    if (watch.state == static_cast<std::uint32_t>(WatchState::kWatching))
      watch.state = static_cast<std::uint32_t>(WatchState::kWanted);
  }
  if (!g_arena.reserve_part(g_arena.watching_layout().candidates_offset,
                            sizeof(ArenaCandidate) * std::uint64_t{kWatchCandidates}) ||
      !renew_keeping()) {
    Message().text("a forked child keeps no slow calls: memory is short");
    w.watch_count = 0;
    return;
  }
  take_over_all();
}

}  // namespace karst::runtime
