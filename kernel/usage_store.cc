// SPDX-License-Identifier: MIT
#include "kernel/usage_store.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace karst::kernel {

using reader::UsagePoint;
using reader::UsageSeries;

namespace {

bool is_total(const UsageSeries& series) {
  return format::usage_kind(static_cast<std::uint32_t>(series.kind))->is_total();
}

/// Of its older half each two points become one.
void thin_older_half(UsageSeries& series) {
  std::vector<UsagePoint>& points = series.points;
  const std::size_t half = points.size() / 4 * 2;  // an even number
  if (half < 4) return;
  // The first one stays: totals are counted from it.
  std::size_t kept = 1;
  for (std::size_t at = 1; at + 1 < half; at += 2) {
    const std::int64_t value =
        is_total(series) ? points[at + 1].value : std::max(points[at].value, points[at + 1].value);
    points[kept++] = {points[at + 1].ticks, value};
  }
  points.erase(points.begin() + static_cast<std::ptrdiff_t>(kept),
               points.begin() + static_cast<std::ptrdiff_t>(half - 1));
  series.thinned = true;
}

}  // namespace

std::optional<std::size_t> UsageStore::make(format::UsageKind kind, format::UsageOf of, std::uint32_t pid,
                                            std::uint32_t tid) {
  if (log_.series.size() >= most_series_) return std::nullopt;
  log_.series.push_back({kind, of, pid, tid, false, {}});
  return log_.series.size() - 1;
}

void UsageStore::add(std::size_t series, std::uint64_t ticks, std::int64_t value) {
  UsageSeries& to = log_.series[series];
  std::vector<UsagePoint>& points = to.points;
  const std::size_t size = points.size();
  if (size != 0 && is_total(to)) value = std::max(value, points.back().value);
  if (size >= 2 && points[size - 1].value == value && points[size - 2].value == value) {
    points.back().ticks = ticks;
    return;
  }
  points.push_back({ticks, value});
  if (++points_ > most_points_) thin();
}

void UsageStore::thin() {
  points_ = 0;
  for (UsageSeries& series : log_.series) {
    thin_older_half(series);
    points_ += series.points.size();
  }
  // Many series of few points cannot be thinned: no more is asked of them until there are twice as many.
  most_points_ = std::max(most_points_, points_ + points_ / 4);
}

reader::UsageLog UsageStore::take() {
  std::erase_if(log_.series, [](const UsageSeries& series) { return series.points.empty(); });
  points_ = 0;
  return std::exchange(log_, {});
}

reader::UsageLog UsageStore::look() const {
  reader::UsageLog log;
  for (const UsageSeries& series : log_.series)
    if (!series.points.empty()) log.series.push_back(series);
  return log;
}

}  // namespace karst::kernel
