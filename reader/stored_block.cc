// SPDX-License-Identifier: MIT
#include "reader/stored_block.h"

#include <algorithm>

#include "reader/unpack.h"

namespace karst::reader {
namespace {

format::Event word_of(std::span<const format::Event> events, std::size_t at) {
  return __atomic_load_n(&events[at], __ATOMIC_RELAXED);
}

}  // namespace

StoredBlock::StoredBlock(const format::PackedHeader& header, std::span<const std::byte> payload)
    : sequence(header.sequence),
      next_sequence(header.sequence + header.blocks),
      ticks(header.ticks),
      packed_(payload),
      first_ticks_(header.first_ticks),
      last_ticks_(header.last_ticks),
      count_(header.event_count),
      enters_(header.enters),
      notes_(header.notes) {}

std::uint64_t StoredBlock::first_ticks() const {
  if (!packed_.empty()) return first_ticks_;
  for (std::size_t i = 0; i < events_.size(); ++i)
    if (const format::Event event = word_of(events_, i); tells_time(event)) return format::event_ticks(event, ticks);
  return ticks;
}

std::uint64_t StoredBlock::last_ticks() const {
  if (!packed_.empty()) return last_ticks_;
  for (std::size_t i = events_.size(); i != 0; --i)
    if (const format::Event event = word_of(events_, i - 1); tells_time(event))
      return format::event_ticks(event, ticks);
  return ticks;
}

std::size_t StoredBlock::enters() const {
  if (!packed_.empty()) return std::min(enters_, count_);
  std::uint64_t exits = 0;
  for (const format::Event event : events_) exits += (event / KARST_EVENT_EXIT_BIT) & 1;
  return events_.size() - exits;
}

StoredBlock StoredBlock::first(std::size_t count) const {
  StoredBlock part = *this;
  part.count_ = static_cast<std::uint32_t>(std::min<std::size_t>(count, count_));
  part.events_ = events_.first(std::min(count, events_.size()));
  return part;
}

StoredBlock StoredBlock::last(std::size_t count) const {
  StoredBlock part = *this;
  part.events_ = events_.last(std::min(count, events_.size()));
  return part;
}

class EventReader::Unpacker : public reader::Unpacker {};

EventReader::EventReader(std::atomic<std::uint64_t>* unreadable) : unreadable_(unreadable) {}
EventReader::EventReader(EventReader&&) noexcept = default;
EventReader::~EventReader() = default;

BlockView EventReader::operator()(const StoredBlock& block) {
  BlockView view{block.sequence, block.ticks, block.events_};
  if (block.packed_.empty()) return view;
  if (block.packed_.data() != at_hand_) {
    if (!unpacker_) unpacker_ = std::make_unique<Unpacker>();
    at_hand_ = block.packed_.data();
    if (!unpacker_->unpack(block.packed_) && unreadable_ != nullptr) ++*unreadable_;
  }
  view.events = unpacker_->events();
  // Of a file that others write to the header may have changed since it was looked at.
  view.events = view.events.first(std::min<std::size_t>(block.count_, view.events.size()));
  return view;
}

}  // namespace karst::reader
