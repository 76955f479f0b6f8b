// SPDX-License-Identifier: MIT
// What a hook needs of its thread: one cache line, reached by one thread-local pointer.
//
// States are private memory with MADV_WIPEONFORK: in a forked child they read as zero, whichever way the fork
// was made, so a child's hook falls into the slow path and never writes into its parent's arena.
#ifndef KARST_RUNTIME_RECORDING_STATE_H
#define KARST_RUNTIME_RECORDING_STATE_H

#include "format/arena.h"
#include "format/event.h"

// Bits of a cursor that are all zero when there is no slot. A hook adds 8 to the cursor without another look at it
// (hooks.S), so one that stood behind a block's end, or nowhere, may for a moment be a few slots beyond: settled()
// below.
#define KARST_SLOT_BITS (KARST_BLOCK_SIZE - 64)

#define KARST_STATE_CURSOR 0
#define KARST_STATE_BEGIN 8
#define KARST_STATE_EPOCH_BEGIN 16
#define KARST_STATE_EPOCH 20
#define KARST_STATE_COUNTS 56
#define KARST_STATE_WATCH 56

// Marks that are put together in assembly (format/event.h).
#define KARST_MARK_JUMPED 0x7fff01
#define KARST_MARK_PLACE 0x7fff04
#define KARST_MARK_PAD 0x7fff05

#ifndef __ASSEMBLER__
#include <cstddef>
#include <cstdint>

namespace karst::runtime {

struct WatchEntry;

struct alignas(64) ThreadState {
  /// Next free slot. Where a block's header would be (also 0) there is none: take the slow path.
  alignas(16) std::uintptr_t cursor;
  /// When the current block began, in the place that events have their clock in. Changes together with the cursor, in
  /// one step, as the thread goes on to another block. An event that is stamped earlier than this was stamped in
  /// another block: a signal handler has been round all of memory since, to the very slot that its hook had in mind.
  std::uint64_t begin;
  std::uint32_t zero;  ///< always: with what follows, the ticks at which the epoch began
  /// Bits 40.. of the TSC in the current block, as x86 has them in edx (bits 8..31).
  std::uint32_t epoch;
  std::uint64_t sequence;     ///< of the next block, while there is no current one
  std::uint64_t spare;        ///< blocks claimed ahead: turn << 32 | index + 1 of the first (see Arena::take_block)
  std::uint64_t last;         ///< block_key() of the last block, while there is no current one; 0: there was none
  std::uint32_t thread;       ///< index into the arena's threads
  std::uint8_t ignored;       ///< 1: the thread asked for it; its events go nowhere
  std::uint8_t live;          ///< 1 while joined; 0 after a fork or before the first event
  std::uint16_t exit_rounds;  ///< times the thread's exit was announced (pthread key destructors come in rounds)
  union {
    format::CountPage**
        counts;         ///< `karst run --count`: the thread's page for each group of ids (counting/count.h); null: none
    WatchEntry* watch;  ///< where the next open watched call goes (watching/watch.h); null: there was none yet
  };
};
static_assert(sizeof(ThreadState) == 64);
static_assert(KARST_SLOT_BITS == KARST_BLOCK_SIZE - format::kBlockHeaderSize);
static_assert(offsetof(ThreadState, cursor) == KARST_STATE_CURSOR);
static_assert(offsetof(ThreadState, begin) == KARST_STATE_BEGIN);
static_assert(offsetof(ThreadState, zero) == KARST_STATE_EPOCH_BEGIN &&
              offsetof(ThreadState, epoch) == KARST_STATE_EPOCH);
static_assert(offsetof(ThreadState, counts) == KARST_STATE_COUNTS && offsetof(ThreadState, watch) == KARST_STATE_WATCH);
static_assert(static_cast<std::uint32_t>(format::Mark::kJumped) == KARST_MARK_JUMPED);
static_assert(static_cast<std::uint32_t>(format::Mark::kPlace) == KARST_MARK_PLACE);
static_assert(static_cast<std::uint32_t>(format::Mark::kPad) == KARST_MARK_PAD);

/// The calling thread's state; the shared empty one before its first event. (__thread, not thread_local: nothing to
/// construct, so no wrapper function is called for it.)
extern "C" __attribute__((tls_model("initial-exec"), visibility("hidden"))) __thread ThreadState* karst_state;

/// Whether the cursor is that of a free slot.
constexpr bool is_slot(std::uintptr_t cursor) { return (cursor & KARST_SLOT_BITS) != 0; }

/// The cursor as its last block left it: the block's end, or 0, if a hook has added to that.
constexpr std::uintptr_t settled(std::uintptr_t cursor) {
  return is_slot(cursor) ? cursor : cursor & ~std::uintptr_t{KARST_BLOCK_SIZE - 1};
}

}  // namespace karst::runtime
#endif
#endif
