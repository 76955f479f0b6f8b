// SPDX-License-Identifier: MIT
// What `karst run --count` has counted: the calls of each function in all processes of a run, with names.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "collect/record/recording.h"
#include "reader/model.h"
#include "symbols/resolve.h"

namespace karst::collect {

struct FunctionCount {
  std::string name;
  std::string module;  ///< path
  std::string file;    ///< empty: not known
  std::uint32_t line = 0;
  bool always = false;  ///< KARST_ALWAYS: lists do not leave it out
  std::uint64_t calls = 0;
};

struct Counts {
  std::vector<FunctionCount> functions;  ///< those that were called, by calls, most first
  std::uint64_t calls = 0;
  std::uint64_t uncounted = 0;  ///< calls for whose counters there was no memory
  std::size_t processes = 0;
  std::vector<reader::Problem> problems;
};

Counts count_calls(const std::vector<RecordedProcess>& processes, const symbols::ResolveOptions& options);

/// What tracing a call costs here, in nanoseconds: two readings of the TSC with their stores, which the hooks take the
/// time of (docs/speed.md), and a tenth. Measured now; takes some milliseconds.
double call_cost_ns();

/// Which functions to leave out so that tracing costs less than `share` of `cpu_ns`: as few as will do.
struct Suggestion {
  std::vector<const FunctionCount*> functions;  ///< by calls, most first
  double share_now = 0;
  double share_then = 0;
};
Suggestion suggest(const Counts& counts, double share, double call_ns, double cpu_ns);

}  // namespace karst::collect
