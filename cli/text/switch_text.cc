// SPDX-License-Identifier: MIT
#include "cli/text/switch_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analysis/selection.h"
#include "cli/text/text.h"
#include "format/control.h"
#include "format/trace.h"

namespace karst::cli {
namespace {

using analysis::kLasts;
constexpr std::size_t kMostLines = 8;
constexpr std::uint64_t kMostFunctions = std::uint64_t{1} << 22;  // looked at one by one

std::string at(const reader::Trace& trace, std::uint64_t ticks) {
  const std::uint64_t start = analysis::first_ticks(trace);
  return ticks == kLasts ? "the end" : duration_text(trace.clock().to_ns(ticks > start ? ticks - start : 0));
}

/// How long a function was off, and since when it is.
struct Off {
  std::uint64_t since = 0;  // 0: it is on
  std::uint64_t first = 0;  // when it went off for the first time
  std::uint64_t times = 0;
  std::uint64_t ticks = 0;
  std::uint32_t reason = 0;
};

}  // namespace

std::vector<std::string> switch_lines(const reader::Trace& trace, const reader::Process& process) {
  std::vector<std::string> lines;
  const std::vector<Untraced> times = untraced_times(process);
  for (std::size_t i = 0; i < std::min(times.size(), kMostLines); ++i)
    lines.push_back(fmt::format("nothing from {} to {} ({})", at(trace, times[i].begin), at(trace, times[i].end),
                                reason_text(times[i].reason)));
  if (times.size() > kMostLines) lines.push_back(fmt::format("and nothing {} times more", times.size() - kMostLines));

  std::map<std::uint32_t, Off> functions;
  std::uint64_t work = 0;
  std::uint64_t end = analysis::last_ticks(trace);
  for (const reader::Switch& s : process.switches) {
    for (std::uint64_t id = s.first; s.first != 0 && id < std::uint64_t{s.first} + s.count; ++id) {
      if (id >= process.functions.size() || ++work > kMostFunctions) break;
      if (process.functions[id].id == 0 || process.functions[id].tail_exit) continue;
      Off& off = functions[static_cast<std::uint32_t>(id)];
      if (s.on) {
        if (off.since != 0 && s.end_ticks > off.since) off.ticks += s.end_ticks - off.since;
        if (s.end_ticks != 0) off.since = 0;
      } else if (off.since == 0) {
        off.since = std::max<std::uint64_t>(s.begin_ticks, 1);
        if (off.times++ == 0) off.first = off.since;
        off.reason = s.reason;
      }
      end = std::max(end, s.begin_ticks);
    }
  }
  std::vector<std::pair<std::uint32_t, Off>> longest;
  for (auto& [id, off] : functions) {
    if (off.times == 0) continue;
    if (off.since != 0 && end > off.since) off.ticks += end - off.since;
    longest.emplace_back(id, off);
  }
  if (longest.empty()) return lines;
  const auto still = std::count_if(longest.begin(), longest.end(), [](const auto& f) { return f.second.since != 0; });
  const auto culled = std::count_if(longest.begin(), longest.end(), [](const auto& f) {
    return f.second.reason == static_cast<std::uint32_t>(format::SwitchReason::kBudget);
  });
  lines.push_back(fmt::format(
      "{} function{} at times, {} of them by the budget; {} at the end{}", count_text(longest.size()),
      longest.size() == 1 ? "" : "s", count_text(static_cast<std::uint64_t>(culled)),
      count_text(static_cast<std::uint64_t>(still)), work > kMostFunctions ? " (not all changes were looked at)" : ""));
  std::stable_sort(longest.begin(), longest.end(),
                   [](const auto& a, const auto& b) { return a.second.ticks > b.second.ticks; });
  for (std::size_t i = 0; i < std::min(longest.size(), kMostLines); ++i) {
    const auto& [id, off] = longest[i];
    lines.push_back(fmt::format("  {} for {}, {} from {} ({})", printable(trace.function(process, id).name),
                                duration_text(trace.clock().to_ns(off.ticks)),
                                off.times == 1 ? std::string("once") : fmt::format("{} times", off.times),
                                at(trace, off.first), reason_text(off.reason)));
  }
  return lines;
}

}  // namespace karst::cli
