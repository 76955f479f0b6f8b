// Bytes of a fuzzer's as an arena with blocks of events, for targets that look at what events say.
//   a block: 0xff, thread, sequence, ticks (1 byte each), then its events until the next block
//   an event: 2 bytes: kind and id, ticks since the one before (a mark's place)
#pragma once
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "format/arena.h"
#include "format/note.h"

namespace karst::fuzz {

inline constexpr std::uint32_t kMostBlocks = 32;
inline constexpr std::uint32_t kThreads = 4;
inline constexpr std::uint32_t kFunctions = 15;

inline format::Event event_of(std::uint8_t what, std::uint8_t more, std::uint64_t& ticks) {
  using namespace format;
  const std::uint32_t id = what & 15;
  ticks += more;
  switch (what >> 4) {
    case 0:
      return make_place(std::uint64_t{more} << 4, Mark::kSetPlace);
    case 1:
      return make_place(std::uint64_t{more} << 4);
    case 2:
      return make_mark(ticks, Mark::kJumped);
    case 3:
      return make_mark(ticks, Mark::kSwitched);
    case 4:
      return make_mark(ticks, Mark::kUnwound);
    case 5:
      switch (id & 3) {
        case 1:
          return make_mark(ticks, Mark::kNote);
        case 2:
          return make_note_head({static_cast<NoteKind>(id >> 2), std::uint32_t{more} >> 4, std::uint32_t{more} & 3});
        case 3:
          return make_note_word(more);
        default:
          return 0;
      }
    default:
      return make_event(ticks, (what & 16) != 0, id);
  }
}

/// Ids 1 to 15; 8 and 15 are tail exits of 7 and 14. Threads 0 to 3 have the ids 100 to 103.
inline std::vector<std::byte> arena_of(std::span<const std::uint8_t> data) {
  using namespace format;
  ArenaHeader h{};
  h.magic = kArenaMagic;
  h.version = kArenaVersion;
  h.control_offset = 512;
  h.modules_offset = 1024;
  h.functions_offset = 1280;
  h.threads_offset = 2048;
  h.text_offset = 4096;
  h.blocks_offset = kBlockSize;
  h.module_capacity = h.module_count = 1;
  h.function_capacity = kFunctions + 1;
  h.function_count = kFunctions;
  h.thread_capacity = h.thread_count = kThreads;
  h.pid = 100;
  std::vector<std::byte> bytes(kBlockSize);
  const auto put = [&bytes](std::uint64_t at, const auto& value) { std::memcpy(&bytes[at], &value, sizeof value); };
  for (std::uint32_t id = 1; id <= kFunctions; ++id)
    put(h.functions_offset + id * 16,
        ArenaFunction{(id - (id % 7 == 1 && id > 1 ? 1 : 0)) * 0x1000ULL, 0, id % 7 == 1 && id > 1 ? 3U : 1U});
  ArenaThread t{};
  t.state = 1;
  for (std::uint32_t i = 0; i < kThreads; ++i) {
    t.tid = 100 + i;
    put(h.threads_offset + i * sizeof t, t);
  }
  std::uint64_t ticks = 1;
  std::uint32_t events = 0;
  for (std::size_t at = 0; at + 2 <= data.size();) {
    const std::size_t block = bytes.size() - kBlockSize;
    if (data[at] == 0xff || block == 0 || events == kEventsPerBlock) {
      if (h.block_capacity == kMostBlocks) break;
      bytes.resize(bytes.size() + kBlockSize);
      BlockHeader b{};
      b.generation = 2;
      b.state = static_cast<std::uint32_t>(BlockState::kFull);
      const auto field = [&](std::size_t i) { return data[at] == 0xff && at + i < data.size() ? data[at + i] : 0U; };
      b.thread = field(1) % kThreads;
      b.sequence = field(2);
      ticks += field(3);
      b.ticks = ticks;
      put(bytes.size() - kBlockSize, b);
      ++h.block_capacity;
      events = 0;
      at += data[at] == 0xff ? 4 : 0;
      continue;
    }
    put(block + kBlockHeaderSize + events++ * 8, event_of(data[at], data[at + 1], ticks));
    at += 2;
  }
  h.blocks_reserved = h.block_capacity;
  h.size = bytes.size();
  put(0, h);
  return bytes;
}

}  // namespace karst::fuzz
