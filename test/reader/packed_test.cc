// SPDX-License-Identifier: MIT
// Packed events say what was packed, whatever it was; damaged ones are told of, and nothing else happens.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "format/note.h"
#include "reader/stored_block.h"
#include "reader/trace.h"
#include "reader/unpack.h"
#include "write/pack.h"
#include "write/synthetic.h"
#include "write/trace_writer.h"

namespace karst {
namespace {

using format::Event;
using format::Mark;
using writing::Pack;

constexpr std::uint64_t kStart = (std::uint64_t{7} << KARST_EVENT_TICK_BITS) + 5000;

/// Calls, marks, notes, tail exits, exits that fit nothing and holes, with steps of every size, also backwards.
class RandomEvents {
 public:
  explicit RandomEvents(std::uint32_t seed) : random_(seed) {}

  std::vector<Event> make(std::size_t count, std::uint32_t functions) {
    std::vector<Event> events;
    while (events.size() < count) add(events, functions);
    return events;
  }

 private:
  std::uint64_t any(std::uint64_t below) { return random_() % below; }
  std::uint64_t tick() {
    constexpr std::uint64_t kSteps[] = {1, 100, 253, 254, 300, 65'789, 65'790, 1U << 30U, std::uint64_t{1} << 39U};
    now_ += any(8) != 0 ? any(200) : kSteps[any(std::size(kSteps))];
    if (any(100) == 0) now_ -= any(1000);
    return now_;
  }
  void add(std::vector<Event>& events, std::uint32_t functions) {
    switch (any(20)) {
      case 0:
        events.push_back(0);
        break;
      case 1:
        events.push_back(format::make_mark(tick(), static_cast<Mark>(format::kMaxFunctionId + 1 + any(256))));
        break;
      case 2:
        events.push_back(format::make_mark(tick(), Mark::kNote));
        events.push_back(format::make_note_head({format::NoteKind::kText, 3, 2}));
        events.push_back(format::make_note_word(random_()));
        events.push_back(format::make_note_word(random_()));
        break;
      case 3:
        events.push_back(format::make_place(random_(), Mark::kSetPlace));
        break;
      case 4:
        events.push_back(format::make_event(tick(), true, 1 + static_cast<std::uint32_t>(any(functions))));
        break;
      default:
        if (open_.empty() || any(2) == 0) {
          open_.push_back(1 + static_cast<std::uint32_t>(any(functions)));
          events.push_back(format::make_event(tick(), false, open_.back()));
        } else {
          events.push_back(format::make_event(tick(), true, open_.back()));
          open_.pop_back();
        }
    }
  }

  std::mt19937_64 random_;
  std::uint64_t now_ = kStart;
  std::vector<std::uint32_t> open_;
};

Pack pack_of(std::vector<Event> events) { return {3, 4, 77, 5, kStart, std::move(events)}; }

std::vector<Event> unpacked(std::span<const std::byte> payload) {
  reader::Unpacker unpacker;
  EXPECT_TRUE(unpacker.unpack(payload));
  return {unpacker.events().begin(), unpacker.events().end()};
}

TEST(Packed, EventsAreTheSameBehindIt) {
  writing::Packer packer;
  for (std::uint32_t seed = 1; seed <= 300; ++seed) {
    constexpr std::uint32_t kFunctions[] = {1, 5, 254, 255, 3000, format::kMaxFunctionId};
    const auto events = RandomEvents(seed).make(seed * seed % 5000, kFunctions[seed % std::size(kFunctions)]);
    const Pack pack = pack_of(events);
    const auto payload = packer.pack(pack);
    ASSERT_EQ(unpacked(payload), events) << "seed " << seed;
    format::PackedHeader header;
    std::memcpy(&header, payload.data(), sizeof header);
    const reader::StoredBlock packed(header, payload);
    const reader::StoredBlock plain(reader::BlockView{77, kStart, events});
    EXPECT_EQ(packed.size(), plain.size());
    EXPECT_EQ(packed.enters(), plain.enters());
    EXPECT_EQ(packed.first_ticks(), plain.first_ticks());
    EXPECT_EQ(packed.last_ticks(), plain.last_ticks());
    EXPECT_EQ(packed.next_sequence, 82U);
  }
}

TEST(Packed, DeeperThanItsStack) {
  std::vector<Event> events;
  for (std::uint32_t i = 0; i < 150'000; ++i) events.push_back(format::make_event(kStart + i, false, 1 + i % 300));
  for (std::uint32_t i = 150'000; i-- != 0;) events.push_back(format::make_event(kStart + 150'000, true, 1 + i % 300));
  writing::Packer packer;
  EXPECT_EQ(unpacked(packer.pack(pack_of(events))), events);
}

TEST(Packed, ZerosKeepItFromBeingTooDense) {
  std::vector<Event> events;
  for (std::uint32_t i = 0; i < 60'000; ++i) events.push_back(format::make_event(kStart, i % 2 != 0, 1));
  writing::Packer packer;
  const auto payload = packer.pack(pack_of(events));
  EXPECT_GE(payload.size() * format::kMaxPackedDensity + format::kMaxPackedDensity, events.size());
  EXPECT_LT(payload.size(), 2500U);
  EXPECT_EQ(unpacked(payload), events);
  std::vector<std::byte> cut(payload.begin(), payload.begin() + static_cast<std::ptrdiff_t>(payload.size() / 2));
  reader::Unpacker unpacker;
  EXPECT_FALSE(unpacker.unpack(cut));
}

TEST(Packed, DamageIsSeenOrGivesOtherEvents) {
  writing::Packer packer;
  reader::Unpacker unpacker;
  std::mt19937 random(1);
  std::size_t refused = 0;
  const auto payload = packer.pack(pack_of(RandomEvents(5).make(3000, 400)));
  for (int i = 0; i < 20'000; ++i) {
    std::vector<std::byte> damaged(payload.begin(), payload.end());
    for (std::uint32_t k = 0; k <= random() % 4; ++k)
      damaged[random() % (i % 2 != 0 ? damaged.size() : sizeof(format::PackedHeader))] ^= std::byte(1 << random() % 8);
    if (random() % 8 == 0) damaged.resize(random() % damaged.size());
    if (!unpacker.unpack(damaged)) ++refused;
    EXPECT_LE(unpacker.events().size(), format::kMaxPackedEvents);
  }
  EXPECT_GT(refused, 1000U);
  ASSERT_TRUE(unpacker.unpack(payload));
}

std::vector<std::byte> synthetic(bool packed, std::uint64_t events) {
  std::vector<std::byte> bytes;
  auto writer = writing::TraceWriter::to_memory(bytes);
  if (packed) writer.pack_events();
  writing::SyntheticTrace wanted;
  wanted.events = events;
  wanted.threads = 3;
  wanted.block_events = 504;
  wanted.request_events = 700;
  wanted.shape = writing::SyntheticShape::kRandom;
  wanted.dropped_blocks = 2;
  writing::add_synthetic(writer, wanted);
  EXPECT_TRUE(writer.finish().ok());
  return bytes;
}

TEST(Packed, ATraceHasTheSameCalls) {
  const auto plain_bytes = synthetic(false, 600'000);
  const auto packed_bytes = synthetic(true, 600'000);
  EXPECT_LT(packed_bytes.size() * 3, plain_bytes.size());
  const auto plain = reader::Trace::open_memory(plain_bytes, "plain");
  const auto packed = reader::Trace::open_memory(packed_bytes, "packed");
  ASSERT_TRUE(plain.ok() && packed.ok());
  EXPECT_TRUE(packed->problems().empty());
  EXPECT_EQ(packed->event_count(), plain->event_count());
  for (const reader::Thread& thread : plain->processes()[0].threads) {
    const reader::Calls a = rebuild_calls(*plain, thread);
    const reader::Calls b = rebuild_calls(*packed, thread);
    const auto same = [](const auto& left, const auto& right) {
      return std::equal(left.begin(), left.end(), right.begin(), right.end());
    };
    EXPECT_TRUE(same(a.function, b.function) && same(a.begin, b.begin) && same(a.duration, b.duration));
    EXPECT_TRUE(same(a.parent, b.parent) && same(a.marks, b.marks));
    EXPECT_EQ(a.notes.size(), b.notes.size());
    EXPECT_EQ(a.first_ticks, b.first_ticks);
    EXPECT_EQ(a.last_ticks, b.last_ticks);
    EXPECT_EQ(a.missing_blocks, b.missing_blocks);
    EXPECT_LT(packed->blocks(thread).size() * 50, plain->blocks(thread).size() + 150);
  }
  EXPECT_TRUE(packed->unchanged().ok());
}

TEST(Packed, AGapIsBetweenBlocksThatAreNotPackedTogether) {
  std::vector<std::byte> bytes;
  auto writer = writing::TraceWriter::to_memory(bytes);
  writer.pack_events();
  const std::vector<Event> pair = {format::make_event(kStart, false, 1), format::make_event(kStart + 9, true, 1)};
  for (const std::uint64_t sequence : {0, 1, 5, 6}) writer.add_block(0, 0, sequence, kStart, pair);
  ASSERT_TRUE(writer.finish().ok());
  const auto trace = reader::Trace::open_memory(bytes, "gap");
  ASSERT_TRUE(trace.ok());
  const auto& thread = trace->processes()[0].threads[0];
  ASSERT_EQ(trace->blocks(thread).size(), 2U);
  EXPECT_EQ(rebuild_calls(*trace, thread).missing_blocks, 3U);
  EXPECT_EQ(rebuild_calls(*trace, thread).size(), 4U);
}

}  // namespace
}  // namespace karst
