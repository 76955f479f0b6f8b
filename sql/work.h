// SPDX-License-Identifier: MIT
// How far a query has come with the calls that it reads, and whether it shall end.
#pragma once
#include <atomic>
#include <cstdint>
#include <stdexcept>

#include "reader/partial.h"

namespace karst::sql {

/// Of one query at a time; used from all threads that work on it.
struct Work {
  /// Events that were looked at, and those that will be. Each reading of all calls adds to both, so that a query that
  /// reads calls three times has three times the events.
  std::atomic<std::uint64_t> done = 0, total = 0;
  std::atomic<bool> stop = false;

  void begin() {
    done = 0;
    total = 0;
    stop = false;
  }
  /// Throws where the query shall end.
  void check() const {
    if (stop) throw std::runtime_error("interrupted");
  }
  /// For rebuilding calls.
  reader::RebuildLimits limits() {
    reader::RebuildLimits limits;
    limits.stop[0] = &stop;
    limits.done = &done;
    return limits;
  }
};

}  // namespace karst::sql
