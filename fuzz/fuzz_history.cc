// What is open after some events, asked of a history in the order of time, as forked children do; and histories that
// are kept and copied (collect/record/history.h, collect/record/open_calls.h).
#include <utility>
#include <vector>

#include "collect/record/history.h"
#include "fuzz/require.h"
#include "fuzz/small_events.h"

namespace {

using namespace karst;
using fuzz::require;

std::size_t count_events(const collect::History& history) {
  std::vector<format::Event> buffer;
  std::size_t count = 0;
  for (const auto& block : history.blocks()) count += history.read(block, buffer).size();
  return count;
}

// Times are not among the promises: a process may write a block that goes on after the next one has begun.
void check(const collect::OpenCalls& open) {
  const auto items = open.items();
  require(collect::count_calls(items) <= items.size(), "calls are items");
  for (const auto& item : items) require(item.function <= fuzz::kFunctions, "what is open was entered");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = fuzz::arena_of({data, size});
  auto view = collect::ArenaView::of_memory(bytes);
  require(view.ok(), "the arena is right");
  collect::History history(std::move(*view));
  collect::OpenCallsOf open_calls;
  collect::OpenCalls inherited;
  inherited.forget();
  open_calls.begin_with(101, inherited);
  for (std::uint64_t ticks = 1; ticks < 4000; ticks = ticks * 2 + 100)
    for (std::uint32_t tid = 100; tid <= 100 + fuzz::kThreads; ++tid) {
      const collect::OpenCalls open = open_calls.at(history, tid, ticks);
      check(open);
    }
  const std::size_t events = count_events(history);
  require(history.keep(10, 500) >= 10, "nothing before the range is promised");
  require(count_events(history) == events, "what is kept is there already");
  const std::size_t functions = history.process().functions.size();
  history.detach();
  require(count_events(history) == events, "a copy has all events");
  require(history.process().functions.size() <= functions, "a copy has no more functions");
  check(collect::OpenCallsOf().at(history, 100, 1'000'000));
  return 0;
}
