// What a hook needs of its thread: one cache line, reached by one thread-local pointer.
//
// States are private memory with MADV_WIPEONFORK: in a forked child they read as zero, whichever way the fork
// was made, so a child's hook falls into the slow path and never writes into its parent's arena.
#ifndef KARST_RUNTIME_CORE_STATE_H
#define KARST_RUNTIME_CORE_STATE_H

#include "format/arena.h"

#define KARST_STATE_CURSOR 0
#define KARST_STATE_EPOCH 8
#define KARST_STATE_COUNTS 56

#ifndef __ASSEMBLER__
#include <cstddef>
#include <cstdint>

namespace karst::runtime {

struct alignas(64) ThreadState {
  /// Next free slot. Block-aligned (also 0) means: there is none, take the slow path.
  std::uintptr_t cursor;
  /// Bits 40.. of the TSC in the current block, as they stand in rdtsc's edx (bits 8..31).
  std::uint32_t epoch;
  std::uint32_t live;         ///< 1 while joined; 0 after a fork or before the first event
  std::uint32_t thread;       ///< index into the arena's threads
  std::uint32_t exit_rounds;  ///< times the thread's exit was announced (pthread key destructors come in rounds)
  std::uint64_t sequence;     ///< of the next block, while there is no current one
  std::uint64_t spare;        ///< blocks claimed ahead: turn << 32 | index + 1 of the first (see Arena::take_block)
  std::uint64_t last;         ///< block_key() of the last block, while there is no current one; 0: there was none
  std::uint32_t ignored;      ///< 1: the thread asked for it; its events go nowhere
  format::CountPage**
      counts;  ///< `karst count`: the thread's page for each group of ids (core/count.h); null: none yet
};
static_assert(sizeof(ThreadState) == 64);
static_assert(offsetof(ThreadState, cursor) == KARST_STATE_CURSOR);
static_assert(offsetof(ThreadState, epoch) == KARST_STATE_EPOCH);
static_assert(offsetof(ThreadState, counts) == KARST_STATE_COUNTS);

/// The calling thread's state; the shared empty one before its first event. (__thread, not thread_local: nothing to
/// construct, so no wrapper function is called for it.)
extern "C" __attribute__((tls_model("initial-exec"), visibility("hidden"))) __thread ThreadState* karst_state;

}  // namespace karst::runtime
#endif
#endif
