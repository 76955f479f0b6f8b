// The watched part of an arena (format/watch.h), as ArenaView has it.
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>
#include <set>
#include <utility>

#include "collect/arena_memory.h"
#include "collect/arena_view.h"
#include "format/moments.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace karst::collect {

using namespace format;

namespace {

constexpr auto word(WatchState state) { return static_cast<std::uint32_t>(state); }

bool change_state(ArenaWatch& watch, std::uint32_t from, WatchState to) {
  return __atomic_compare_exchange_n(&watch.state, &from, word(to), false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

bool is_active(std::uint32_t state) {
  return state == word(WatchState::kWanted) || state == word(WatchState::kWatching);
}

}  // namespace

bool ArenaView::find_watching() {
  if (layout_.watching_offset == 0) return true;
  if (!fits(layout_.watching_offset, 1, sizeof(ArenaWatching), size_)) return false;
  ArenaWatching w;
  std::memcpy(&w, base_ + layout_.watching_offset, sizeof w);
  if (!fits(w.rules_offset, kWatchRules, sizeof(ArenaWatchRule), size_) ||
      !fits(w.watches_offset, kWatches, sizeof(ArenaWatch), size_) ||
      !fits(w.slots_offset, kWatchSlots, sizeof(std::uint64_t), size_) ||
      !fits(w.moments_offset, kWatchSlots, sizeof(ArenaMoment), size_) ||
      !fits(w.notes_offset, kWatchNotes, sizeof(ArenaNote), size_) || w.blocks_offset % kBlockSize != 0 ||
      !fits(w.blocks_offset, w.block_capacity, kBlockSize, size_))
    return false;
  watching_ = w;
  return true;
}

ArenaWatching* ArenaView::watching() const {
  return watching_.rules_offset == 0 ? nullptr : reinterpret_cast<ArenaWatching*>(base_ + layout_.watching_offset);
}

bool ArenaView::make_real(std::uint64_t offset, std::uint64_t size) const {
  const std::uint64_t begin = offset / kBlockSize * kBlockSize;
  // Where memory is short a store would end us; before Linux 5.14 nobody can tell.
  return madvise(base_ + begin, offset + size - begin, MADV_POPULATE_WRITE) == 0 || errno == EINVAL;
}

std::optional<std::uint32_t> ArenaView::add_rule(const ArenaWatchRule& rule) const {
  ArenaWatching* w = watching();
  if (w == nullptr || !make_real(watching_.rules_offset, kWatchRules * sizeof(ArenaWatchRule))) return std::nullopt;
  auto* rules = reinterpret_cast<ArenaWatchRule*>(base_ + watching_.rules_offset);
  const std::uint32_t known = std::min(load(w->rule_count), kWatchRules);
  for (std::uint32_t i = 0; i < known; ++i)
    if (std::memcmp(&rules[i], &rule, sizeof rule) == 0) return i;
  const std::uint32_t number = __atomic_fetch_add(&w->rule_count, 1, __ATOMIC_ACQ_REL);
  if (number >= kWatchRules) return std::nullopt;
  std::memcpy(reinterpret_cast<char*>(&rules[number]) + sizeof rule.kind,
              reinterpret_cast<const char*>(&rule) + sizeof rule.kind, sizeof rule - sizeof rule.kind);
  __atomic_store_n(&rules[number].kind, rule.kind, __ATOMIC_RELEASE);
  return number;
}

std::size_t ArenaView::add_watches(std::uint32_t rule, const std::vector<std::uint32_t>& ids) const {
  ArenaWatching* w = watching();
  if (w == nullptr) return 0;
  auto* watches = reinterpret_cast<ArenaWatch*>(base_ + watching_.watches_offset);
  std::map<std::uint32_t, std::uint32_t> of_rule;  // function to watch
  const std::uint32_t known = std::min(load(w->watch_count), kWatches);
  for (std::uint32_t i = 0; i < known; ++i) {
    const std::uint32_t state = load(watches[i].state);
    // One that was refused has nothing to go on with: it is asked for anew.
    if (state != 0 && state != word(WatchState::kRefused) && watches[i].rule == rule)
      of_rule.emplace(watches[i].function, i);
  }
  std::size_t added = 0;
  for (const std::uint32_t id : ids) {
    if (is_tail_exit(id)) continue;
    if (const auto there = of_rule.find(id); there != of_rule.end()) {
      ArenaWatch& watch = watches[there->second];
      const std::uint32_t state = load(watch.state);
      // One that was to end goes on with what it has kept.
      if ((state == word(WatchState::kEnded) || state == word(WatchState::kUnwanted)) &&
          change_state(watch, state, WatchState::kWanted))
        __atomic_fetch_add(&w->changes, 1, __ATOMIC_ACQ_REL);
      if (is_active(load(watch.state))) ++added;
      continue;
    }
    const std::uint32_t used = load(w->watch_count);
    if (used >= kWatches || !make_real(watching_.watches_offset + used * sizeof(ArenaWatch), 4 * sizeof(ArenaWatch)))
      return added;
    const std::uint32_t number = __atomic_fetch_add(&w->watch_count, 1, __ATOMIC_ACQ_REL);
    if (number >= kWatches) return added;
    watches[number].function = id;
    watches[number].rule = rule;
    of_rule.emplace(id, number);
    __atomic_store_n(&watches[number].state, static_cast<std::uint32_t>(WatchState::kWanted), __ATOMIC_RELEASE);
    ++added;
  }
  return added;
}

std::vector<ArenaWatchRule> ArenaView::rules() const {
  const ArenaWatching* w = watching();
  if (w == nullptr) return {};
  const auto* rules = table<ArenaWatchRule>(watching_.rules_offset);
  std::vector<ArenaWatchRule> found(rules, rules + std::min(load(w->rule_count), kWatchRules));
  for (ArenaWatchRule& rule : found) rule.text[sizeof rule.text - 1] = '\0';
  return found;
}

std::vector<std::size_t> ArenaView::watched_by_rule() const {
  std::vector<std::size_t> counts(kWatchRules);
  const ArenaWatching* w = watching();
  if (w == nullptr) return counts;
  const auto* watches = table<ArenaWatch>(watching_.watches_offset);
  const std::uint32_t known = std::min(load(w->watch_count), kWatches);
  for (std::uint32_t i = 0; i < known; ++i)
    if (const std::uint32_t rule = load(watches[i].rule); rule < kWatchRules && is_active(load(watches[i].state)))
      ++counts[rule];
  return counts;
}

std::size_t ArenaView::end_watches(std::uint32_t rule) const {
  ArenaWatching* w = watching();
  if (w == nullptr) return 0;
  auto* watches = reinterpret_cast<ArenaWatch*>(base_ + watching_.watches_offset);
  const std::uint32_t known = std::min(load(w->watch_count), kWatches);
  std::size_t ended = 0;
  for (std::uint32_t i = 0; i < known; ++i) {
    const std::uint32_t state = load(watches[i].state);
    if (is_active(state) && load(watches[i].rule) == rule && change_state(watches[i], state, WatchState::kUnwanted))
      ++ended;
  }
  if (ended != 0) __atomic_fetch_add(&w->changes, 1, __ATOMIC_ACQ_REL);
  return ended;
}

std::vector<reader::Moment> ArenaView::moments() const {
  const ArenaWatching* w = watching();
  if (w == nullptr) return {};
  const std::uint32_t used = std::min(load(w->slots_used), kWatchSlots);
  const auto* slots = table<std::uint64_t>(watching_.slots_offset);
  const auto* kept = table<ArenaMoment>(watching_.moments_offset);
  const auto* notes = table<ArenaNote>(watching_.notes_offset);
  const auto* watches = table<ArenaWatch>(watching_.watches_offset);
  const auto* rules = table<ArenaWatchRule>(watching_.rules_offset);
  const std::uint32_t watch_count = std::min(load(w->watch_count), kWatches);
  std::vector<reader::Moment> found;
  std::optional<std::uint64_t> ring_is_whole_from;
  for (std::uint32_t slot = 0; slot < used; ++slot) {
    const std::uint64_t word = load(slots[slot]);
    if (word == 0) continue;
    ArenaMoment m{};
    bool saved = false;
    // The process may be changing it; it is done within some microseconds, unless it was killed then.
    for (int tries = 0; tries < 1000 && !saved && slot_note(word) == 0; ++tries) {
      const std::uint32_t turn = load(kept[slot].turn);
      std::memcpy(&m, &kept[slot], sizeof m);
      std::atomic_thread_fence(std::memory_order_acquire);
      saved = turn != 0 && turn % 2 == 0 && load(kept[slot].turn) == turn;
    }
    if (!saved) {
      // Its events are in the ring, or nowhere.
      if (slot_note(word) == 0) std::memcpy(&m, &kept[slot], sizeof m);
      if (const std::uint32_t number = slot_note(word); number != 0 && number < kWatchNotes) {
        const ArenaNote note = notes[number];
        if (note.slot != slot) continue;
        m = {};
        m.watch = note.watch;
        m.thread = note.thread;
        m.tid = note.tid;
        m.begin_ticks = note.begin_ticks;
        m.end_ticks = note.end_ticks;
      }
      if (m.watch >= watch_count) continue;
      const std::uint64_t margin = watches[m.watch].margin_ticks;
      m.from_ticks = m.begin_ticks > margin ? m.begin_ticks - margin : 0;
      m.to_ticks = m.end_ticks + margin;
      if (!ring_is_whole_from) ring_is_whole_from = whole_from();
      m.whole_from = std::min(std::max(*ring_is_whole_from, m.from_ticks), m.to_ticks);
      m.gave_up = m.whole_from > m.from_ticks ? 1 : 0;
    }
    if (m.watch >= watch_count || m.end_ticks <= m.begin_ticks ||
        slot_ticks(make_slot(m.end_ticks - m.begin_ticks, 0)) != slot_ticks(word))
      continue;
    const ArenaWatch& watch = watches[m.watch];
    if (watch.rule >= kWatchRules || watch.function > function_count()) continue;
    const ArenaWatchRule& rule = rules[watch.rule];
    reader::Moment moment;
    moment.kind = rule.kind;
    moment.begin_ticks = m.begin_ticks;
    moment.end_ticks = m.end_ticks;
    moment.kept_from = std::max(m.from_ticks, layout_.start_ticks);
    moment.kept_to = m.to_ticks;
    moment.whole_from = std::max(m.whole_from, moment.kept_from);
    moment.function = watch.function;
    moment.thread = m.thread;
    moment.tid = m.tid;
    if (m.gave_up != 0) moment.flags |= kMomentGaveUp;
    moment.what.assign(rule.text, strnlen(rule.text, sizeof rule.text));
    found.push_back(std::move(moment));
  }
  std::sort(found.begin(), found.end(),
            [](const reader::Moment& a, const reader::Moment& b) { return a.begin_ticks < b.begin_ticks; });
  return found;
}

WatchLosses ArenaView::watch_losses() const {
  const ArenaWatching* w = watching();
  if (w == nullptr) return {};
  WatchLosses losses{load(w->refused), load(w->without_note), load(w->too_deep), 0};
  const auto* watches = table<ArenaWatch>(watching_.watches_offset);
  const std::uint32_t count = std::min(load(w->watch_count), kWatches);
  for (std::uint32_t i = 0; i < count; ++i) losses.too_many += load(watches[i].given_up);
  return losses;
}

void ArenaView::add_kept_blocks(std::vector<ArenaBlock>& blocks) const {
  const ArenaWatching* w = watching();
  if (w == nullptr) return;
  const std::uint32_t used = std::min(load(w->blocks_used), watching_.block_capacity);
  if (used == 0) return;
  std::set<std::pair<std::uint32_t, std::uint64_t>> there;
  for (const ArenaBlock& block : blocks) there.emplace(block.thread, block.sequence);
  for (std::uint32_t i = 0; i < used; ++i) {
    const auto& h = *table<BlockHeader>(watching_.blocks_offset + std::uint64_t{i} * kBlockSize);
    const std::uint64_t generation = load(h.generation);
    if (generation % 2 != 0 || load(h.state) != static_cast<std::uint32_t>(BlockState::kFull) ||
        h.thread >= layout_.thread_capacity || there.contains({h.thread, h.sequence}))
      continue;
    blocks.push_back({layout_.block_capacity + i, h.thread, h.sequence, h.ticks, generation});
  }
}

std::uint64_t ArenaView::whole_from() const {
  std::set<std::uint32_t> seen;
  std::uint64_t from = 0;
  for (const ArenaBlock& block : ring_blocks())
    if (seen.insert(block.thread).second && block.sequence != 0) from = std::max(from, block.ticks);
  // Threads of which nothing is left.
  const auto* threads = table<ArenaThread>(layout_.threads_offset);
  const std::uint32_t count = std::min(load(live().thread_count), layout_.thread_capacity);
  for (std::uint32_t i = 0; i < count; ++i)
    if (threads[i].overwritten_events != 0 && !seen.contains(i)) from = std::max(from, threads[i].exited_ticks);
  return from;
}

}  // namespace karst::collect
