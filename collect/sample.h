// What a traced process did in the last moments, from the newest blocks of its arena: for `karst ps`, `status` and
// `top`. Reads a bounded number of blocks however much the process does; says which share of the time that covers.
#pragma once
#include <cstdint>
#include <vector>

#include "collect/arena_view.h"

namespace karst::collect {

struct SampledFunction {
  std::uint32_t id = 0;
  std::uint64_t calls = 0;  ///< begun in the window
  std::uint64_t self_ticks = 0;
  std::uint64_t total_ticks = 0;  ///< of recursive calls the outermost counts
};

struct SampledThread {
  std::uint32_t index = 0;
  std::uint64_t calls = 0;
  std::uint64_t ticks = 0;  ///< of the window, that its blocks cover
};

struct Sample {
  std::uint64_t from = 0;  ///< ticks
  std::uint64_t to = 0;
  std::uint64_t calls = 0;
  double calls_per_tick = 0;               ///< of all threads, each by what was read of it
  std::uint64_t blocks = 0;                ///< of the window
  std::uint64_t blocks_read = 0;           ///< of them
  std::vector<SampledFunction> functions;  ///< by id
  std::vector<SampledThread> threads;      ///< that did something
};

/// The window is from `from` to now; at most `most_blocks` of it are read, the newest ones. `blocks` are the arena's.
Sample sample(const ArenaView& arena, const std::vector<ArenaBlock>& blocks, std::uint64_t from,
              std::size_t most_blocks);

}  // namespace karst::collect
