// SPDX-License-Identifier: MIT
#include "cli/input/chosen_part.h"

#include <set>
#include <utility>

#include "cli/text/progress.h"

namespace karst::cli {

Result<ChosenPart> chosen_part(Input& input, const char* doing) {
  ChosenPart part;
  part.range = input.filter.range;
  std::set<std::pair<std::uint32_t, std::uint32_t>> chosen;  // process and thread, in the trace's numbers
  for (const reader::Thread* thread : input.threads) chosen.emplace(thread->process, thread->index);
  Progress progress(doing, input.trace.event_count());
  engine::IndexProgress steps;
  steps.also = &progress.done;
  auto index = engine::TraceIndex::build(std::move(input.trace), steps);
  if (!index) return index.error();
  part.index = std::move(*index);
  for (std::uint32_t i = 0; i < part.index->threads().size(); ++i) {
    const reader::Thread& thread = *part.index->threads()[i].thread;
    if (chosen.contains({thread.process, thread.index})) part.threads.push_back(i);
  }
  return part;
}

}  // namespace karst::cli
