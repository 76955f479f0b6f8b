// SPDX-License-Identifier: MIT
// A trace without the first blocks of its threads: for who looks at the newest part of one that grows.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace karst::reader {

/// A call that was under way where a thread's blocks begin.
struct CallUnderWay {
  std::uint64_t begin = 0;     ///< ticks, of its true begin
  std::uint32_t function = 0;  ///< id in its process
};

/// What is left out of one thread, and what stands for it.
struct LeftOutBlocks {
  std::size_t blocks = 0;           ///< its first ones; at least one stays
  std::uint64_t until = 0;          ///< ticks of their last event
  std::vector<CallUnderWay> calls;  ///< under way then, each within the one before
};

/// By process and Thread::index. Threads that are not in it stay whole.
using LeftOut = std::map<std::pair<std::uint32_t, std::uint32_t>, LeftOutBlocks>;

}  // namespace karst::reader
