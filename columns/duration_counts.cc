// SPDX-License-Identifier: MIT
#include "columns/duration_counts.h"

#include <algorithm>
#include <limits>

namespace karst::columns {

void DurationCounts::count_more() {
  counts_.resize(counts_.empty() ? kLeastCounted : counts_.size() * 4);
  const auto counted = std::remove_if(others_.begin(), others_.end(), [this](std::uint64_t ticks) {
    if (ticks >= counts_.size()) return false;
    ++counts_[ticks];
    return true;
  });
  others_.erase(counted, others_.end());
  limit_ = counts_.size() < kLongestCounted ? std::max(counts_.size(), 2 * others_.size())
                                            : std::numeric_limits<std::size_t>::max();
}

Percentiles DurationCounts::percentiles() const {
  std::vector<std::uint64_t> rest = others_;
  const auto of_percent = [&](std::uint64_t percent) {
    std::uint64_t rank = rank_of(size_, percent);
    for (std::size_t ticks = 0; ticks < counts_.size(); ++ticks) {
      if (rank < counts_[ticks]) return std::uint64_t{ticks};
      rank -= counts_[ticks];
    }
    const auto at = rest.begin() + static_cast<std::ptrdiff_t>(rank);
    std::nth_element(rest.begin(), at, rest.end());
    return *at;
  };
  const std::uint64_t p50 = of_percent(50);
  return {p50, of_percent(99)};
}

std::vector<std::uint64_t> DurationCounts::values() const {
  std::vector<std::uint64_t> all;
  all.reserve(size_);
  reader::touch_ahead(all.data(), size_ * sizeof(std::uint64_t));
  for (std::size_t ticks = 0; ticks < counts_.size(); ++ticks) all.insert(all.end(), counts_[ticks], ticks);
  all.insert(all.end(), others_.begin(), others_.end());
  return all;
}

}  // namespace karst::columns
