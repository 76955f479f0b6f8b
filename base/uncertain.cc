// SPDX-License-Identifier: MIT
#include "base/uncertain.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace karst {
namespace {

/// To one digit, away from the middle.
double rounded(double ns, bool up) {
  if (ns < 1) return up ? std::ceil(ns) : 0;
  const double step = std::pow(10, std::floor(std::log10(ns)));
  return (up ? std::ceil(ns / step) : std::floor(ns / step)) * step;
}

}  // namespace

std::string uncertain_duration_text(std::uint64_t ns, double off_by_ns) {
  constexpr double kKnown = 0.15;
  const auto middle = static_cast<double>(ns);
  if (off_by_ns <= kKnown * middle || off_by_ns < 1) return duration_text(ns);
  constexpr double kLong = 2'000;
  if (middle > kLong) return "~" + duration_text(ns);
  constexpr double kUnits[] = {1, 1e3, 1e6, 1e9};
  constexpr const char* kNames[] = {"ns", "us", "ms", "s"};
  const double low = rounded(std::max(middle - off_by_ns, 0.0), false), high = rounded(middle + off_by_ns, true);
  std::size_t unit = 0;
  while (unit + 1 < std::size(kUnits) && high >= kUnits[unit + 1]) ++unit;
  const double in = kUnits[unit];
  return fmt::format("{:.9g}-{:.9g} {}", low / in, high / in, kNames[unit]);
}

}  // namespace karst
