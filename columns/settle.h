// SPDX-License-Identifier: MIT
// Own times that are less than nothing, as callees outlast their caller there: by the tracer's cost, which is a mean,
// or as a stack of its own went on elsewhere. A sum over a function's calls has them in it; parts of that sum that are
// to be shown each by itself cannot. So what is missing in one part is taken from the function's others, in proportion.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <unordered_map>

namespace karst::columns {

/// What a function's own time counts in the sum of all.
inline std::uint64_t at_least_0(std::uint64_t ticks) { return static_cast<std::int64_t>(ticks) < 0 ? 0 : ticks; }

/// `part(i)`: reference to the i-th part's own time in ticks, which wraps below 0. `function(i)`: whose it is. After
/// that no part is below 0, and those of a function add up to what they did before, or to 0 if that was less.
template <typename Part, typename Function>
void settle(std::size_t count, Part part, Function function) {
  struct Sums {
    std::uint64_t above = 0;  // of the parts that are not below 0
    std::uint64_t missing = 0;
    std::uint64_t passed = 0;  // of `above`, by the second walk
  };
  const auto is_missing = [](std::uint64_t ticks) { return static_cast<std::int64_t>(ticks) < 0; };
  std::unordered_map<std::uint32_t, Sums> sums;
  for (std::size_t i = 0; i < count; ++i)
    if (is_missing(part(i))) sums[function(i)].missing -= part(i);
  if (sums.empty()) return;
  for (std::size_t i = 0; i < count; ++i)
    if (const auto of = sums.find(function(i)); of != sums.end() && !is_missing(part(i))) of->second.above += part(i);
  for (std::size_t i = 0; i < count; ++i) {
    const auto of = sums.find(function(i));
    if (of == sums.end()) continue;
    Sums& s = of->second;
    if (is_missing(part(i))) {
      part(i) = 0;
      continue;
    }
    // Of sums, so that what is rounded away in one part is in the next.
    const auto taken = [&](std::uint64_t ticks) {
      const std::uint64_t missing = std::min(s.missing, s.above);
      return s.above == 0 ? 0 : static_cast<std::uint64_t>(static_cast<unsigned __int128>(ticks) * missing / s.above);
    };
    const std::uint64_t before = taken(s.passed);
    s.passed += part(i);
    part(i) -= taken(s.passed) - before;
  }
}

}  // namespace karst::columns
