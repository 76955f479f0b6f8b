// SPDX-License-Identifier: MIT
// A thread's blocks on another clock. Events of a block share the upper bits of the clock, so that a block becomes two
// where these bits change.
#pragma once
#include <cstdint>
#include <span>

#include "reader/trace.h"
#include "write/tick_map.h"
#include "write/trace_writer.h"

namespace karst::writing {

/// Places in the file that is written.
struct BlockOwner {
  std::uint32_t process;
  std::uint32_t thread;
};

/// Adds all of `blocks` as blocks of `owner`. What is missing between them stays missing.
void add_moved_blocks(std::span<const reader::StoredBlock> blocks, reader::EventReader& read, const TickMap& map,
                      BlockOwner owner, TraceWriter& writer);

}  // namespace karst::writing
