// SPDX-License-Identifier: MIT
// A series is known by its number; its points are put in order of time, and a total that falls loses those that would
// make it fall.
#include "reader/usage_chunks.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>

#include "reader/records.h"

namespace karst::reader {
namespace {

using format::ChunkType;

bool is_earlier(const UsagePoint& a, const UsagePoint& b) { return a.ticks < b.ticks; }

class UsageReader {
 public:
  explicit UsageReader(ProblemList& problems) : problems_(problems) {}

  UsageLog read(const ChunkList& list) {
    for (const Chunk& chunk : list.chunks)
      if (chunk.type == ChunkType::kSeries)
        each_record<format::SeriesRecord>(chunk, problems_, [this](const auto&, const auto& r) { add_series(r); });
    for (const Chunk& chunk : list.chunks)
      if (chunk.type == ChunkType::kPoints)
        each_record<format::PointRecord>(chunk, problems_, [this](const auto&, const auto& r) { add_point(r); });
    for (UsageSeries& series : log_.series) settle(series);
    std::erase_if(log_.series, [](const UsageSeries& series) { return series.points.empty(); });
    return std::move(log_);
  }

 private:
  void add_series(const format::SeriesRecord& r) {
    if (format::usage_kind(r.kind) == nullptr || r.of >= format::kUsageOfs) return;  // of a later version
    if (!places_.try_emplace(r.series, log_.series.size()).second) {
      problems_.add("series", [] { return std::string("two series have the same number; one was left out"); });
      return;
    }
    log_.series.push_back({static_cast<format::UsageKind>(r.kind),
                           static_cast<format::UsageOf>(r.of),
                           r.pid,
                           r.tid,
                           (r.flags & format::kSeriesThinned) != 0,
                           {}});
  }

  void add_point(const format::PointRecord& r) {
    if (latest_ == nullptr || r.series != latest_number_) {
      const auto found = places_.find(r.series);
      if (found == places_.end()) return;  // as above, or its SERI chunk is damaged, which is a problem already
      latest_number_ = r.series;
      latest_ = &log_.series[found->second];
    }
    latest_->points.push_back({r.ticks, r.value});
  }

  void settle(UsageSeries& series) {
    std::vector<UsagePoint>& points = series.points;
    if (!std::is_sorted(points.begin(), points.end(), is_earlier))
      std::stable_sort(points.begin(), points.end(), is_earlier);
    if (!format::usage_kind(static_cast<std::uint32_t>(series.kind))->is_total()) return;
    std::int64_t least = 0;
    const std::size_t before = points.size();
    std::erase_if(points, [&least](const UsagePoint& point) {
      if (point.value < least) return true;
      least = point.value;
      return false;
    });
    if (points.size() != before)
      problems_.add("falling total", [] {
        return std::string("a total of what was used falls, which cannot be; such points were left out");
      });
  }

  ProblemList& problems_;
  UsageLog log_;
  std::unordered_map<std::uint32_t, std::size_t> places_;  // by number
  UsageSeries* latest_ = nullptr;
  std::uint32_t latest_number_ = 0;
};

}  // namespace

UsageLog excerpt_usage(const UsageLog& log, std::uint64_t begin, std::uint64_t end) {
  UsageLog part;
  for (const UsageSeries& series : log.series) {
    const auto& points = series.points;
    auto first = std::partition_point(points.begin(), points.end(), [&](const auto& p) { return p.ticks < begin; });
    auto last = std::partition_point(first, points.end(), [&](const auto& p) { return p.ticks < end; });
    if (first != points.begin()) --first;
    if (last != points.end()) ++last;
    if (first == last) continue;
    UsageSeries& kept =
        part.series.emplace_back(UsageSeries{series.kind, series.of, series.pid, series.tid, series.thinned, {}});
    kept.points.assign(first, last);
  }
  return part;
}

UsageLog read_usage(const ChunkList& list, ProblemList& problems) { return UsageReader(problems).read(list); }

}  // namespace karst::reader
