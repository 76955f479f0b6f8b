// The process's own end of the arena (format/arena.h): creation, tables, and the pool of blocks.
//
// Threads: everything here may be called by any thread at any time, also in signal handlers, unless it says "at start".
#pragma once
#include <cstdint>

#include "format/arena.h"
#include "runtime/core/options.h"

namespace karst::runtime {

class Arena {
 public:
  /// At start. Makes the memfd and maps it. Null on success, else why not (a phrase for a message).
  const char* create(const Options& options);

  bool exists() const { return base_ != 0; }
  int descriptor() const { return descriptor_; }
  format::ArenaHeader& header() { return *reinterpret_cast<format::ArenaHeader*>(base_); }
  format::ArenaModule* modules() { return at<format::ArenaModule>(header().modules_offset); }
  format::ArenaFunction* functions() { return at<format::ArenaFunction>(header().functions_offset); }
  format::ArenaThread& thread(std::uint32_t index) { return at<format::ArenaThread>(threads_offset_)[index]; }
  format::BlockHeader* block(std::uint32_t index) {
    return reinterpret_cast<format::BlockHeader*>(blocks_ + std::uintptr_t{index} * format::kBlockSize);
  }

  /// At start. Makes room for `count` more entries of a table; false when memory cannot be had.
  bool reserve_functions(std::uint32_t count);
  bool reserve_modules(std::uint32_t count);
  /// At start. Puts text into the arena; returns its offset, or 0 with no text when there is no room.
  std::uint32_t add_text(const char* text, std::uint32_t size);

  /// Claims a thread's entry, never used or left by a thread whose history is gone; kNoThread when all are in use.
  std::uint32_t claim_thread();
  static constexpr std::uint32_t kNoThread = 0xffffffffU;

  /// Takes a block for `thread`: a fresh one or the oldest that may go. Its events are zero, its generation is odd, its
  /// state kClaimed: the caller fills the header and calls publish() or give_back(). Null when there is none.
  /// `cursor` is the calling thread's, in the block that it leaves, if any.
  format::BlockHeader* take_block(std::uintptr_t cursor = 0);
  static void publish(format::BlockHeader& block);
  static void give_back(format::BlockHeader& block);

  /// In a forked child, where the arena is not mapped: puts empty memory in its place. The fork may have come from a
  /// signal handler, and the hook that it interrupted goes on in the child with what it had in hand.
  void stand_in() const;

 private:
  template <typename T>
  T* at(std::uint64_t offset) {
    return reinterpret_cast<T*>(base_ + offset);
  }
  bool reserve(std::uint64_t offset, std::uint64_t size) const;
  bool reserve_blocks(std::uint32_t up_to);
  void note_holes(std::uintptr_t cursor);
  bool claim_block(format::BlockHeader& block, std::uint32_t floor, bool in_order);

  std::uintptr_t base_ = 0;
  std::uintptr_t blocks_ = 0;
  std::uint64_t threads_offset_ = 0;
  std::uint64_t size_ = 0;
  std::uint64_t inode_ = 0;
  std::uint32_t text_bottom_ = 1;  ///< offset 0 means "no text"
  int descriptor_ = -1;
};

/// The one arena of the process.
extern Arena g_arena;

/// Blocks of history that a living thread keeps while others need memory: 16 (64 KiB), less when the floors of
/// all living threads would take more than half of the memory.
std::uint32_t history_floor(std::uint32_t block_capacity, std::uint32_t live_threads);

}  // namespace karst::runtime
