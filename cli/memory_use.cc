#include "cli/memory_use.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "reader/trace.h"

namespace karst::cli {
namespace {

bool is_filtered(const Input& input) {
  return input.functions || input.filter.range || input.filter.below != nullptr || input.filter.min_ticks != 0 ||
         input.filter.request;
}

/// By note: whether it passes the filters. What passes keeps its order and its place among the bytes.
std::vector<bool> notes_that_pass(const Input& input, const reader::Thread& thread, const reader::Calls& calls) {
  std::vector<bool> pass(calls.notes.size());
  const reader::Calls left = input.calls_of(thread);
  std::size_t at = 0;
  for (std::size_t i = 0; i < calls.notes.size() && at < left.notes.size(); ++i) {
    const reader::Note& note = calls.notes[i];
    if (note.bytes != left.notes[at].bytes || note.ticks != left.notes[at].ticks) continue;
    ++at;
    const bool inside = note.row != reader::kNoParent;
    pass[i] = !input.functions || (inside && input.functions->contains(thread.process, calls.function[note.row]));
  }
  return pass;
}

}  // namespace

Result<analysis::MemoryUse> memory_use(const Input& input, analysis::Parts& parts) {
  analysis::MemoryFinder finder(input.trace, &parts);
  const bool filtered = is_filtered(input);
  reader::Calls calls;
  for (const reader::Process& process : input.trace.processes())
    for (const reader::Thread& thread : process.threads) {
      calls = reader::rebuild_calls(input.trace, thread, std::move(calls));
      const bool asked_for = std::find(input.threads.begin(), input.threads.end(), &thread) != input.threads.end();
      if (asked_for && !filtered) {
        finder.add(thread, calls, nullptr);
        continue;
      }
      const std::vector<bool> pass =
          asked_for ? notes_that_pass(input, thread, calls) : std::vector<bool>(calls.notes.size());
      finder.add(thread, calls, &pass);
    }
  analysis::MemoryUse use =
      finder.take(input.filter.range ? input.filter.range->end : std::numeric_limits<std::uint64_t>::max());
  if (use.records == 0)
    return Error{input.trace.name() + " has no records of memory; 'karst run --system memory' makes them"};
  if (use.all.allocations == 0 && use.all.mapped_bytes == 0 && use.all.failed == 0)
    return Error{"no allocation of " + input.trace.name() + " passes the filters"};
  return use;
}

}  // namespace karst::cli
