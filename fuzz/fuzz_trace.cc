// The reader of .karst files: opening, and rebuilding the calls and the states of every thread.
#include <cstddef>
#include <cstdint>
#include <span>

#include "fuzz/require.h"
#include "reader/moments.h"
#include "reader/trace.h"

namespace {

using namespace karst;

using fuzz::require;

// What rebuild_calls and the model promise to those who use them without looking twice.
void check_promises(const reader::Trace& trace, const reader::Process& process, const reader::Calls& calls) {
  const std::size_t rows = calls.size();
  require(calls.begin.size() == rows && calls.duration.size() == rows && calls.parent.size() == rows &&
              calls.depth.size() == rows && calls.marks.size() == rows,
          "columns are of one length");
  for (std::size_t i = 0; i < rows; ++i) {
    const bool root = calls.parent[i] == reader::kNoParent;
    require(root || calls.parent[i] < i, "a parent comes before its children");
    require(root ? calls.depth[i] == 0 : calls.depth[i] == 65535 || calls.depth[i] == calls.depth[calls.parent[i]] + 1,
            "depth is that of the parent and one");
    require(!trace.function(process, calls.function[i]).name.empty(), "every function has a name");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  auto trace = reader::Trace::open_memory(bytes, "fuzz");
  if (!trace) {
    require(!trace.error().message.empty(), "an error says something");
    return 0;
  }
  require(trace->complete() || !trace->problems().empty(), "a cut file is reported");
  std::uint64_t events = 0;
  for (const auto& process : trace->processes()) {
    for (const auto& function : process.functions) {
      if (function.id == 0) continue;
      require(!function.name.empty() && function.module < process.modules.size(), "functions have name and module");
    }
    for (const auto& moment : process.moments) {
      require(moment.kept_from <= moment.begin_ticks && moment.begin_ticks <= moment.end_ticks &&
                  moment.end_ticks <= moment.kept_to,
              "a moment lies in what was kept of it");
      require(find_moment(*trace, moment.number).ok(), "what is listed is found");
    }
    for (const auto& thread : process.threads) {
      for (const auto& block : trace->blocks(thread)) events += block.events.size();
      check_promises(*trace, process, rebuild_calls(*trace, thread));
    }
  }
  require(events == trace->event_count(), "every event belongs to a thread");
  for (const reader::ThreadStates& thread : trace->states().threads()) {
    require(thread.task < trace->states().tasks().size(), "states are of a task that is known");
    for (std::size_t i = 1; i < thread.size(); ++i)
      require(thread.begin[i - 1] < thread.begin[i], "states are in order of time");
  }
  return 0;
}
