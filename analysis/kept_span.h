// SPDX-License-Identifier: MIT
// How much of its time a trace has: where memory was full, the oldest events of a thread were overwritten.
#pragma once
#include <cstdint>
#include <optional>
#include <span>

#include "columns/selection.h"
#include "reader/trace.h"

namespace karst::analysis {

/// Ticks of the trace's clock, each up to the trace's end.
struct KeptSpan {
  std::uint64_t whole = 0;  ///< since the first process began
  std::uint64_t most = 0;   ///< what is kept of the thread of which most is
  std::uint64_t least = 0;  ///< of the one of which least is: since then nothing is missing
};

/// Of `threads`. Nothing if no event of theirs was overwritten, or none within `range`.
std::optional<KeptSpan> kept_span(const reader::Trace& trace, std::span<const reader::Thread* const> threads,
                                  const std::optional<columns::TickRange>& range);

}  // namespace karst::analysis
