// SPDX-License-Identifier: MIT
#include "reader/event_stream.h"

#include <algorithm>

namespace karst::reader {
namespace {

constexpr std::size_t kBlockWords = 8189;

}  // namespace

/// A block's events have the upper bits of their time in common.
void EventStream::begin(std::uint64_t ticks) {
  const std::uint64_t epoch = ticks & ~format::kEventTickMask;
  if (!begins_ && (cuts_.back().ticks & ~format::kEventTickMask) == epoch &&
      words_.size() - cuts_.back().first < kBlockWords)
    return;
  cuts_.push_back({words_.size(), sequence_++, ticks});
  begins_ = false;
}

void EventStream::put(std::uint64_t ticks, bool exit, std::uint32_t function) {
  begin(ticks);
  words_.push_back(format::make_event(ticks, exit, function));
}

void EventStream::put_time(std::uint64_t ticks) {
  begin(ticks);
  words_.push_back(format::make_mark(ticks, format::Mark::kJumped));
}

void EventStream::only_time(std::size_t at) {
  words_[at] = format::make_mark(words_[at] >> KARST_EVENT_TICK_SHIFT, format::Mark::kJumped);
}

void EventStream::copy(const BlockView& block, std::size_t from, std::size_t to) {
  to = std::min(to, block.events.size());
  for (std::size_t i = from; i < to; ++i) {
    const format::Event event = __atomic_load_n(&block.events[i], __ATOMIC_RELAXED);
    // A mark and what belongs to it stay in one block.
    const bool timed = event != 0 && format::event_has_time(event);
    if (i == from || (timed && !format::event_is(words_.back(), format::Mark::kUnwound)))
      begin(timed ? format::event_ticks(event, block.ticks) : block.ticks);
    words_.push_back(event);
  }
}

std::vector<StoredBlock> EventStream::blocks(std::size_t from, std::size_t to) const {
  std::vector<StoredBlock> views;
  auto cut = std::lower_bound(cuts_.begin(), cuts_.end(), from,
                              [](const Cut& c, std::size_t first) { return c.first < first; });
  for (; cut != cuts_.end() && cut->first < to; ++cut) {
    const std::size_t end = cut + 1 != cuts_.end() ? std::min(cut[1].first, to) : to;
    views.emplace_back(BlockView{cut->sequence, cut->ticks, std::span(words_).subspan(cut->first, end - cut->first)});
  }
  return views;
}

}  // namespace karst::reader
