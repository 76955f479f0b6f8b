// SPDX-License-Identifier: MIT
// Two calls, or all that two threads did, side by side: the same flow aligned in time, what only one of them did in its
// place. Calls are matched by function name and order, level by level: two calls are a pair only if their callers are.
//
// Among the calls of two callers that are long enough to be shown, the pairs are those of the common subsequence with
// the longest time in it (Needleman and Wunsch's dynamic programming, weights by time). A long one that is left may
// then find its partner among the short ones between the same neighbours.
#pragma once
#include <cstdint>
#include <vector>

#include "engine/columns.h"
#include "engine/index/index.h"

namespace karst::engine {

/// One side of a comparison.
struct AlignSide {
  const TraceIndex* index = nullptr;
  const ThreadIndex* thread = nullptr;
  CallColumns calls;                                  ///< the thread's; their time() is what they took
  std::uint32_t row = reader::kNoParent;              ///< kNoParent: all calls of the thread
  const std::vector<std::uint32_t>* names = nullptr;  ///< functions of the index to names common to both sides
};

struct AlignedCall {
  std::int64_t parent = -1;  ///< place in Alignment::calls
  std::uint32_t name = 0;
  /// kNoParent: this side has no such call. The root has none on either side when whole threads are compared.
  std::uint32_t row[2] = {reader::kNoParent, reader::kNoParent};
  bool has[2] = {false, false};
  double begin[2] = {0, 0};     ///< ns since the root's begin on this side
  double duration[2] = {0, 0};  ///< as recorded
  double took[2] = {0, 0};
};

struct Alignment {
  static constexpr std::size_t kMostCalls = 20'000;
  static constexpr std::uint32_t kMostDepth = 400;

  std::vector<AlignedCall> calls;  ///< the root first, parents before their children, siblings in order of time
  bool truncated = false;          ///< there were more, or deeper ones
};

/// Calls of at least `share` of the longer root are shown, with their partners however short. Worth nothing when `work`
/// was stopped.
Alignment align(const AlignSide& a, const AlignSide& b, double share, Work* work = nullptr);

/// The pairs (places in `a` and `b`, both rising) of the common subsequence with the longest time. For tests, too.
struct AlignItem {
  std::uint32_t name = 0;
  double duration = 0;
};
std::vector<std::pair<std::uint32_t, std::uint32_t>> pair_up(const std::vector<AlignItem>& a,
                                                             const std::vector<AlignItem>& b);

}  // namespace karst::engine
