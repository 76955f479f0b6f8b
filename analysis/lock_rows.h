// SPDX-License-Identifier: MIT
// A lock's row in a picture: who had it when, and who waited for it when.
//
// holder   with `locks=all` a hold, from begin to end. Without, a wait says who had the lock as it began: that is shown
//          until anybody else begins or ends a wait for it, as nobody knows more. Time in which somebody waits, and
//          nobody said who has the lock, has a holder that is not known.
// lane     spans of one lane do not overlap: readers share a lock, and several threads wait for one
#pragma once
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "analysis/holds.h"
#include "analysis/locks.h"

namespace karst::analysis {

struct LockHolder {
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

  const reader::Thread* thread = nullptr;  ///< null: not known, or not in the trace
  std::uint32_t tid = 0;                   ///< 0: not known
  std::uint64_t begin = 0, end = 0;        ///< ticks
  std::size_t hold = kNone;                ///< in LockHolds::holds; kNone: only waits tell
  std::size_t wait = kNone;                ///< the wait that tells
};

struct LockRow {
  Lock lock;
  std::vector<LockHolder> holders;  ///< in order of begin
  std::vector<std::size_t> waits;   ///< of those given, in order of begin
};

struct LockRows {
  std::vector<LockRow> rows;     ///< the one waited for longest first
  std::uint64_t more_locks = 0;  ///< beyond those that were asked for
  std::uint64_t more_waits = 0;  ///< for these
  std::uint64_t unnamed = 0;     ///< waits that do not say which lock they are for: the trace was stripped
};

/// Rows of those locks that one thread has until it lets go: no conditions, semaphores and barriers. `waits`: all, with
/// their holders; `holds`: null: the trace has none. Names are borrowed.
LockRows lock_rows(const reader::Trace& trace, const LockNames& names, const std::vector<LockWait>& waits,
                   const LockHolds* holds, std::size_t most);

/// Holders as far as waits for one lock tell, which are `of` in order of begin.
std::vector<LockHolder> holders_by_waits(const std::vector<LockWait>& waits, const std::vector<std::size_t>& of);

/// The lowest free lane of each span (begin, end), which are in order of begin; kNoLane where `most` are taken. A span
/// without length takes its moment.
inline constexpr std::uint16_t kNoLane = std::numeric_limits<std::uint16_t>::max();
std::vector<std::uint16_t> lanes_of(const std::vector<std::pair<std::uint64_t, std::uint64_t>>& spans,
                                    std::uint16_t most);

}  // namespace karst::analysis
