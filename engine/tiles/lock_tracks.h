// SPDX-License-Identifier: MIT
// Locks as tracks: who had a lock, below that who waited for it (analysis/lock_rows.h). They are made when the page
// asks for them (api/locks), as that may take a look at all calls again; api/trace does not list them. Their ids follow
// those that it lists.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "analysis/lock_rows.h"
#include "answers/locks.h"
#include "engine/columns.h"
#include "engine/index/index.h"
#include "engine/index/strips.h"

namespace karst::engine {

inline constexpr std::size_t kMaxLockTracks = 32;
inline constexpr std::uint16_t kMaxHolderLanes = 4;  ///< readers share a lock
inline constexpr std::uint16_t kMaxWaitLanes = 12;

struct LockTrack {
  analysis::LockRow row;
  /// A slice's function is a thread of the index; as many as there are: not known. Its source is a place in
  /// row.holders, or of a wait its row in its thread.
  Strip strip;
  std::uint16_t holder_lanes = 1;  ///< the first ones
  std::uint16_t wait_lanes = 0;
  std::vector<std::uint16_t> holder_lane, wait_lane;  ///< by place in `row`; analysis::kNoLane: there was no room
  std::uint64_t left_out = 0;                         ///< slices that there was no room for
};

/// Memory: some 200 bytes a wait, and as much a hold.
struct LockTracks {
  explicit LockTracks(const reader::Trace& trace) : names(trace) {}

  analysis::LockNames names;  ///< rows borrow them
  bool holds_known = false;
  analysis::LockHolds holds;
  std::vector<analysis::LockWait> waits;
  analysis::LockRows rows;  ///< what was left out; the rows themselves are in `tracks`
  std::vector<LockTrack> tracks;
  struct Place {
    std::uint32_t thread, row;  ///< of the index
    std::uint32_t track, at;    ///< place in the track's row
    auto operator<=>(const Place&) const = default;
  };
  std::vector<Place> places;  ///< waits, in order
  /// What rows of answers/locks.h are looked up in. Borrows from both.
  answers::LockContext context(const TraceIndex& index) const;
  /// Null: this call is no wait for a lock that has a track.
  const Place* find(std::uint32_t thread, std::uint32_t row) const;

  /// Null: `work` was stopped.
  static std::shared_ptr<const LockTracks> make(const TraceIndex& index, Work* work);
};

/// Numbers in functions() of waits for locks that one thread has: those that occur.
std::vector<std::uint32_t> functions_that_wait(const TraceIndex& index);

}  // namespace karst::engine
