// SPDX-License-Identifier: MIT
#include "words/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace karst::words {
namespace {

using analysis::Finding;

constexpr std::size_t kMostCertain = 10, kMostChance = 3;
std::string ns_text(double ns) { return duration_text(static_cast<std::uint64_t>(std::llround(std::abs(ns)))); }
std::string more_text(double ns) { return (ns < 0 ? "-" : "+") + ns_text(ns); }

/// Means of several runs may be broken.
std::string number_text(double count) {
  const bool whole = std::abs(count - std::round(count)) < 0.05;
  return whole ? count_text(static_cast<std::uint64_t>(std::llround(count))) : fmt::format("{:.1f}", count);
}

std::string times_text(double count) { return number_text(count) + (number_text(count) == "1" ? " time" : " times"); }

std::string count_sentence(const Finding& f) {
  const std::string name = printable(f.function);
  const std::string who =
      f.caller.empty() ? name + " is called" : fmt::format("{} calls {}", printable(f.caller), name);
  return fmt::format("{} {}, before {}: {}", who, times_text(f.calls[1]), number_text(f.calls[0]),
                     more_text(f.more_ns));
}

std::string time_sentence(const Finding& f) {
  return fmt::format("{} takes {} a call by itself, before {}: {}", printable(f.function), ns_text(f.call_self_ns[1]),
                     ns_text(f.call_self_ns[0]), more_text(f.more_ns));
}

}  // namespace

std::string sureness(const Finding& f) {
  if (f.kind == Finding::Kind::kCount) return analysis::word_of(f.counts);
  return f.certain ? fmt::format("certain, chance {:.1g}%", std::max(f.chance * 100, 0.001)) : "may be chance";
}

std::string words_of(const Finding& f) {
  return fmt::format("{} ({})", f.kind == Finding::Kind::kCount ? count_sentence(f) : time_sentence(f), sureness(f));
}

std::string words_of_all(const std::array<double, 2>& all_ns) {
  return fmt::format("{} in all, before {}", ns_text(all_ns[1]), ns_text(all_ns[0]));
}

Told worth_telling(const std::vector<Finding>& found, const std::array<double, 2>& all_ns, bool all) {
  Told told;
  std::size_t certain = 0, chance = 0;
  for (const Finding& f : found) {
    // What may be chance is worth a line from this part of all time on.
    if (!f.certain && std::abs(f.more_ns) < analysis::kLeastShare * std::max(all_ns[0], all_ns[1])) continue;
    std::size_t& shown = f.certain ? certain : chance;
    if (!all && shown == (f.certain ? kMostCertain : kMostChance)) {
      told.left_out += f.certain ? 1 : 0;
      continue;
    }
    ++shown;
    told.findings.push_back(&f);
  }
  return told;
}

}  // namespace karst::words
