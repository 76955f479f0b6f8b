// What `karst ps` and `top` make of the newest events (collect/live/sample.h).
#include <algorithm>
#include <vector>

#include "collect/live/sample.h"
#include "fuzz/require.h"
#include "fuzz/small_events.h"

namespace {

/// A clock that goes back gives time twice, as it does to the reader.
bool clock_goes_back(std::vector<karst::collect::ArenaBlock> blocks) {
  std::sort(blocks.begin(), blocks.end(), [](const auto& a, const auto& b) {
    return a.thread != b.thread ? a.thread < b.thread : a.sequence < b.sequence;
  });
  return std::adjacent_find(blocks.begin(), blocks.end(), [](const auto& a, const auto& b) {
           return a.thread == b.thread && a.ticks > b.ticks;
         }) != blocks.end();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace karst;
  using fuzz::require;
  const auto bytes = fuzz::arena_of({data, size});
  const auto view = collect::ArenaView::of_memory(bytes);
  require(view.ok(), "the arena is right");
  const auto blocks = view->blocks();
  for (const std::uint64_t from : {0ULL, 100ULL, 1'000ULL}) {
    for (const std::size_t most : {1U, 3U, 100U}) {
      const collect::Sample s = collect::sample(*view, blocks, from, most);
      require(s.blocks_read <= std::max<std::size_t>(most, 1) && s.blocks_read <= s.blocks, "it reads what it may");
      std::uint64_t calls = 0;
      std::uint64_t self = 0;
      std::uint64_t covered = 0;
      for (const auto& f : s.functions) {
        calls += f.calls;
        self += f.self_ticks;
      }
      for (const auto& t : s.threads) covered += t.ticks;
      require(calls == s.calls, "each call is of a function");
      require(self <= covered || clock_goes_back(blocks), "no time is given twice");
    }
  }
  return 0;
}
