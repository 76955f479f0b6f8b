// Following an arena look by look (collect/live/tail.h): what is still being written waits, what is gone is counted,
// and no bytes keep it from coming to an end.
#include "collect/live/tail.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "format/note.h"
#include "test/collect/small_arena.h"

namespace karst::collect {
namespace {

constexpr std::uint64_t kNow = 100'000;
constexpr std::uint64_t kEnd = ~std::uint64_t{0};

/// An arena that the test writes to while it is followed.
class Written {
 public:
  Written() : bytes_(sound_arena()) {
    std::memcpy(&header_, bytes_.data(), sizeof header_);
    std::memset(&bytes_[header_.blocks_offset], 0, kArenaBlocks * kBlockSize);
  }
  std::vector<std::byte>& bytes() { return bytes_; }
  const ArenaHeader& header() const { return header_; }
  void block(std::uint32_t index, std::uint32_t thread, std::uint64_t sequence, std::uint64_t ticks) {
    BlockHeader b{};
    b.generation = generation_ += 2;
    b.state = static_cast<std::uint32_t>(BlockState::kActive);
    b.thread = thread;
    b.sequence = sequence;
    b.ticks = ticks;
    std::memset(&bytes_[at(index)], 0, kBlockSize);
    std::memcpy(&bytes_[at(index)], &b, sizeof b);
  }
  void put(std::uint32_t index, std::uint32_t slot, Event event) {
    std::memcpy(&bytes_[at(index) + kBlockHeaderSize + slot * sizeof event], &event, sizeof event);
  }
  ArenaView view() const {
    auto made = ArenaView::of_memory(bytes_);
    EXPECT_TRUE(made.ok());
    return std::move(*made);
  }

 private:
  std::size_t at(std::uint32_t index) const { return header_.blocks_offset + index * std::size_t{kBlockSize}; }
  std::vector<std::byte> bytes_;
  ArenaHeader header_{};
  std::uint64_t generation_ = 0;
};

TailOptions everything() {
  TailOptions options;
  options.rule_of = [](std::uint32_t) { return TailRule{}; };
  return options;
}

/// "1{ 2 }1 "note"": a digit for the function, behind `|` the level if it is not 0.
std::string text_of(const Tail& tail) {
  std::string text;
  for (const TailLine& line : tail.lines()) {
    if (!text.empty()) text += ' ';
    const std::string function = std::to_string(line.function);
    if (line.kind == TailKind::kBegin) text += function + "{";
    if (line.kind == TailKind::kEnd) text += "}" + function;
    if (line.kind == TailKind::kCall) text += (line.unentered ? "<" : "") + function;
    if (line.kind == TailKind::kNote) text += '"' + tail.texts()[line.texts - 1].returned + '"';
    if (line.kind == TailKind::kMissed) text += "missed:" + std::to_string(line.duration);
    if (line.level != 0) text += "|" + std::to_string(line.level);
  }
  return text;
}

TEST(Tail, ACallIsOneLineIfItEndsBeforeOthersAreShown) {
  Written arena;
  arena.block(0, 0, 0, 1000);
  const ArenaView view = arena.view();
  Tail tail(view, everything());
  arena.put(0, 0, make_event(1001, false, 1));
  arena.put(0, 1, make_event(1002, false, 2));
  arena.put(0, 2, make_event(1005, true, 2));
  EXPECT_FALSE(tail.look(kNow, false));
  EXPECT_EQ(text_of(tail), "1{ 2|1");
  EXPECT_EQ(tail.lines()[1].duration, 3U);
  tail.look(kNow, false);
  EXPECT_EQ(text_of(tail), "");
  arena.put(0, 3, make_event(1010, true, 1));
  arena.put(0, 4, make_event(1011, false, 2));
  tail.look(kNow, false);
  EXPECT_EQ(text_of(tail), "}1 2{");
  EXPECT_EQ(tail.lines()[0].duration, 9U);
  tail.look(kNow, true);
  EXPECT_EQ(tail.counts().shown, 3U);
  EXPECT_EQ(tail.counts().missed + tail.counts().overwritten, 0U);
}

TEST(Tail, LinesOfThreadsAreInOrderOfTime) {
  Written arena;
  arena.block(0, 0, 0, 1000);
  arena.block(1, 1, 0, 1000);
  for (std::uint32_t i = 0; i < 6; ++i) {
    arena.put(0, i, make_event(1010 + 10 * i, i % 2 != 0, 1));
    arena.put(1, i, make_event(1015 + 10 * i, i % 2 != 0, 2));
  }
  const ArenaView view = arena.view();
  Tail tail(view, everything());
  tail.look(1046, false);
  EXPECT_EQ(text_of(tail), "1 2 1 2");
  tail.look(kNow, false);
  EXPECT_EQ(text_of(tail), "1 2");
  EXPECT_EQ(tail.thread(tail.lines()[0]).tid, 4711U);
  EXPECT_EQ(tail.thread(tail.lines()[1]).tid, 4712U);
}

TEST(Tail, ANoteWaitsForItsLastWord) {
  Written arena;
  arena.block(0, 0, 0, 1000);
  const ArenaView view = arena.view();
  Tail tail(view, everything());
  const std::string said = "seven b";
  arena.put(0, 0, make_event(1001, false, 1));
  const auto word = [&](std::size_t from) {
    std::uint64_t payload = 0;
    for (std::size_t i = 0; i < 5 && from + i < said.size(); ++i)
      payload |= std::uint64_t{static_cast<unsigned char>(said[from + i])} << (8 * i);
    return make_note_word(payload);
  };
  const Event words[] = {make_mark(1002, Mark::kNote), make_note_head({NoteKind::kMessage, 0, 2}), word(0), word(5)};
  std::string seen;
  for (std::uint32_t i = 0; i < 4; ++i) {
    arena.put(0, 1 + i, words[i]);
    tail.look(kNow, false);
    EXPECT_EQ(text_of(tail), i == 0 ? "1{" : i == 3 ? "\"seven b\"|1" : "") << i;
  }
}

TEST(Tail, ASlotWhoseHookWasInterruptedIsWaitedForAWhile) {
  Written arena;
  arena.block(0, 0, 0, 1000);
  arena.put(0, 0, make_event(1001, false, 1));
  arena.put(0, 2, make_event(1003, true, 2));
  const ArenaView view = arena.view();
  Tail tail(view, everything());
  tail.look(kNow, false);
  EXPECT_EQ(text_of(tail), "1{");
  arena.put(0, 1, make_event(1002, false, 2));
  tail.look(kNow, false);
  EXPECT_EQ(text_of(tail), "2|1");
  arena.put(0, 4, make_event(1005, true, 1));  // and this one never comes
  std::string seen;
  for (int i = 0; i < 5; ++i) {
    tail.look(kNow, false);
    seen += text_of(tail);
  }
  EXPECT_EQ(seen, "}1");
}

TEST(Tail, WithALeastDurationTheRuntimeMayTakeBackTheNewestEnters) {
  Written arena;
  arena.block(0, 0, 0, 1000);
  ArenaHeader h = arena.header();
  h.min_duration_ticks = 500;
  std::memcpy(arena.bytes().data(), &h, sizeof h);
  arena.put(0, 0, make_event(1001, false, 1));
  arena.put(0, 1, make_event(1300, false, 2));
  const ArenaView view = arena.view();
  Tail tail(view, everything());
  tail.look(1600, false);
  EXPECT_EQ(text_of(tail), "1{");
  arena.put(0, 1, make_event(1700, true, 1));  // the second call was taken back
  tail.look(1800, false);
  EXPECT_EQ(text_of(tail), "}1");
}

TEST(Tail, WhatIsOpenAtTheStartComesFirstAndIsNotCounted) {
  Written arena;
  arena.block(0, 0, 0, 1000);
  arena.put(0, 0, make_event(1001, false, 1));
  arena.put(0, 1, make_event(1002, false, 2));
  arena.put(0, 2, make_event(1003, true, 2));
  const ArenaView view = arena.view();
  TailOptions options = everything();
  options.from = 5000;
  Tail tail(view, options);
  tail.look(6000, false);
  EXPECT_EQ(text_of(tail), "1{");
  arena.put(0, 3, make_event(7000, false, 2));
  tail.look(kNow, false);
  EXPECT_EQ(text_of(tail), "2{|1");
  EXPECT_EQ(tail.counts().shown, 1U);
}

TEST(Tail, OverwrittenBlocksAreCountedAndAGapIsLookedAtTwice) {
  Written arena;
  arena.block(0, 0, 0, 1000);
  for (std::uint32_t i = 0; i < kEventsPerBlock; ++i) arena.put(0, i, make_event(1000 + i, i % 2 != 0, 1));
  const ArenaView view = arena.view();
  Tail tail(view, everything());
  tail.look(kNow, false);
  EXPECT_EQ(tail.counts().shown, kEventsPerBlock / 2);
  arena.block(0, 0, 4, 5000);
  arena.put(0, 0, make_event(5001, false, 2));
  tail.look(kNow, false);
  EXPECT_EQ(text_of(tail), "");
  tail.look(kNow, false);
  EXPECT_EQ(text_of(tail), "missed:" + std::to_string(3 * kEventsPerBlock / 2) + " 2{");
  EXPECT_EQ(tail.counts().overwritten, 3U * kEventsPerBlock);
}

TEST(Tail, AnotherThreadInTheSameEntryBeginsAnew) {
  Written arena;
  arena.block(0, 0, 0, 1000);
  arena.put(0, 0, make_event(1001, false, 1));
  const ArenaView view = arena.view();
  Tail tail(view, everything());
  tail.look(kNow, false);
  EXPECT_EQ(text_of(tail), "1{");
  ArenaThread t{};
  t.tid = 4800;
  t.state = static_cast<std::uint32_t>(ThreadLife::kLive);
  t.joined_ticks = 9000;
  std::memcpy(&arena.bytes()[arena.header().threads_offset], &t, sizeof t);
  arena.block(0, 0, 0, 9000);
  arena.put(0, 0, make_event(9001, false, 2));
  tail.look(kNow, false);
  EXPECT_EQ(text_of(tail), "2{");
  EXPECT_EQ(tail.thread(tail.lines()[0]).tid, 4800U);
  EXPECT_EQ(tail.counts().shown, 2U);
}

// The table of threads is read after the blocks: what it says may be of the next thread already.
TEST(Tail, AnotherBlockInThePlaceOfTheLastOneIsAnotherThreads) {
  Written arena;
  ArenaHeader h = arena.header();
  h.threads_total = 5;
  std::memcpy(arena.bytes().data(), &h, sizeof h);
  arena.block(0, 0, 0, 1000);
  arena.put(0, 0, make_event(1001, false, 1));
  const ArenaView view = arena.view();
  Tail tail(view, everything());
  tail.look(kNow, false);
  EXPECT_EQ(text_of(tail), "1{");
  arena.block(3, 0, 0, 9000);
  arena.block(0, 1, 0, 8000);
  arena.put(3, 0, make_event(9001, false, 2));
  tail.look(kNow, false);
  EXPECT_EQ(text_of(tail), "2{");
  EXPECT_EQ(tail.counts().threads, 2U);  // of five, with that of block 0
}

TEST(Tail, DepthsOfFunctionsHoldBelowTheOutermostCall) {
  Written arena;
  arena.block(0, 0, 0, 1000);
  // 1 1 2 1 1: function 2 may have one level below it, everything else the outermost alone.
  const std::uint32_t nested[] = {1, 1, 2, 1, 1};
  for (std::uint32_t i = 0; i < 5; ++i) {
    arena.put(0, i, make_event(1001 + i, false, nested[i]));
    arena.put(0, 9 - i, make_event(1010 - i, true, nested[i]));
  }
  const ArenaView view = arena.view();
  TailOptions options = everything();
  options.depth = 1;
  options.depths = {1};
  options.rule_of = [](std::uint32_t id) { return TailRule{false, false, id == 2 ? 1U : 0U}; };
  Tail tail(view, options);
  tail.look(kNow, false);
  EXPECT_EQ(text_of(tail), "1{ 2{|2 1|3 }2|2 }1");
  options.depth = ~0U;
  options.depths.clear();
  options.roots = true;
  options.rule_of = [](std::uint32_t id) { return TailRule{id == 2, false, 0}; };
  Tail below(view, options);
  below.look(kNow, false);
  EXPECT_EQ(text_of(below), "2{ 1{|1 1|2 }1|1 }2");
  options.roots = false;
  options.rule_of = [](std::uint32_t id) { return TailRule{false, id == 2, 0}; };
  Tail without(view, options);
  without.look(kNow, false);
  EXPECT_EQ(text_of(without), "1{ 1|1 }1");
}

TEST(Tail, ShortCallsAreLeftOutWithTheirOwnAndLongOnesComeInTheirPlace) {
  Written arena;
  arena.block(0, 0, 0, 1000);
  const Event events[] = {make_event(1000, false, 1), make_event(1010, false, 2), make_event(1020, true, 2),
                          make_event(1100, false, 2), make_event(1300, true, 2),  make_event(1400, true, 1)};
  for (std::uint32_t i = 0; i < 6; ++i) arena.put(0, i, events[i]);
  const ArenaView view = arena.view();
  TailOptions options = everything();
  options.min_ticks = 100;
  Tail tail(view, options);
  tail.look(kNow, false);
  EXPECT_EQ(text_of(tail), "1{ 2|1 }1");
  EXPECT_EQ(tail.counts().shown, 2U);
}

// Whatever the bytes are: each look ends, and so does the end. Calls are never shown or missed twice.
TEST(HostileTail, ComesToAnEndAndInventsNothing) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937_64 random(seed);
    Written arena;
    const auto some = [&](std::uint64_t below) { return random() % below; };
    const auto scribble = [&] {
      for (std::uint32_t i = 0; i < kArenaBlocks; ++i) {
        if (some(3) == 0) continue;
        arena.block(i, static_cast<std::uint32_t>(some(18)), some(2) == 0 ? some(6) : random(),
                    some(3) == 0 ? random() : 1000 * some(4));
        for (std::uint32_t slot = 0; slot < kEventsPerBlock; ++slot) {
          Event event = some(8) == 0 ? random() : make_event(1000 + some(3000), some(2) == 0, 1 + some(3));
          if (some(20) == 0) event = make_mark(random(), static_cast<Mark>(kMaxFunctionId + 1 + some(12)));
          if (some(30) == 0) event = 0;
          arena.put(i, slot, event);
        }
      }
    };
    scribble();
    const ArenaView view = arena.view();
    TailOptions options = everything();
    options.from = some(2) == 0 ? 0 : 2000;
    options.min_ticks = some(3) == 0 ? some(1000) : 0;
    options.most_lag = some(2) == 0 ? 0 : 1000;
    options.depth = some(2) == 0 ? ~0U : 1 + static_cast<std::uint32_t>(some(3));
    Tail tail(view, options);
    std::uint64_t begun = 0;
    std::uint64_t lines = 0;
    const auto count = [&] {
      for (const TailLine& line : tail.lines()) {
        begun += (line.kind == TailKind::kBegin || line.kind == TailKind::kCall) && !line.unentered && !line.resumed &&
                         line.ticks >= options.from
                     ? 1
                     : 0;
        EXPECT_LE(line.level, options.depth);
        EXPECT_LE(line.texts, tail.texts().size());
        tail.thread(line);
      }
      lines += tail.lines().size();
    };
    for (int i = 0; i < 20; ++i) {
      tail.look(kNow, false);
      count();
      if (some(3) == 0) scribble();
    }
    int looks = 0;
    while (tail.look(kEnd - 1, true) && looks < 1000) {
      count();
      ++looks;
    }
    count();
    EXPECT_LT(looks, 1000) << seed;
    EXPECT_EQ(tail.counts().shown, begun) << seed;
    EXPECT_EQ(tail.counts().lines, lines) << seed;
    EXPECT_LE(tail.counts().shown + tail.counts().missed, 30U * kArenaBlocks * kEventsPerBlock) << seed;
  }
}

}  // namespace
}  // namespace karst::collect
