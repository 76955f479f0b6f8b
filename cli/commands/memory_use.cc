// SPDX-License-Identifier: MIT
#include "cli/commands/memory_use.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "columns/selection.h"
#include "reader/trace.h"

namespace karst::cli {
namespace {

bool is_filtered(const Input& input) {
  return input.functions || input.filter.range || input.filter.below != nullptr || input.filter.min_ticks != 0 ||
         input.filter.request || input.filter.without != nullptr;
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

/// The call of that name among a thread's; kNoParent: there is none.
std::uint32_t row_of(const Input& input, const reader::Thread& thread, const reader::Calls& calls,
                     const CallName& name) {
  if (thread.tid != name.tid) return reader::kNoParent;
  const std::uint64_t start = analysis::first_ticks(input.trace);
  for (std::uint32_t row = 0; row < calls.size(); ++row) {
    const std::uint64_t since = calls.begin[row] > start ? input.trace.clock().to_ns(calls.begin[row] - start) : 0;
    if (since == name.begin_ns) return row;
  }
  return reader::kNoParent;
}

/// Takes the notes out that were not made in a call or below it.
void keep_below(const reader::Calls& calls, std::uint32_t row, std::vector<bool>& pass) {
  const std::uint32_t last = columns::subtree_end(columns::CallColumns(calls), row);
  for (std::size_t i = 0; i < pass.size(); ++i)
    pass[i] = pass[i] && calls.notes[i].row >= row && calls.notes[i].row < last;
}

}  // namespace

Result<analysis::MemoryUse> memory_use(const Input& input, analysis::Parts& parts, const CallName* call) {
  analysis::MemoryFinder finder(input.trace, &parts);
  const bool filtered = is_filtered(input);
  reader::Calls calls;
  std::uint64_t end = input.filter.range ? input.filter.range->end : std::numeric_limits<std::uint64_t>::max();
  bool found = call == nullptr;
  for (const reader::Process& process : input.trace.processes())
    for (const reader::Thread& thread : process.threads) {
      calls = reader::rebuild_calls(input.trace, thread, std::move(calls));
      const bool asked_for = std::find(input.threads.begin(), input.threads.end(), &thread) != input.threads.end();
      if (call != nullptr) {
        const std::uint32_t row = found || !asked_for ? reader::kNoParent : row_of(input, thread, calls, *call);
        std::vector<bool> pass(calls.notes.size());
        if (row != reader::kNoParent) {
          found = true;
          pass = filtered ? notes_that_pass(input, thread, calls) : std::vector<bool>(calls.notes.size(), true);
          keep_below(calls, row, pass);
          end = std::min(end, calls.begin[row] + calls.duration[row] + 1);
        }
        finder.add(thread, calls, &pass);
        continue;
      }
      if (asked_for && !filtered) {
        finder.add(thread, calls, nullptr);
        continue;
      }
      const std::vector<bool> pass =
          asked_for ? notes_that_pass(input, thread, calls) : std::vector<bool>(calls.notes.size());
      finder.add(thread, calls, &pass);
    }
  if (!found)
    return Error{input.trace.name() + " has no call of that thread that begins then, or it does not pass the filters"};
  analysis::MemoryUse use = finder.take(end);
  if (use.records == 0)
    return Error{input.trace.name() + " has no records of memory; 'karst run --system memory' makes them"};
  if (use.all.allocations == 0 && use.all.mapped_bytes == 0 && use.all.failed == 0)
    return Error{call != nullptr ? "that call of " + input.trace.name() + " took no memory"
                                 : "no allocation of " + input.trace.name() + " passes the filters"};
  return use;
}

}  // namespace karst::cli
