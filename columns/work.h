// SPDX-License-Identifier: MIT
// A long answer under way: how far it is, and whether it is still wanted. Who computes looks here now and then; who
// waits looks on, or stops it, from another thread.
#pragma once
#include <atomic>
#include <cstdint>

namespace karst::columns {

struct Work {
  std::atomic<bool> stop = false;           ///< set: what comes of it will be thrown away
  std::atomic<std::uint64_t> done = 0;      ///< rows looked at
  std::atomic<std::uint64_t> expected = 0;  ///< in all; grows while it becomes known
};

/// Rows between two looks at Work: some tenths of a millisecond.
inline constexpr std::uint32_t kWorkStep = 1U << 16U;

/// Says that `rows` rows are done; false when the rest is not wanted. `work` may be null.
inline bool go_on(Work* work, std::uint64_t rows) {
  if (work == nullptr) return true;
  work->done.fetch_add(rows, std::memory_order_relaxed);
  return !work->stop.load(std::memory_order_relaxed);
}
inline bool is_stopped(const Work* work) { return work != nullptr && work->stop.load(std::memory_order_relaxed); }
inline void expect(Work* work, std::uint64_t rows) {
  if (work != nullptr) work->expected.fetch_add(rows, std::memory_order_relaxed);
}

}  // namespace karst::columns
