// SPDX-License-Identifier: MIT
// What karst run says at its end: the trace in a line, and globs that meant nothing.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "collect/launch/launch.h"
#include "collect/record/recording.h"

namespace karst::cli {

/// The share of the program's CPU time that tracing was, from 0 to 1; less than 0: that is not known.
double overhead_of(const collect::RecordingSummary& s, double cpu_ns);

/// `karst took 0.21 s: 0.15 s before the program began, 0.06 s after it ended`. `began`: when karst did.
std::string time_taken(collect::RunTimes::Clock::time_point began, const collect::RunTimes& times);

/// `file: 1 process, ..., 34 calls kept over 45.12 ms; next: karst slow file`. `why_alone`: why no calls were recorded;
/// null: they were. `overhead`: less than 0 is not known. `took`: as of time_taken().
std::string summary_line(const std::string& file, const collect::RecordingSummary& s, std::int32_t wait_status,
                         double overhead, bool noted_values, std::size_t samples, const char* why_alone,
                         std::uint64_t notes, const std::string& took);

/// The same of a trace that has thread states alone.
std::string summary_of_states(const std::string& file, const reader::StateLog& states, std::int32_t wait_status,
                              const std::string& took);

/// Where names chose functions of unmodified code: how many are traced. The line about what was patched counts all.
void say_how_many_are_chosen(const choice::FunctionChoice& choice, const collect::LaunchResult& run);

/// A glob that means no function is mistyped, or of another program: says so of those in the lists of --no-trace and
/// --only.
void say_unmatched_globs(const std::vector<std::string>& lists, const std::string& file);

}  // namespace karst::cli
