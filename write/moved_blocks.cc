// SPDX-License-Identifier: MIT
#include "write/moved_blocks.h"

#include <vector>

#include "format/event.h"

namespace karst::writing {
namespace {

using format::Event;
using format::Mark;

constexpr std::uint64_t kUpper = ~format::kEventTickMask;

class BlockMover {
 public:
  BlockMover(const TickMap& map, BlockOwner owner, TraceWriter& writer) : map_(map), owner_(owner), writer_(writer) {}

  /// `missing`: blocks before this one that are not there.
  void block(const reader::BlockView& block, std::uint64_t missing) {
    sequence_ += missing;
    begin_ = map_.at(block.ticks);
    for (std::size_t at = 0; at < block.events.size(); ++at) {
      const Event event = block.events[at];
      // An exception's exit stays with its mark, which takes the exit's time.
      const Event next = at + 1 < block.events.size() ? block.events[at + 1] : 0;
      const bool leads = format::event_is(event, Mark::kUnwound) && next != 0 && format::event_has_time(next);
      put(event, format::event_ticks(leads ? next : event, block.ticks));
    }
    flush();
  }
  void skip_to(std::uint64_t sequence) { sequence_ = sequence; }

 private:
  void put(Event event, std::uint64_t ticks) {
    if (event == 0 || !format::event_has_time(event)) {
      events_.push_back(event);
      return;
    }
    const std::uint64_t moved = map_.at(ticks);
    if ((moved & kUpper) != (begin_ & kUpper)) {
      flush();
      begin_ = moved;
    }
    const Event low = event & ((Event{1} << KARST_EVENT_TICK_SHIFT) - 1);
    events_.push_back((moved << KARST_EVENT_TICK_SHIFT) | low);
  }
  void flush() {
    if (events_.empty()) return;
    writer_.add_block(owner_.process, owner_.thread, sequence_++, begin_, events_);
    events_.clear();
  }

  const TickMap& map_;
  const BlockOwner owner_;
  TraceWriter& writer_;
  std::uint64_t sequence_ = 0;
  std::uint64_t begin_ = 0;
  std::vector<Event> events_;
};

}  // namespace

void add_moved_blocks(std::span<const reader::StoredBlock> blocks, reader::EventReader& read, const TickMap& map,
                      BlockOwner owner, TraceWriter& writer) {
  if (map.is_same()) {
    for (const reader::StoredBlock& block : blocks)
      writer.add_block(owner.process, owner.thread, block.sequence, block.ticks, read(block).events,
                       static_cast<std::uint32_t>(block.next_sequence - block.sequence));
    return;
  }
  BlockMover mover(map, owner, writer);
  if (!blocks.empty()) mover.skip_to(blocks.front().sequence);
  for (std::size_t at = 0; at < blocks.size(); ++at)
    mover.block(read(blocks[at]), at == 0 ? 0 : blocks[at].sequence - blocks[at - 1].next_sequence);
}

}  // namespace karst::writing
