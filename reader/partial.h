// SPDX-License-Identifier: MIT
// Calls of a thread for who cannot wait for all of them, or may change his mind.
#pragma once
#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "reader/trace.h"

namespace karst::reader {

struct RebuildLimits {
  /// So many of the thread's first blocks alone. What is open behind them is marked as at the end of a history; rows of
  /// calls that have ended are those of the whole, but come earlier by the calls whose begin only later blocks tell of.
  std::size_t blocks = std::numeric_limits<std::size_t>::max();
  /// Null, or what other threads set to have no more: the calls are then of the blocks so far, and good for nothing.
  std::array<const std::atomic<bool>*, 2> stop = {};
  /// Null, or what counts the events that were looked at.
  std::atomic<std::uint64_t>* done = nullptr;

  bool is_stopped() const {
    return std::any_of(stop.begin(), stop.end(), [](const auto* one) { return one != nullptr && *one; });
  }
};

/// As rebuild_calls(trace, thread). Never fails.
Calls rebuild_calls(const Trace& trace, const Thread& thread, const RebuildLimits& limits, Calls used = {});

}  // namespace karst::reader
