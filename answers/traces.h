// SPDX-License-Identifier: MIT
// What a trace holds: its processes with their threads and modules, where its times, states and samples come from, and
// what was kept or could not be read.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "answers/relation.h"
#include "answers/trace_counts.h"
#include "reader/trace.h"

namespace karst::answers {

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
