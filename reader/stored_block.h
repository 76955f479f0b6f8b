// SPDX-License-Identifier: MIT
// Where a thread's events lie: as they are, or packed (format::PackedHeader). What a block is can be asked of it at any
// time; its events are read by an EventReader, which unpacks one block at a time, so that memory does not grow with
// the trace.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "format/event.h"
#include "format/trace.h"

namespace karst::reader {

/// A block whose events can be looked at. Others may write to the file: read each event once (format::Event is one
/// word), and ask Trace::unchanged() in the end.
struct BlockView {
  std::uint64_t sequence = 0;
  std::uint64_t ticks = 0;
  std::span<const format::Event> events;
};

/// True of events that say when they were. A pad has its block's begin, which is earlier than what lies before it.
constexpr bool tells_time(format::Event event) {
  return event != 0 && format::event_has_time(event) && !format::event_is(event, format::Mark::kPad);
}

/// One block of a thread as the file has it, checked against its bounds and its chunk's checksum.
class StoredBlock {
 public:
  StoredBlock() = default;
  explicit StoredBlock(const BlockView& view)
      : sequence(view.sequence), next_sequence(view.sequence + 1), ticks(view.ticks), events_(view.events) {}
  /// `payload` has `header` at its begin, which check_packed() found to be sound.
  StoredBlock(const format::PackedHeader& header, std::span<const std::byte> payload);

  std::uint64_t sequence = 0;
  std::uint64_t next_sequence = 1;  ///< of the block that follows if nothing is missing
  std::uint64_t ticks = 0;          ///< the clock at its start

  bool is_packed() const { return !packed_.empty(); }
  /// Number of events, holes included.
  std::size_t size() const { return packed_.empty() ? events_.size() : count_; }
  /// Of the first event that tells its time, and of the last; `ticks` if none does.
  std::uint64_t first_ticks() const;
  std::uint64_t last_ticks() const;
  /// Events without the exit bit; of a block's part at most as many as it has events.
  std::size_t enters() const;
  /// False if no event can be a note of one of these kinds: bit n stands for kind n.
  bool may_have_notes(std::uint32_t kinds) const { return packed_.empty() || (notes_ & kinds) != 0; }
  /// False if there is no mark of places, jumps and switches of stacks.
  bool may_have_stacks() const { return may_have_notes(1); }

  /// Only so many of its first events.
  StoredBlock first(std::size_t count) const;
  /// Of one that is not packed: so many of its last events.
  StoredBlock last(std::size_t count) const;

 private:
  friend class EventReader;
  std::span<const format::Event> events_;
  std::span<const std::byte> packed_;
  std::uint64_t first_ticks_ = 0;
  std::uint64_t last_ticks_ = 0;
  std::uint32_t count_ = 0;
  std::uint32_t enters_ = 0;
  std::uint32_t notes_ = 0;
};

/// Reads blocks, one at a time. Each thread that reads has its own.
class EventReader {
 public:
  /// `unreadable` counts the blocks that could not be unpacked, which have no events then; may be null.
  explicit EventReader(std::atomic<std::uint64_t>* unreadable);
  EventReader(EventReader&&) noexcept;
  EventReader& operator=(EventReader&&) = delete;
  ~EventReader();

  /// Good until another block is read.
  BlockView operator()(const StoredBlock& block);

 private:
  class Unpacker;
  std::unique_ptr<Unpacker> unpacker_;  // made at the first packed block
  std::atomic<std::uint64_t>* unreadable_;
  const std::byte* at_hand_ = nullptr;  // the payload that was unpacked last
};

}  // namespace karst::reader
