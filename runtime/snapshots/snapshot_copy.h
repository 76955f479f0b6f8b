// SPDX-License-Identifier: MIT
// The blocks of a time range, listed and then copied in the order of their start.
#pragma once
#include <cstddef>
#include <cstdint>

#include "format/arena.h"
#include "format/trace.h"

namespace karst::runtime {

/// What one block takes at most in a BLKS chunk.
inline constexpr std::size_t kCopiedBlockMost =
    sizeof(format::BlockRecord) + format::kEventsPerBlock * sizeof(format::Event);

/// One thread at a time; owns some memory of the system's.
class Copying {
 public:
  /// Lists the blocks with events from `since` to `until`, and the newest of each living thread, as it says what the
  /// thread is inside of.
  /// Blocks that begin before `not_before` are as good as recycled.
  Copying(std::uint64_t since, std::uint64_t until, std::uint64_t not_before);
  ~Copying();
  Copying(const Copying&) = delete;
  Copying& operator=(const Copying&) = delete;
  /// False when memory cannot be had.
  explicit operator bool() const { return places_ != nullptr; }

  std::uint64_t blocks() const { return count_; }
  std::uint64_t left() const { return count_ - next_; }
  /// Makes the payload of a BLKS chunk of the next blocks, and its checksum if that is asked for. False when there are
  /// no more.
  bool fill(char* payload, std::size_t space, std::uint64_t& size, std::uint64_t& events, std::uint32_t* crc = nullptr);

  /// Events of the range that were there when it was listed, and had been overwritten when their turn came.
  std::uint64_t lost_events() const { return lost_events_; }
  /// From when on no thread misses anything; 0: nothing is missing. Known when fill() has returned false.
  std::uint64_t whole_from() const { return whole_from_; }

 private:
  struct Place {
    std::uint64_t ticks;
    std::uint32_t block;
    std::uint16_t thread;
    std::uint16_t events;  ///< in the range, when it was listed
  };
  static_assert(format::kArenaThreads == 1U << 16 && format::kEventsPerBlock < 1U << 16);
  // What is known of a thread: the number behind its last block met, plus one; and:
  static constexpr std::uint64_t kSeen = std::uint64_t{1} << 63;  ///< some block of it was there
  static constexpr std::uint64_t kGap = std::uint64_t{1} << 62;   ///< something of the range is missing behind that
  static constexpr std::uint64_t kNumber = kGap - 1;

  void list(std::uint32_t most);
  void list_block(std::uint32_t index);
  void judge_absent_threads();
  void sort();
  std::size_t copy_block(const Place& place, char* to, std::uint64_t& events, std::uint32_t* crc);
  void note_lost(const Place& place);
  void note_copied(const format::BlockRecord& record);
  void note_gaps_at_end();
  void missing_until(std::uint64_t ticks) {
    if (ticks > since_ && ticks > whole_from_) whole_from_ = ticks;
  }

  std::uint64_t since_;
  std::uint64_t until_;
  std::uint64_t not_before_;
  std::uint64_t size_ = 0;  ///< of the mapping
  Place* places_ = nullptr;
  Place* other_ = nullptr;
  std::uint64_t* known_ = nullptr;  ///< by thread
  std::uint64_t count_ = 0;
  std::uint64_t next_ = 0;
  bool ended_ = false;
  std::uint64_t lost_events_ = 0;
  std::uint64_t whole_from_ = 0;
};

}  // namespace karst::runtime
