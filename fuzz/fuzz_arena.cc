// The reader of arenas, with all that commands ask of one and the clock that they make of its start.
//
// Tables of an arena reach over megabytes. So an input does not have its bytes, but changes to one that is right:
//   part (1 byte), offset in it (2), length (1), so many bytes          again and again
// Part 255: what follows, to the end, is an arena by itself.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "collect/arena/view.h"
#include "collect/live/sample.h"
#include "fuzz/require.h"

namespace {

using namespace karst;
using namespace karst::format;
using fuzz::require;

constexpr std::uint32_t kBlocks = 8;
constexpr std::uint32_t kKeptBlocks = 4;
constexpr std::uint32_t kSwitches = 16;

/// An arena with something in each table.
class Template {
 public:
  Template() {
    h_.magic = kArenaMagic;
    h_.version = kArenaVersion;
    h_.module_capacity = 8;
    h_.function_capacity = 64;
    h_.thread_capacity = 8;
    h_.text_capacity = 256;
    h_.block_capacity = h_.blocks_reserved = kBlocks;
    h_.count_capacity = 4;
    h_.pid = 1;
    h_.module_count = h_.thread_count = 2;
    h_.function_count = 8;
    h_.count_pages = 2;
    h_.executable_size = h_.command_line_size = 8;
    h_.start_ticks = 5'000;
    h_.start_monotonic_raw_ns = 1'000;
    place(sizeof h_);
    h_.control_offset = place(sizeof(ArenaControl));
    const std::uint64_t switches = place(sizeof(ArenaSwitch) * kSwitches);
    h_.threads_offset = place(sizeof(ArenaThread) * h_.thread_capacity);
    h_.blocks_offset = place(kBlockSize * kBlocks);
    h_.counts_offset = place(sizeof(CountOwner) * h_.count_capacity);
    place(sizeof(CountPage) * h_.count_capacity);
    ArenaWatching w{};
    w.slots_offset = place(sizeof(std::uint64_t) * kWatchSlots);
    w.moments_offset = place(sizeof(ArenaMoment) * kWatchSlots);
    w.candidates_offset = place(sizeof(ArenaCandidate) * kWatchCandidates);
    w.blocks_offset = place(kBlockSize * kKeptBlocks);
    w.block_capacity = w.blocks_used = kKeptBlocks;
    h_.modules_offset = place(sizeof(ArenaModule) * h_.module_capacity);
    h_.functions_offset = place(sizeof(ArenaFunction) * h_.function_capacity);
    h_.watching_offset = place(sizeof w);
    w.rules_offset = place(sizeof(ArenaWatchRule) * kWatchRules);
    w.watches_offset = place(sizeof(ArenaWatch) * kWatches);
    w.rule_count = w.watch_count = 1;
    w.slots_used = 4;
    h_.text_offset = place(h_.text_capacity);
    h_.size = bytes_.size();
    put(0, h_);
    put(h_.watching_offset, w);
    ArenaControl c{};
    c.switches_offset = switches;
    c.switch_capacity = kSwitches;
    c.switch_count = 3;
    put(h_.control_offset, c);
    for (std::uint32_t i = 0; i < kSwitches; ++i)
      put(switches + i * 32, ArenaSwitch{i * 10ULL, i * 10 + 5ULL, 1, 2, i % 2, 0});
    for (std::uint32_t i = 1; i <= h_.function_count; ++i)
      put(h_.functions_offset + i * 16, ArenaFunction{i * 0x100ULL, i % 2, i % 3 == 0 ? 3U : 1U});
    ArenaThread t{};
    t.state = 1;
    t.given_name_size = 4;
    for (std::uint32_t i = 0; i < 2; ++i) put(h_.threads_offset + i * sizeof t, t);
    for (std::uint32_t i = 0; i < kBlocks + kKeptBlocks; ++i) {
      const std::uint64_t at =
          i < kBlocks ? h_.blocks_offset + i * kBlockSize : w.blocks_offset + (i - kBlocks) * kBlockSize;
      BlockHeader b{};
      b.generation = 2;
      b.state = static_cast<std::uint32_t>(BlockState::kFull);
      b.thread = i % 2;
      b.sequence = i;
      b.ticks = i * 1000;
      put(at, b);
      for (std::uint32_t e = 0; e < 20; ++e)
        put(at + sizeof b + e * 8, make_event(i * 1000 + e, e % 2 != 0, e / 2 % 8));
    }
    put(h_.counts_offset, CountOwner{1, 1});
    std::memset(&bytes_[h_.text_offset], 'x', h_.text_capacity);
    ArenaWatchRule rule{};
    rule.kind = 3;
    rule.text[0] = 'f';
    put(w.rules_offset, rule);
    ArenaWatch watch{};
    watch.state = 2;
    watch.function = 1;
    put(w.watches_offset, watch);
    for (std::uint32_t i = 0; i < 4; ++i) {
      put(w.slots_offset + i * 8, make_slot(100, i % 2));
      ArenaMoment m{};
      m.turn = 2;
      m.begin_ticks = 100 * i;
      m.end_ticks = 100 * i + 100;
      put(w.moments_offset + i * sizeof m, m);
      put(w.candidates_offset + i * sizeof(ArenaCandidate), ArenaCandidate{50, 150, 0, i, 0, 1});
    }
  }
  std::vector<std::byte>& bytes() { return bytes_; }
  const std::vector<std::uint64_t>& parts() const { return parts_; }

 private:
  std::uint64_t place(std::uint64_t size) {
    parts_.push_back(bytes_.size());
    bytes_.resize((bytes_.size() + size + kBlockSize - 1) / kBlockSize * kBlockSize);
    return parts_.back();
  }
  template <typename T>
  void put(std::uint64_t at, const T& value) {
    std::memcpy(&bytes_[at], &value, sizeof value);
  }
  ArenaHeader h_{};
  std::vector<std::byte> bytes_;
  std::vector<std::uint64_t> parts_;
};

void look_at(std::span<const std::byte> bytes) {
  const auto view = collect::ArenaView::of_memory(bytes);
  if (!view) {
    require(!view.error().message.empty(), "an error says something");
    return;
  }
  const reader::Process process = view->process();
  require(process.modules.size() <= kArenaModules && process.threads.size() <= kArenaThreads, "tables are bounded");
  require(process.functions.size() == view->function_count() + std::size_t{1}, "functions are by id");
  std::size_t text = process.executable.size() + process.options.size();
  for (const auto& argument : process.command_line) text += argument.size();
  for (const auto& module : process.modules) text += module.path.size();
  for (const auto& thread : process.threads) text += thread.name.size();
  require(text <= 4 * kArenaTextSize + 16 * process.threads.size(), "texts together are bounded");
  for (std::uint32_t id = 1; id < process.functions.size(); ++id) {
    require(process.functions[id].id == 0 || process.functions[id].module < process.modules.size(),
            "a function has a module");
    view->is_tail_exit(id);
  }
  const auto blocks = view->blocks();
  require(blocks.size() <= bytes.size() / kBlockSize * 2, "blocks lie in the arena");
  std::vector<Event> buffer;
  for (const auto& block : blocks) require(view->read(block, buffer).size() <= kEventsPerBlock, "a block is a block");
  const collect::Sample sample = collect::sample(*view, blocks, 1, 100);
  require(sample.blocks_read <= 100, "a sample reads what it may");
  for (const auto& moment : view->moments())
    require(moment.begin_ticks < moment.end_ticks && moment.function <= view->function_count(),
            "a moment has a length");
  require(view->switches().size() <= kArenaSwitches + std::size_t{1}, "switches are bounded");
  require(view->counts().size() <= process.functions.size(), "counts are of functions");
  require(view->rules().size() <= kWatchRules && view->watched_by_rule().size() == kWatchRules, "rules are bounded");
  view->watch_losses();
  view->all_function_flags();
  view->control_now();
  const Clock clock = make_clock({view->start(), {1ULL << 40, 0, 1ULL << 40, 0}});
  require(clock.ticks_per_second != 0, "a clock has a rate");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Template arena;
  std::vector<std::byte>& bytes = arena.bytes();
  std::vector<std::pair<std::size_t, std::byte>> before;
  for (std::size_t at = 0; at < size && size - at >= 4;) {
    if (data[at] == 255) {
      look_at(std::as_bytes(std::span(data + at + 1, size - at - 1)));
      break;
    }
    const std::size_t begin = arena.parts()[data[at] % arena.parts().size()];
    std::size_t to = begin + data[at + 1] + std::size_t{data[at + 2]} * 256;
    std::size_t length = data[at + 3];
    for (at += 4; length != 0 && at < size; --length, ++at, ++to) {
      if (to >= bytes.size()) continue;
      before.emplace_back(to, bytes[to]);
      bytes[to] = static_cast<std::byte>(data[at]);
    }
  }
  look_at(bytes);
  for (; !before.empty(); before.pop_back()) bytes[before.back().first] = before.back().second;
  return 0;
}
