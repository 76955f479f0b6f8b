// SPDX-License-Identifier: MIT
// A trace of just a part of a trace: all calls of a scope, whole, with their callers.
#pragma once
#include <cstddef>
#include <vector>

#include "base/result.h"
#include "engine/index/scope.h"
#include "write/trace_writer.h"

namespace karst::engine {

/// Events that a cut in memory may have.
inline constexpr std::uint64_t kMaxCutEvents = std::uint64_t{1} << 26U;

/// Writes a whole trace, which the caller finishes. Events in the range are copied as they are; in front of them come
/// the enters of calls that were running when it began, with the stacks and places to jump to that the range's events
/// go on with, behind them the ends of those that ran on, at their own times. So calls are the same in the cut. Where a
/// thread's begin is lost and it switches stacks, which stack lies above which may be told otherwise; nothing that
/// began in the range is missing. Switches, moments and states of the range, and sources of what was called, are in it;
/// threads without calls in the scope are not. Error: others wrote to the trace's file meanwhile.
Status write_cut(const Scope& scope, writing::TraceWriter& writer);

/// The same as the bytes of a .karst file. Error: also more than kMaxCutEvents.
Result<std::vector<std::byte>> cut_trace(const Scope& scope);

}  // namespace karst::engine
