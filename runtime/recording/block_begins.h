// SPDX-License-Identifier: MIT
// Where blocks begin: a word for each block, that threads write as they take blocks. Who looks for the blocks of a
// stretch of time reads it (watching/watch_keep.h): the headers themselves are a page apart.
#pragma once
#include <cstdint>

namespace karst::runtime {

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

}  // namespace karst::runtime
