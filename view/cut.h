// A trace of just a part of a trace: all calls of a scope, whole, with their callers.
#pragma once
#include <cstddef>
#include <vector>

#include "reader/result.h"
#include "view/selection.h"

namespace karst::view {

/// Events that a cut may have; it is made in memory.
inline constexpr std::uint64_t kMaxCutEvents = std::uint64_t{1} << 26U;

/// The bytes of a .karst file. Events in the range are copied as they are; in front of them come the enters of calls
/// that were running when it began, behind them the exits of those that ran on, at their own times. So calls are the
/// same in the cut; those with an open end may be known for a shorter time. Other stacks (swapcontext) that were put
/// aside before the range are not in it. Threads without calls in the scope are left out. Error: more than
/// kMaxCutEvents, or memory is out.
Result<std::vector<std::byte>> cut_trace(const Scope& scope);

}  // namespace karst::view
