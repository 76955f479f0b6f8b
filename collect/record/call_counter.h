// SPDX-License-Identifier: MIT
// Counts a thread's calls as its events pass by.
#pragma once
#include <cstdint>
#include <span>

#include "collect/record/open_calls.h"
#include "walk/growing_memory.h"
#include "walk/plain_walker.h"

namespace karst::collect {

/// The number of calls that the reader will find (walk/walker.h): each enter, and each call whose enter is no longer
/// there, but those that readers leave out (docs/trace-format.md, MODE). Switches are not looked at.
class CallCounter : public walk::PlainWalker<CallCounter, walk::GrowingMemory<>> {
 public:
  /// `min_duration`, ticks: shorter calls with nothing in them do not count.
  CallCounter(TailOwner tail_owner, std::uint64_t min_duration)
      : tail_owner_(std::move(tail_owner)), min_duration_(min_duration) {}

  /// Before all else: `events` are of calls that were open before, from the thread's start on if `whole`.
  void begin_with(std::span<const format::Event> events, std::uint64_t block_ticks, bool whole) {
    if (!begun_) start_segment(whole);
    begun_ = true;
    walk<false>(events.data(), events.size(), block_ticks);
    keep_ = rows_;
  }
  /// The words of block `sequence`, or a part of them; or of `blocks` from there on.
  void count(std::span<const format::Event> events, std::uint64_t sequence, std::uint64_t block_ticks,
             std::uint32_t blocks = 1) {
    if (next_ != 0 && sequence != next_) forget(last_);
    if (next_ != 0 ? sequence != next_ : !begun_) start_segment(sequence == 0);
    begun_ = true;
    next_ = sequence + blocks;
    walk<false>(events.data(), events.size(), block_ticks);
  }
  std::uint64_t calls() const { return calls_; }
  std::uint64_t notes() const { return notes_; }

  // The walker's.
  void noted(const format::NoteHead& head, const format::Event*, std::uint64_t) {
    if (format::kind_of_note(head.kind).place != format::NotePlace::kCost) ++notes_;
  }
  void began(Open& open) {
    ++calls_;
    open.serial = static_cast<std::uint32_t>(rows_++);
  }
  void ended(Open* stack, std::size_t at, std::uint64_t ticks, walk::Way way) {
    const Open& open = stack[at];
    const bool whole = way == walk::Way::kReturned || way == walk::Way::kTailCalled;
    const std::uint64_t duration = ticks > open.begin ? ticks - open.begin : 0;
    if (!whole || duration >= min_duration_ || open.serial + std::uint64_t{1} != rows_ || open.serial < keep_) return;
    --rows_;
    --calls_;
  }
  void exit_unentered(std::uint32_t, std::uint64_t, walk::Way) { ++calls_; }
  std::uint32_t resumed(const Open&, const Open*, std::size_t) {
    keep_ = ++rows_;
    return static_cast<std::uint32_t>(rows_ - 1);
  }
  void place_set() { keep_ = rows_; }
  bool tail_owner(std::uint32_t id, std::uint32_t& owner) const {
    const std::uint32_t found = tail_owner_(id);
    if (found != 0) owner = found;
    return found != 0;
  }

 private:
  TailOwner tail_owner_;
  std::uint64_t min_duration_;
  std::uint64_t calls_ = 0;
  std::uint64_t notes_ = 0;
  std::uint64_t rows_ = 0;  // as in the reader's table, where rows name calls
  std::uint64_t keep_ = 0;  // rows before this one stay, however short
  std::uint64_t next_ = 0;  // block
  bool begun_ = false;
};

}  // namespace karst::collect
