// SPDX-License-Identifier: MIT
// A thread's calls, which may come in any order and overlap, as lanes of calls that nest.
//
// A call lies in the first lane where it nests: in which it begins behind all calls that have ended, and ends within
// the innermost one that has not. Most threads have one lane. What overlaps is in further ones, whole.
#pragma once
#include <cstdint>
#include <vector>

#include "import/foreign_trace.h"

namespace karst::importing {

/// What a thread does next.
struct Step {
  enum class Kind : std::uint8_t { kEnter, kLeave, kNote };
  Kind kind = Kind::kEnter;
  std::int64_t ns = 0;
  std::size_t number = 0;  ///< in Thread::calls, or in Thread::notes
};

struct Lanes {
  static constexpr std::size_t kMost = 64;

  std::vector<std::vector<Step>> lanes{1};  ///< of each the steps in order of time; notes lie in the first one
  std::uint64_t without_lane = 0;           ///< calls that nest in none of kMost lanes
};

/// Sorts calls and notes of the thread.
Lanes nest(Thread& thread);

}  // namespace karst::importing
