// SPDX-License-Identifier: MIT
// The watched part of an arena (format/watch.h), as ArenaView has it.
#include <algorithm>
#include <cstring>
#include <optional>
#include <set>
#include <utility>

#include "collect/arena/view.h"
#include "format/moments.h"

namespace karst::collect {

using namespace format;

bool ArenaView::find_watching() {
  if (layout_.watching_offset == 0) return true;
  const std::uint64_t size = bytes_.size();
  if (!fits(layout_.watching_offset, 1, sizeof(ArenaWatching), size)) return false;
  const auto w = bytes_.get<ArenaWatching>(layout_.watching_offset);
  if (!fits(w.rules_offset, kWatchRules, sizeof(ArenaWatchRule), size) ||
      !fits(w.watches_offset, kWatches, sizeof(ArenaWatch), size) ||
      !fits(w.slots_offset, kWatchSlots, sizeof(std::uint64_t), size) ||
      !fits(w.moments_offset, kWatchSlots, sizeof(ArenaMoment), size) ||
      !fits(w.candidates_offset, kWatchCandidates, sizeof(ArenaCandidate), size) || w.blocks_offset % kBlockSize != 0 ||
      !fits(w.blocks_offset, w.block_capacity, kBlockSize, size))
    return false;
  watching_ = w;
  return true;
}

std::optional<ArenaWatching> ArenaView::watching_now() const {
  if (watching_.rules_offset == 0) return std::nullopt;
  auto now = bytes_.get<ArenaWatching>(layout_.watching_offset);
  now.rule_count = std::min(now.rule_count, kWatchRules);
  now.watch_count = std::min(now.watch_count, kWatches);
  now.slots_used = std::min(now.slots_used, kWatchSlots);
  now.blocks_used = std::min(now.blocks_used, watching_.block_capacity);
  return now;
}

std::vector<ArenaWatchRule> ArenaView::rules() const {
  const auto w = watching_now();
  if (!w) return {};
  std::vector<ArenaWatchRule> found(w->rule_count);
  bytes_.read(watching_.rules_offset, found.data(), found.size() * sizeof(ArenaWatchRule));
  for (ArenaWatchRule& rule : found) rule.text[sizeof rule.text - 1] = '\0';
  return found;
}

std::vector<std::size_t> ArenaView::watched_by_rule() const {
  std::vector<std::size_t> counts(kWatchRules);
  if (const auto w = watching_now())
    bytes_.for_each<ArenaWatch>(watching_.watches_offset, w->watch_count, [&](std::uint64_t, const ArenaWatch& watch) {
      if (watch.rule < kWatchRules && watch_is_active(watch.state)) ++counts[watch.rule];
    });
  return counts;
}

std::vector<reader::Moment> ArenaView::moments() const {
  const auto w = watching_now();
  if (!w || w->slots_used == 0) return {};
  std::vector<ArenaWatch> watches(w->watch_count);
  bytes_.for_each<ArenaWatch>(watching_.watches_offset, watches.size(),
                              [&](std::uint64_t i, const ArenaWatch& watch) { watches[i] = watch; });
  const std::vector<ArenaWatchRule> rules = this->rules();
  const std::uint32_t functions = function_count();
  std::vector<reader::Moment> found;
  std::optional<std::uint64_t> ring_is_whole_from;
  // The process may be changing one; it is done within some microseconds, unless it was killed then.
  int patience = 1000;
  bytes_.for_each<std::uint64_t>(watching_.slots_offset, w->slots_used, [&](std::uint64_t slot, std::uint64_t word) {
    if (word == 0) return;
    ArenaMoment m{};
    const std::uint64_t at = watching_.moments_offset + slot * sizeof m;
    bool saved = false;
    while (!saved && slot_candidate(word) == 0) {
      m = bytes_.get<ArenaMoment>(at);
      saved = m.turn != 0 && m.turn % 2 == 0 && bytes_.get<std::uint32_t>(at) == m.turn;
      if (!saved && patience-- <= 0) break;
    }
    if (!saved) {
      // Its events are in the ring, or nowhere.
      if (const std::uint32_t number = slot_candidate(word); number != 0 && number < kWatchCandidates) {
        const auto candidate =
            bytes_.get<ArenaCandidate>(watching_.candidates_offset + number * sizeof(ArenaCandidate));
        if (candidate.slot != slot) return;
        m.watch = candidate.watch;
        m.thread = candidate.thread;
        m.tid = candidate.tid;
        m.begin_ticks = candidate.begin_ticks;
        m.end_ticks = candidate.end_ticks;
      }
      if (m.watch >= watches.size()) return;
      const std::uint64_t margin = watches[m.watch].margin_ticks;
      m.from_ticks = m.begin_ticks > margin ? m.begin_ticks - margin : 0;
      m.to_ticks = m.end_ticks + margin;
      if (!ring_is_whole_from) ring_is_whole_from = whole_from();
      m.whole_from = std::min(std::max(*ring_is_whole_from, m.from_ticks), m.to_ticks);
      m.gave_up = m.whole_from > m.from_ticks ? 1 : 0;
    }
    if (m.watch >= watches.size() || m.end_ticks <= m.begin_ticks ||
        slot_ticks(make_slot(m.end_ticks - m.begin_ticks, 0)) != slot_ticks(word))
      return;
    const ArenaWatch& watch = watches[m.watch];
    if (watch.rule >= rules.size() || watch.function > functions) return;
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
  });
  std::sort(found.begin(), found.end(),
            [](const reader::Moment& a, const reader::Moment& b) { return a.begin_ticks < b.begin_ticks; });
  return found;
}

WatchLosses ArenaView::watch_losses() const {
  const auto w = watching_now();
  if (!w) return {};
  WatchLosses losses{w->refused, w->without_candidate, w->too_deep, 0};
  bytes_.for_each<ArenaWatch>(watching_.watches_offset, w->watch_count,
                              [&](std::uint64_t, const ArenaWatch& watch) { losses.too_many += watch.given_up; });
  return losses;
}

void ArenaView::add_kept_blocks(std::vector<ArenaBlock>& blocks) const {
  const auto w = watching_now();
  if (!w || w->blocks_used == 0) return;
  std::set<std::pair<std::uint32_t, std::uint64_t>> there;
  for (const ArenaBlock& block : blocks) there.emplace(block.thread, block.sequence);
  for (std::uint32_t i = 0; i < w->blocks_used; ++i) {
    const std::uint64_t at = watching_.blocks_offset + std::uint64_t{i} * kBlockSize;
    const auto data = bytes_.next_data(at, watching_.blocks_offset + std::uint64_t{w->blocks_used} * kBlockSize);
    if (!data) break;
    i = static_cast<std::uint32_t>((data->begin - watching_.blocks_offset) / kBlockSize);
    const auto h = bytes_.get<BlockHeader>(watching_.blocks_offset + std::uint64_t{i} * kBlockSize);
    if (h.generation % 2 != 0 || h.state != static_cast<std::uint32_t>(BlockState::kFull) ||
        h.thread >= layout_.thread_capacity || there.contains({h.thread, h.sequence}))
      continue;
    blocks.push_back({layout_.block_capacity + i, h.thread, h.sequence, h.ticks, h.generation});
  }
}

std::uint64_t ArenaView::whole_from() const {
  std::set<std::uint32_t> seen;
  std::uint64_t from = 0;
  for (const ArenaBlock& block : ring_blocks())
    if (seen.insert(block.thread).second && block.sequence != 0) from = std::max(from, block.ticks);
  // Threads of which nothing is left.
  bytes_.for_each<ArenaThread>(layout_.threads_offset, std::min(now().thread_count, layout_.thread_capacity),
                               [&](std::uint64_t i, const ArenaThread& thread) {
                                 if (thread.overwritten_events != 0 && !seen.contains(static_cast<std::uint32_t>(i)))
                                   from = std::max(from, thread.exited_ticks);
                               });
  return from;
}

}  // namespace karst::collect
