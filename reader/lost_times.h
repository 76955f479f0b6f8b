// SPDX-License-Identifier: MIT
// When events of a process are lost, so that what other threads did meanwhile may be missing from a fiber's history.
#pragma once
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "reader/model.h"
#include "reader/trace.h"

namespace karst::reader {

/// Times in which events of any of the process's threads are lost.
class LostTimes {
 public:
  void add(std::uint64_t begin, std::uint64_t end) {
    if (begin < end) times_.emplace_back(begin, end);
  }
  /// To be called behind the last add(), before any().
  void settle();
  /// Whether such a time overlaps with this one.
  bool any(std::uint64_t from, std::uint64_t to) const;

 private:
  std::vector<std::pair<std::uint64_t, std::uint64_t>> times_;
};

/// `blocks`: of each of the process's threads.
LostTimes lost_times(const Process& process, std::span<const std::span<const StoredBlock>> blocks);

}  // namespace karst::reader
