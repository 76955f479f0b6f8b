// SPDX-License-Identifier: MIT
#include "analysis/diff_counts.h"

#include <algorithm>

namespace karst::analysis {
namespace {

struct Range {
  std::uint64_t least, most;
  std::uint64_t width() const { return most - least; }
};

Range range_of(std::span<const std::uint64_t> counts) {
  const auto [least, most] = std::minmax_element(counts.begin(), counts.end());
  return {*least, *most};
}

Counts of_one_run(std::uint64_t first, std::uint64_t second, bool threads) {
  const auto [least, most] = std::minmax(first, second);
  const bool far = static_cast<double>(most) >= kThreadsVary * static_cast<double>(least);
  return threads && !far ? Counts::kMayVary : Counts::kExact;
}

}  // namespace

Counts compare_counts(std::span<const std::uint64_t> first, std::span<const std::uint64_t> second, CountTrust trust) {
  const Range a = range_of(first), b = range_of(second);
  if (a.least == b.least && a.most == b.most) return Counts::kSame;
  if (!trust.complete) return Counts::kIncomplete;
  if (first.size() == 1 && second.size() == 1) return of_one_run(first[0], second[0], trust.threads);
  const std::uint64_t spread = std::max(a.width(), b.width());
  if (spread == 0) return Counts::kExact;
  const std::uint64_t gap = a.most < b.least ? b.least - a.most : b.most < a.least ? a.least - b.most : 0;
  return gap > spread ? Counts::kBeyondRuns : Counts::kWithinRuns;
}

const char* word_of(Counts counts) {
  switch (counts) {
    case Counts::kSame:
      return "same";
    case Counts::kExact:
      return "exact";
    case Counts::kBeyondRuns:
      return "beyond what runs differ by";
    case Counts::kWithinRuns:
      return "within what runs differ by";
    case Counts::kMayVary:
      return "one run of several threads: may be chance";
    case Counts::kIncomplete:
      return "a trace is incomplete: may be chance";
  }
  return "";
}

}  // namespace karst::analysis
