// SPDX-License-Identifier: MIT
#include "analysis/kept_span.h"

#include <algorithm>

#include "analysis/selection.h"

namespace karst::analysis {

std::optional<KeptSpan> kept_span(const reader::Trace& trace, std::span<const reader::Thread* const> threads,
                                  const std::optional<columns::TickRange>& range) {
  const std::uint64_t end = last_ticks(trace);
  std::uint64_t began = end, earliest = end, complete_from = 0;
  for (const reader::Thread* thread : threads) {
    const auto blocks = trace.blocks(*thread);
    const std::uint64_t from = blocks.empty() ? end : blocks.front().ticks;
    earliest = std::min(earliest, from);
    if (thread->overwritten_events == 0) continue;
    complete_from = std::max(complete_from, from);
    began = std::min(began, trace.processes()[thread->process].start_ticks);
  }
  if (complete_from == 0 || (range && range->begin >= complete_from)) return std::nullopt;
  return KeptSpan{end - std::min(began, earliest), end - earliest, end - complete_from};
}

}  // namespace karst::analysis
