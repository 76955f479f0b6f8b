// SPDX-License-Identifier: MIT
#include "analysis/untraced.h"

#include <algorithm>

#include "format/control.h"
#include "format/trace.h"

namespace karst::analysis {

std::vector<Untraced> untraced_times(const reader::Process& process) {
  std::vector<Untraced> times;
  for (const reader::Switch& s : process.switches) {
    if (s.first != 0) continue;
    const bool open = !times.empty() && times.back().end == kLasts;
    if (s.on && !open) times.push_back({process.start_ticks, kLasts, s.reason});  // it was off from the start on
    if (s.on)
      times.back().end = s.end_ticks != 0 ? s.end_ticks : kLasts;
    else if (!open)
      times.push_back({s.begin_ticks, kLasts, s.reason});
  }
  return times;
}

const char* reason_text(std::uint32_t reason) {
  if (reason == format::kSwitchesUnknown) return "not known: too many switches";
  switch (static_cast<format::SwitchReason>(reason)) {
    case format::SwitchReason::kRequest:
      return "asked for";
    case format::SwitchReason::kTimer:
      return "its time was up";
    case format::SwitchReason::kBudget:
      return "by the budget";
  }
  return "for an unknown reason";
}

std::string functions_text(const reader::Trace& trace, const reader::Process& process, const reader::Switch& of) {
  constexpr std::size_t kNamed = 2;
  constexpr std::uint64_t kLooked = 4096;  // a trace may have tens of thousands of switches
  std::string text;
  std::size_t count = 0;
  const std::uint64_t most = std::min<std::uint64_t>(of.count, kLooked);
  const std::uint64_t end = std::min<std::uint64_t>(of.first + most, process.functions.size());
  for (std::uint64_t id = std::max(of.first, 1U); id < end && count <= kNamed; ++id) {
    const reader::Function& function = process.functions[id];
    if (function.id == 0 || function.tail_exit) continue;
    if (++count > kNamed) return text + " and others";
    text += (count == 1 ? "" : ", ") + trace.function(process, function.id).name;
  }
  return text;
}

}  // namespace karst::analysis
