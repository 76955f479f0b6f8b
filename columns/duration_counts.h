// SPDX-License-Identifier: MIT
// The durations of a function's calls, each exactly, in less memory than 8 bytes a call where there are many: most
// calls are short, and of short ones many last equally long. Short durations are counted by their value, others are
// kept in a list. Once the list is as large as the table of counts, the table is made four times as long, up to
// kLongestCounted ticks, which is half a millisecond. So a function takes 8 MiB, and 8 bytes for each longer call.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "columns/table.h"

namespace karst::columns {

class DurationCounts {
 public:
  void add(std::uint64_t ticks) {
    ++size_;
    if (ticks < counts_.size()) {
      ++counts_[ticks];
      return;
    }
    others_.push_back(ticks);
    if (others_.size() >= limit_) [[unlikely]]
      count_more();
  }
  std::uint64_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  /// As percentiles() of all of them. There must be one.
  Percentiles percentiles() const;
  /// All of them, in no order.
  std::vector<std::uint64_t> values() const;

 private:
  static constexpr std::size_t kLeastCounted = 1024;
  static constexpr std::size_t kLongestCounted = std::size_t{1} << 20U;
  void count_more();

  std::vector<std::uint64_t> counts_;  // by duration
  std::vector<std::uint64_t> others_;
  std::size_t limit_ = kLeastCounted;  // of others_
  std::uint64_t size_ = 0;
};

}  // namespace karst::columns
