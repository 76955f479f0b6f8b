// SPDX-License-Identifier: MIT
// When tracing itself kept a thread: while memory was made for its next events, or room (format/note.h,
// Overhead::kMemory and kTaking), as notes in its blocks say.
#pragma once
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "reader/model.h"

namespace karst::reader {

class EventReader;
class StoredBlock;

/// Ticks. The thread ran at both ends.
struct TracingTime {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// By thread id, in order of time; of several threads with one id, all of them.
using TracingTimes = std::unordered_map<std::uint32_t, std::vector<TracingTime>>;

/// Adds those that begin one of a thread's blocks: a thread gets memory when it needs a block, and notes it there.
void add_tracing_times(std::span<const StoredBlock> blocks, EventReader& read, std::vector<TracingTime>& times);

}  // namespace karst::reader
