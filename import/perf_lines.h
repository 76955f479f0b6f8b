// SPDX-License-Identifier: MIT
// Lines of what `perf script` writes: a line that says who and when, then a frame a line, the innermost first, then an
// empty one. Samples without stacks have their frame on the first line.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace karst::importing {

/// The first line of a sample. The texts lie in that line.
struct PerfHead {
  std::string_view command;
  std::uint32_t tid = 0;
  std::optional<std::uint32_t> pid;
  std::uint16_t cpu = 0;  ///< 0 also where it is not said
  std::int64_t ns = 0;
  std::optional<std::uint64_t> period;  ///< in the event's unit
  std::string_view event;               ///< `cycles:u`
  std::string_view rest;                ///< a frame, or what a tracepoint says
};
struct PerfFrame {
  std::string_view name;    ///< `[unknown]` where perf knows none
  std::string_view module;  ///< a path; empty: perf knows none
};

/// None: it is no such line.
std::optional<PerfHead> perf_head(std::string_view line);
std::optional<PerfFrame> perf_frame(std::string_view line);

/// An event without what stands around its name: `cycles` of `cpu_core/cycles/u` and of `cycles:ppp`.
std::string_view perf_event_name(std::string_view event);
/// Its samples come as CPU time goes by. Others, as page faults, count something else.
bool is_cpu_time(std::string_view event_name);

}  // namespace karst::importing
