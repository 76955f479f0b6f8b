// SPDX-License-Identifier: MIT
// What a trace holds: its processes with their threads and modules, where its times, states and samples come from, and
// what was kept or could not be read.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "answers/relation.h"
#include "reader/trace.h"

namespace karst::answers {

/// What the events of a thread add up to.
struct ThreadCounts {
  std::uint64_t calls = 0;
  std::uint64_t open_calls = 0;
  std::uint64_t elsewhere = 0;  ///< pieces of calls that are counted already, here or in the parent
  std::uint64_t events = 0;
  std::uint64_t span_ns = 0;
  std::uint64_t short_calls = 0;  ///< left out
};

struct TraceCounts {
  std::vector<std::vector<ThreadCounts>> threads;  ///< by process and thread
  std::uint64_t calls = 0;
  std::uint64_t open_calls = 0;
  std::uint64_t unwound_calls = 0;
  std::uint64_t jumped_calls = 0;
  std::uint64_t tail_calls = 0;
  std::uint64_t left_calls = 0;  ///< of these: what they called is not in their times
  std::uint64_t cut_calls = 0;
  std::uint64_t notes = 0;
  std::uint64_t overwritten = 0;
  std::uint64_t lost = 0;
  std::uint64_t span_ns = 0;
  std::vector<reader::Problem> problems;  ///< those of the file, then what the events showed
};

/// A row of traces(). All must outlive it.
struct TraceRow {
  TraceRow(const reader::Trace& trace_of, const TraceCounts& counts_of)
      : trace(trace_of), counts(counts_of), times(trace_of) {}
  const reader::Trace& trace;
  const TraceCounts& counts;
  Times times;
};

/// All that `karst info` tells programs: one row.
const Relation& traces();

/// When tracing of a process began, ticks.
std::uint64_t tracing_begin(const reader::Trace& trace, const reader::Process& process);
/// "measured against CLOCK_MONOTONIC_RAW"
std::string_view rate_source_words(std::uint32_t source);
/// Why a trace has no thread states.
std::string why_no_states(const reader::StateSource& source);

}  // namespace karst::answers
