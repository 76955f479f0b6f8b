// SPDX-License-Identifier: MIT
// Memory for copies of blocks that are kept (watching/watch_keep.h), shared by the moments that they belong to. The
// maintenance process's own; the copies lie in the arena, where anybody may read them.
#pragma once
#include <cstdint>

namespace karst::runtime {

/// False when memory cannot be had.
bool prepare_kept_blocks();
/// In a forked child: none is in use.
bool renew_kept_blocks();

enum class KeptCopy : std::uint8_t {
  kKept,
  kGone,      ///< the block has changed hands
  kNoMemory,  ///< for what is kept
};

/// Copies the thread's block that began at `ticks`, or takes the copy that there is, into the list that begins with
/// `list`. `sequence` becomes its number in the thread.
KeptCopy keep_block(std::uint32_t& list, std::uint32_t block, std::uint32_t thread, std::uint64_t ticks,
                    std::uint64_t& sequence);
/// Lets go of all blocks of the list.
void release_blocks(std::uint32_t& list);
/// Copies that there is room for.
std::uint32_t kept_blocks_free();

}  // namespace karst::runtime
