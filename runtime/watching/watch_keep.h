// Keeping the calls that were noted (watching/watch.h): the maintenance process copies the blocks of all threads that
// lie in a call's time, with its margin, out of the ring into memory of the arena that is not recycled, and lets go of
// those of calls that longer ones have replaced.
//
// Where blocks begin is in an index, a word for each block, that threads keep as they take blocks: the headers
// themselves are a page apart, and to look at all of them takes longer than to copy what is wanted. A block is copied
// once, however many calls it belongs to.
#pragma once
#include <cstdint>

#include "runtime/maintenance/control.h"

namespace karst::runtime {

/// When the first function is watched. False when memory cannot be had.
bool prepare_keeping();
/// In a forked child: nothing is kept yet.
bool renew_keeping();
/// Makes slots and their moments real. Any context.
bool reserve_slots(std::uint32_t first, std::uint32_t count);

/// What a thread does as it takes a block, before the block is published.
struct BlockBegin {
  std::uint64_t ticks;
  std::uint32_t thread;
  std::uint32_t unused;
};
extern BlockBegin* g_block_begins;  ///< null: nobody wants to know
inline void note_block_begin(std::uint32_t block, std::uint32_t thread, std::uint64_t ticks) {
  BlockBegin* begins = __atomic_load_n(&g_block_begins, __ATOMIC_ACQUIRE);
  if (begins == nullptr) return;
  __atomic_store_n(&begins[block].thread, thread, __ATOMIC_RELAXED);
  __atomic_store_n(&begins[block].ticks, ticks, __ATOMIC_RELEASE);
}

/// A task of the maintenance process.
std::uint64_t keep_moments(const Moment& now);

}  // namespace karst::runtime
