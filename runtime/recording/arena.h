// SPDX-License-Identifier: MIT
// The process's own end of the arena (format/arena.h): creation, tables, and the pool of blocks.
//
// Others may hold the memfd and write to it: forked children that gave up their rights, whoever karst gave it to. So
// what steers a load or a store of ours is kept in private memory: where tables lie, how long they are, how many
// entries are in use. The arena's own words for that are for readers. Numbers that are read back from it (links of
// blocks, threads' entries) are compared with those before they are used. Then a scribbled arena costs the trace alone.
//
// Threads: everything here may be called by any thread at any time, also in signal handlers, unless it says "at start".
#pragma once
#include <cstdint>

#include "format/arena.h"
#include "format/control.h"
#include "format/values.h"
#include "format/watch.h"
#include "runtime/clock/clock.h"
#include "runtime/system/options.h"
#include "runtime/system/own_descriptor.h"

namespace karst::runtime {

/// What a thread waited for one block, of which what it recorded was to be taken first.
struct WaitForTaking {
  std::uint64_t ticks = 0;
  std::uint32_t looks = 0;
};

class Arena {
 public:
  /// At start. Makes the memfd, or the file, and maps it. Null on success, else why not (a phrase for a message).
  const char* create(const Options& options);

  bool exists() const { return base_ != 0; }
  /// file=: what is recorded stays there, whoever asks for it.
  bool lies_in_file() const { return in_file_; }
  int descriptor() const { return descriptor_.number(); }
  format::ArenaHeader& header() { return *reinterpret_cast<format::ArenaHeader*>(base_); }
  format::ArenaControl& control() { return *at<format::ArenaControl>(layout_.control_offset); }
  /// Null where calls are counted.
  format::ArenaWatching* watching() {
    return layout_.watching_offset != 0 ? at<format::ArenaWatching>(layout_.watching_offset) : nullptr;
  }
  /// Where the tables of what is watched lie, and how many blocks are for it.
  const format::ArenaWatching& watching_layout() const { return watching_layout_; }
  /// At start: nothing will be watched.
  void give_up_watching() { header().watching_offset = layout_.watching_offset = 0; }
  /// Some part of the arena, by its offset.
  template <typename T>
  T* table(std::uint64_t offset) {
    return at<T>(offset);
  }
  /// Null where calls are counted.
  format::ArenaValues* values() {
    return layout_.values_offset != 0 ? at<format::ArenaValues>(layout_.values_offset) : nullptr;
  }
  format::ArenaSwitch* switches() { return at<format::ArenaSwitch>(switches_offset_); }
  format::ArenaModule* modules() { return at<format::ArenaModule>(layout_.modules_offset); }
  format::ArenaFunction* functions() { return at<format::ArenaFunction>(layout_.functions_offset); }
  format::ArenaThread& thread(std::uint32_t index) { return at<format::ArenaThread>(layout_.threads_offset)[index]; }
  format::BlockHeader* block(std::uint32_t index) {
    return reinterpret_cast<format::BlockHeader*>(blocks_ + std::uintptr_t{index} * format::kBlockSize);
  }

  /// How many there are, as this process counts. In a forked child without an arena of its own there are no threads and
  /// blocks.
  std::uint32_t function_count() const { return __atomic_load_n(&function_count_, __ATOMIC_ACQUIRE); }
  std::uint32_t module_count() const { return __atomic_load_n(&module_count_, __ATOMIC_ACQUIRE); }
  std::uint32_t thread_count() const { return __atomic_load_n(&thread_count_, __ATOMIC_ACQUIRE); }
  std::uint32_t blocks_reserved() const { return __atomic_load_n(&blocks_reserved_, __ATOMIC_ACQUIRE); }
  /// No memory will be made for any more.
  bool has_all_blocks() const { return blocks_reserved() >= block_capacity(); }
  /// Ticks of the TSC that it takes to make a block real, when nothing comes in between; 0: there was none yet.
  std::uint64_t reserving_ticks() const { return __atomic_load_n(&reserving_ticks_, __ATOMIC_RELAXED); }
  std::uint32_t block_capacity() const { return __atomic_load_n(&capacity_, __ATOMIC_ACQUIRE); }
  /// The most that there can be.
  std::uint32_t most_blocks() const { return layout_.block_capacity; }
  /// Under the lock of ids.
  void set_function_count(std::uint32_t count);
  void set_module_count(std::uint32_t count);

  /// At start. Makes room for `count` more entries of a table; false when memory cannot be had.
  bool reserve_functions(std::uint32_t count);
  bool reserve_modules(std::uint32_t count);
  /// Any time: makes this part of a table real. False when memory cannot be had.
  bool reserve_part(std::uint64_t offset, std::uint64_t size) { return reserve(offset, size); }
  /// Any time: makes room for these records of the log of switches.
  bool reserve_switches(std::uint32_t first, std::uint32_t count);
  /// Any thread. Puts text into the arena; returns its offset, or 0 with no text when there is no room.
  std::uint32_t add_text(const char* text, std::uint32_t size);
  /// Room for text that is written later, by text(); 0 when there is none. Any thread, any context.
  std::uint32_t take_text(std::uint32_t size);
  /// Null if so much text does not lie there.
  char* text(std::uint32_t offset, std::uint32_t size) {
    return offset <= format::kArenaTextSize && size <= format::kArenaTextSize - offset
               ? at<char>(layout_.text_offset + offset)
               : nullptr;
  }

  /// Where calls are counted (ArenaHeader::counts_offset). reserve_count_page(): any thread; false when memory is
  /// short.
  format::CountOwner* count_owners() { return at<format::CountOwner>(layout_.counts_offset); }
  format::CountPage* count_page(std::uint32_t index);
  bool reserve_count_page(std::uint32_t index);
  /// Takes a page that nobody had; kNoCountPage when there is none. Any thread.
  std::uint32_t claim_count_page();
  static constexpr std::uint32_t kNoCountPage = 0xffffffffU;
  std::uint32_t count_pages() const { return __atomic_load_n(&count_pages_, __ATOMIC_ACQUIRE); }

  /// Claims a thread's entry, never used or left by a thread whose history is gone; kNoThread when all are in use.
  std::uint32_t claim_thread();
  static constexpr std::uint32_t kNoThread = 0xffffffffU;
  /// Of a file that an arena lies in.
  using FileName = char[512];

  /// Takes a block for the calling thread: a fresh one or the oldest that may go. Its events are zero, its generation
  /// is odd, its state kClaimed: the caller fills the header and calls publish() or give_back(). Null when there is
  /// none. `cursor` is the thread's, in the block that it leaves, if any. Blocks are claimed a few at a time, so that
  /// threads seldom meet on the words that they share; `spare` is the thread's list of those that are left, a word that
  /// only it and its signal handlers use.
  format::BlockHeader* take_block(std::uintptr_t cursor, std::uint64_t& spare, WaitForTaking& wait);
  /// What has not been taken is not overwritten (format::ArenaControl::blocking): take_block() may wait.
  bool is_blocking() {
    return __atomic_load_n(&control().blocking, __ATOMIC_RELAXED) != 0 &&
           !__atomic_load_n(&waits_no_more_, __ATOMIC_RELAXED);
  }
  /// The thread of this list takes no more blocks.
  void give_back_spare(std::uint64_t& spare);
  static void publish(format::BlockHeader& block);
  /// The maintenance process, when it is woken: makes the next blocks real before a hook has to. New memory costs a
  /// hook a fourth of what it costs to fill it or more, all at once: that would be told as the program's.
  void reserve_ahead();
  /// The calling thread's `thread` has gone on from its block `last` (a block_key, 0: it had none) to `block`: `last`
  /// becomes history, and the order of recycling goes on with `block`.
  void append(std::uint32_t thread, std::uint64_t last, format::BlockHeader& block);
  std::uint64_t key_of(const format::BlockHeader& block) const {
    return format::block_key(
        block.sequence,
        static_cast<std::uint32_t>((reinterpret_cast<std::uintptr_t>(&block) - blocks_) / format::kBlockSize));
  }
  static void give_back(format::BlockHeader& block);
  /// The block that the cursor is in, perhaps at its end; null when it is in none, or in the sink.
  format::BlockHeader* block_at(std::uintptr_t cursor);

  /// Keeps a private copy of the header as it is now, for a child that is about to be forked. After any change to the
  /// tables, and before a fork.
  void remember() {
    kept_ = header();
    impose_layout(kept_);
    kept_control_ = control();
    remembered_at_ = event_time();
  }
  /// The header as it was remembered. In a forked child it is the parent's.
  const format::ArenaHeader& remembered() const { return kept_; }

  /// In a forked child, where all of the arena but the tables of modules, functions and text is not mapped: puts empty
  /// memory in its place. The fork may have come from a signal handler, and the hook that it interrupted goes on in the
  /// child with what it had in hand.
  void stand_in();
  /// In a forked child: makes an arena of its own in the place of the parent's, with the parent's tables. Null on
  /// success, else why not. The parent's memory is let go either way.
  const char* create_in_child();
  /// In a forked child that shall not be traced: lets go of its own arena, or of what it has of its parent's.
  void let_go();

 private:
  template <typename T>
  T* at(std::uint64_t offset) const {
    return reinterpret_cast<T*>(base_ + offset);
  }
  void impose_layout(format::ArenaHeader& h) const;
  const char* open_memory(std::uint64_t size);
  void keep_file_name(const char* pattern);
  const char* open_file(std::uint64_t size);
  void advise_mapping();
  void advise_dump(std::uint64_t offset, std::uint64_t size) const;
  bool allocate(std::uint64_t begin, std::uint64_t end) const;
  bool put(std::uint64_t offset, const void* from, std::uint64_t size) const;
  bool put_values() const;
  bool reserve(std::uint64_t offset, std::uint64_t size) const;
  bool make_real(std::uint64_t offset, std::uint64_t size) const;
  void advise_dump_of_blocks(std::uint32_t up_to);
  bool reserve_step(std::uint32_t done, std::uint32_t count);
  bool reserve_blocks(std::uint32_t up_to);
  void ask_for_blocks_ahead(std::uint32_t index);
  static void note_holes(format::BlockHeader& block, std::uintptr_t cursor);
  /// `wait` null: it has one already, and goes without another rather than wait.
  format::BlockHeader* claim_next(WaitForTaking* wait);
  void look_ahead(std::uint32_t index, std::uint32_t capacity);
  format::BlockHeader* claim_block(std::uint32_t index, std::uint32_t floor, bool& untaken);
  void wait_for_taking(WaitForTaking& wait);
  format::BlockHeader* pop_spare(std::uint64_t& spare);
  void pass_by(format::ArenaThread& owner, std::uint64_t oldest);

  std::uintptr_t base_ = 0;
  std::uintptr_t blocks_ = 0;
  format::ArenaHeader layout_{};  ///< offsets and capacities as they were made
  format::ArenaWatching watching_layout_{};
  std::uint64_t switches_offset_ = 0;
  std::uint64_t own_size_ = 0;  ///< bytes from the start that a forked child does not get
  FileName file_ = {};          ///< with %p for the process's number; empty: a memfd
  bool in_file_ = false;
  bool in_cores_ = true;
  bool waits_no_more_ = false;  ///< nobody took anything for so long that none is waited for in this process
  format::ArenaHeader kept_{};
  format::ArenaControl kept_control_{};
  std::uint64_t remembered_at_ = 0;
  std::uint32_t function_count_ = 0;
  std::uint32_t module_count_ = 0;
  std::uint32_t thread_count_ = 0;
  std::uint32_t blocks_reserved_ = 0;
  std::uint32_t reserving_ = 0;        ///< somebody makes blocks real, a step at a time
  std::uint32_t blocks_dumped_ = 0;    ///< a core file has them
  std::uint64_t reserving_ticks_ = 0;  ///< a block's, the least of all steps
  std::uint32_t capacity_ = 0;         ///< blocks, as far as memory can be had
  std::uint32_t count_pages_ = 0;
  bool stands_in_ = false;  ///< empty memory is where the parent's arena was
  bool mapping_is_free_ = false;
  std::uint32_t text_bottom_ = 1;  ///< offset 0 means "no text"
  std::uint32_t text_real_ = 0;    ///< bytes of text that memory was made for
  OwnDescriptor descriptor_;
};

/// The one arena of the process.
extern Arena g_arena;

/// Blocks that hold the thread's history. Any thread.
inline std::uint64_t history_blocks(const format::ArenaThread& thread) {
  // What is recycled was begun before.
  const std::uint64_t recycled = __atomic_load_n(&thread.recycled_blocks, __ATOMIC_ACQUIRE);
  const std::uint64_t begun = __atomic_load_n(&thread.begun_blocks, __ATOMIC_ACQUIRE);
  return begun > recycled ? begun - recycled : 0;
}

extern "C" {
/// One of the slots is 0 (arch/*/empty_slot.S). They begin at a multiple of 16 bytes. Signal-safe.
__attribute__((visibility("hidden"))) bool karst_has_empty_slot(const format::Event* slots, std::uint32_t count);
/// g_arena.functions(), for hooks.
extern __attribute__((visibility("hidden"))) format::ArenaFunction* karst_functions;
}

/// Blocks of history that a living thread keeps while others need memory: 16 (64 KiB), less when the floors of
/// all living threads would take more than half of the memory.
std::uint32_t history_floor(std::uint32_t block_capacity, std::uint32_t live_threads);

/// The most blocks that a thread claims beyond the one it needs: 15, less when all threads' would be more than a 64th
/// of memory.
std::uint32_t claims_ahead(std::uint32_t block_capacity, std::uint32_t live_threads);

}  // namespace karst::runtime
