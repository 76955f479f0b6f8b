// What was not traced when, in words: for `karst info` and `karst tree`.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "reader/trace.h"

namespace karst::cli {

/// A stretch of time in which nothing of a process was traced.
struct Untraced {
  std::uint64_t begin = 0;  ///< ticks
  std::uint64_t end = 0;    ///< ~0: it lasts
  std::uint32_t reason = 0;
};
std::vector<Untraced> untraced_times(const reader::Process& process);

/// "asked for", "its time was up", "budget", ...
const char* reason_text(std::uint32_t reason);

/// A bounded number of lines: when the process was not traced, and which functions were not for how long, those that
/// were off for longest first.
std::vector<std::string> switch_lines(const reader::Trace& trace, const reader::Process& process);

/// All of them, as a JSON array.
std::string switches_json(const reader::Trace& trace, const reader::Process& process);

}  // namespace karst::cli
