// SPDX-License-Identifier: MIT
// Series of what is used, in bounded memory. A value that stays the same takes two points, however often it is read.
// When there are too many points, the older half of each series is thinned: two of its points become one, of levels the
// greater one. So the newest history is as it was read, and the oldest of a long run is coarse.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>

#include "reader/usage.h"

namespace karst::kernel {

/// One thread at a time.
class UsageStore {
 public:
  static constexpr std::size_t kMostSeries = 10'000;
  static constexpr std::size_t kMostPoints = std::size_t{1} << 19;  ///< 8 MiB
  explicit UsageStore(std::size_t most_series = kMostSeries, std::size_t most_points = kMostPoints)
      : most_series_(most_series), most_points_(most_points) {}

  /// Its place; nothing: there are too many.
  std::optional<std::size_t> make(format::UsageKind kind, format::UsageOf of, std::uint32_t pid, std::uint32_t tid);
  /// `ticks` do not fall from call to call. A total that falls is taken to have stayed.
  void add(std::size_t series, std::uint64_t ticks, std::int64_t value);
  /// All of it; nothing is left here. Series without points are not in it.
  reader::UsageLog take();
  /// The same, and it stays.
  reader::UsageLog look() const;

 private:
  void thin();

  std::size_t most_series_;
  std::size_t most_points_;
  std::size_t points_ = 0;
  reader::UsageLog log_;
};

}  // namespace karst::kernel
