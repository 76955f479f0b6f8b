// Copying blocks while they are overwritten, step by step: what is lost is said, and nothing else.
#include "runtime/snapshots/snapshot_copy.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "runtime/recording/arena.h"
#include "runtime/system/memory.h"

namespace karst::test {
namespace {

using namespace runtime;
using namespace format;

constexpr std::uint32_t kBlocks = 16;
constexpr std::uint64_t kStep = 1000;  // ticks from block to block

/// The process's one arena is made once; each test begins with its blocks unused and with threads of its own.
class SnapshotCopyTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (g_arena.exists()) return;
    Options options;
    options.memory = kBlocks * kBlockSize;
    ASSERT_EQ(g_arena.create(options), nullptr);
  }
  void SetUp() override {
    for (std::uint32_t i = 0; i < g_arena.blocks_reserved(); ++i) {
      g_arena.block(i)->state = static_cast<std::uint32_t>(BlockState::kClaimed);
      Arena::give_back(*g_arena.block(i));
    }
  }
  void TearDown() override {
    for (const std::uint32_t i : threads_) {
      ArenaThread& t = g_arena.thread(i);
      t.state = static_cast<std::uint32_t>(ThreadLife::kFree);
      t.overwritten_events = t.lost_events = 0;
    }
  }

  std::uint32_t join() {
    const std::uint32_t index = g_arena.claim_thread();
    ArenaThread& t = g_arena.thread(index);
    t.state = static_cast<std::uint32_t>(ThreadLife::kLive);
    t.joined_ticks = 1;
    t.overwritten_events = 0;
    threads_.push_back(index);
    return index;
  }

  /// Block `place` of the arena becomes number `sequence` of the thread, with events from `ticks` on, one a tick.
  void record(std::uint32_t place, std::uint32_t thread, std::uint64_t sequence, std::uint64_t ticks,
              std::uint32_t events = kEventsPerBlock, BlockState state = BlockState::kFull) {
    BlockHeader& b = *g_arena.block(place);
    b.state = static_cast<std::uint32_t>(BlockState::kClaimed);
    b.generation |= 1;
    zero(&b + 1, kBlockSize - kBlockHeaderSize);
    b.thread = thread;
    b.sequence = sequence;
    b.ticks = ticks;
    auto* slots = reinterpret_cast<Event*>(&b + 1);
    for (std::uint32_t i = 0; i < events; ++i) slots[i] = make_event(ticks + i, i % 2 != 0, 1);
    Arena::publish(b);
    b.state = static_cast<std::uint32_t>(state);
  }

  void exit_at(std::uint32_t thread, std::uint64_t ticks) {
    g_arena.thread(thread).exited_ticks = ticks;
    g_arena.thread(thread).state = static_cast<std::uint32_t>(ThreadLife::kExited);
  }
  void overwritten(std::uint32_t thread) { g_arena.thread(thread).overwritten_events = kEventsPerBlock; }

  /// Copies all, two blocks at a time; `between` is called before each time. Returns the numbers of each thread.
  template <typename Between>
  std::map<std::uint32_t, std::vector<std::uint64_t>> copy_all(Copying& copying, Between&& between) {
    std::map<std::uint32_t, std::vector<std::uint64_t>> copied;
    std::vector<char> payload(sizeof(BlocksHeader) + 2 * kCopiedBlockMost);
    std::uint64_t size = 0;
    std::uint64_t events = 0;
    int turn = 0;
    for (between(turn++); copying.fill(payload.data(), payload.size(), size, events); between(turn++)) {
      BlocksHeader header;
      std::memcpy(&header, payload.data(), sizeof header);
      const char* at = payload.data() + sizeof header;
      for (std::uint32_t i = 0; i < header.count; ++i) {
        BlockRecord block;
        std::memcpy(&block, at, sizeof block);
        copied[block.thread].push_back(block.sequence);
        at += sizeof block + block.event_count * sizeof(Event);
      }
    }
    return copied;
  }
  std::map<std::uint32_t, std::vector<std::uint64_t>> copy_all(Copying& copying) {
    return copy_all(copying, [](int) {});
  }
  using Numbers = std::vector<std::uint64_t>;

  std::vector<std::uint32_t> threads_;
};

constexpr std::uint64_t kLater = 1'000'000;

TEST_F(SnapshotCopyTest, WholeHistoryMissesNothing) {
  const std::uint32_t t = join();
  for (std::uint32_t i = 0; i < 3; ++i) record(i, t, i, (i + 1) * kStep);
  Copying copying(0, kLater, 0);
  EXPECT_EQ(copy_all(copying)[t], (Numbers{0, 1, 2}));
  EXPECT_EQ(copying.lost_events(), 0U);
  EXPECT_EQ(copying.whole_from(), 0U);
}

TEST_F(SnapshotCopyTest, OverwrittenBeginningIsSaid) {
  const std::uint32_t t = join();
  for (std::uint32_t i = 4; i < 7; ++i) record(i, t, i, i * kStep);
  Copying copying(0, kLater, 0);
  EXPECT_EQ(copy_all(copying)[t], (Numbers{4, 5, 6}));
  EXPECT_EQ(copying.lost_events(), 0U);  // it was gone before
  EXPECT_EQ(copying.whole_from(), 4 * kStep);
}

TEST_F(SnapshotCopyTest, RangeWithinWhatIsKeptIsWhole) {
  const std::uint32_t t = join();
  for (std::uint32_t i = 4; i < 8; ++i) record(i, t, i, i * kStep);
  for (const std::uint64_t since : {4 * kStep, 4 * kStep + 1, 5 * kStep - 1, 5 * kStep, 5 * kStep + 300}) {
    Copying copying(since, kLater, 0);
    copy_all(copying);
    EXPECT_EQ(copying.whole_from(), 0U) << since;
  }
  Copying earlier(4 * kStep - 1, kLater, 0);
  copy_all(earlier);
  EXPECT_EQ(earlier.whole_from(), 4 * kStep);
}

/// A range that begins after a known block, whose next ones are overwritten before their turn: known to be whole when
/// it was listed, and not so any more.
TEST_F(SnapshotCopyTest, OvertakenWhileCopying) {
  const std::uint32_t t = join();
  for (std::uint32_t i = 0; i < 8; ++i) record(i, t, i, (i + 1) * kStep);
  Copying copying(3 * kStep, kLater, 0);
  const auto copied = copy_all(copying, [&](int turn) {
    if (turn != 1) return;
    for (const std::uint32_t i : {4U, 5U}) record(i, t, 8 + i, kLater + i);
  });
  EXPECT_EQ(copied.at(t), (Numbers{2, 3, 6, 7}));
  EXPECT_EQ(copying.lost_events(), 2 * kEventsPerBlock);
  EXPECT_EQ(copying.whole_from(), 7 * kStep);
}

TEST_F(SnapshotCopyTest, OvertakenFromTheFirst) {
  const std::uint32_t t = join();
  for (std::uint32_t i = 0; i < 4; ++i) record(i, t, i, (i + 1) * kStep);
  Copying copying(kStep + 100, kLater, 0);
  const auto copied = copy_all(copying, [&](int turn) {
    if (turn == 0) record(0, t, 4, kLater + 1);
  });
  EXPECT_EQ(copied.at(t), (Numbers{1, 2, 3}));
  EXPECT_EQ(copying.lost_events(), kEventsPerBlock - 100);  // those of the range alone
  EXPECT_EQ(copying.whole_from(), 2 * kStep);
}

TEST_F(SnapshotCopyTest, OvertakenToTheLast) {
  const std::uint32_t t = join();
  const std::uint32_t other = join();
  record(0, t, 0, kStep);
  record(1, other, 0, kStep + 500);
  Copying copying(0, kLater, 0);
  const auto copied = copy_all(copying, [&](int turn) {
    if (turn == 0) record(0, other, 1, kLater + 1);
  });
  EXPECT_FALSE(copied.contains(t));
  EXPECT_EQ(copied.at(other), (Numbers{0}));
  EXPECT_EQ(copying.lost_events(), kEventsPerBlock);
  EXPECT_EQ(copying.whole_from(), kLater);
}

/// The newest block of a thread that did nothing in the range is copied for what the thread is inside of; that it goes
/// is no loss of the range's.
TEST_F(SnapshotCopyTest, WhatIsBeforeTheRangeIsNoLoss) {
  const std::uint32_t t = join();
  const std::uint32_t idle = join();
  record(0, idle, 3, kStep, 10, BlockState::kActive);
  record(1, t, 0, 5 * kStep);
  record(2, t, 1, 6 * kStep, 0, BlockState::kActive);  // just begun
  Copying copying(3 * kStep, kLater, 0);
  const auto copied = copy_all(copying, [&](int turn) {
    if (turn != 0) return;
    record(0, t, 2, kLater + 1);
    record(2, t, 3, kLater + 2);
  });
  EXPECT_FALSE(copied.contains(idle));
  EXPECT_EQ(copying.lost_events(), 0U);
  EXPECT_EQ(copying.whole_from(), 0U);
}

TEST_F(SnapshotCopyTest, IdleThreadsAreWhole) {
  const std::uint32_t t = join();
  record(0, t, 7, kStep, 10, BlockState::kActive);
  Copying copying(3 * kStep, kLater, 0);
  EXPECT_EQ(copy_all(copying)[t], (Numbers{7}));
  EXPECT_EQ(copying.whole_from(), 0U);
}

TEST_F(SnapshotCopyTest, GapInTheMiddleIsSaid) {
  const std::uint32_t t = join();
  record(0, t, 0, kStep);  // spared when the next two went
  record(1, t, 3, 4 * kStep);
  record(2, t, 4, 5 * kStep);
  Copying copying(0, kLater, 0);
  EXPECT_EQ(copy_all(copying)[t], (Numbers{0, 3, 4}));
  EXPECT_EQ(copying.whole_from(), 4 * kStep);
  Copying later(3 * kStep, kLater, 0);  // the gap may reach into this one
  EXPECT_EQ(copy_all(later)[t], (Numbers{3, 4}));
  EXPECT_EQ(later.whole_from(), 4 * kStep);
  Copying latest(4 * kStep + 1, kLater, 0);
  copy_all(latest);
  EXPECT_EQ(latest.whole_from(), 0U);
}

TEST_F(SnapshotCopyTest, ThreadsOfWhichNothingIsLeft) {
  const std::uint32_t t = join();
  record(0, t, 0, kStep);
  const std::uint32_t ended = join();
  overwritten(ended);
  exit_at(ended, 5 * kStep);
  Copying copying(2 * kStep, kLater, 0);
  copy_all(copying);
  EXPECT_EQ(copying.whole_from(), 5 * kStep);
  Copying after(6 * kStep, kLater, 0);
  copy_all(after);
  EXPECT_EQ(after.whole_from(), 0U);
  const std::uint32_t living = join();
  overwritten(living);
  Copying now(6 * kStep, kLater, 0);
  copy_all(now);
  EXPECT_EQ(now.whole_from(), kLater);
  g_arena.thread(living).joined_ticks = kLater + 1;
  Copying before_it(6 * kStep, kLater, 0);
  copy_all(before_it);
  EXPECT_EQ(before_it.whole_from(), 0U);
}

/// What cannot be read right as the log of switches has lost its beginning.
TEST_F(SnapshotCopyTest, BlocksThatCannotBeRead) {
  const std::uint32_t t = join();
  const std::uint32_t idle = join();
  for (std::uint32_t i = 0; i < 4; ++i) record(i, t, i, (i + 1) * kStep);
  record(4, idle, 0, kStep / 2, 10, BlockState::kActive);
  Copying copying(0, kLater, 2 * kStep + 1);
  EXPECT_EQ(copy_all(copying)[t], (Numbers{2, 3}));
  EXPECT_EQ(copying.lost_events(), 0U);
  EXPECT_EQ(copying.whole_from(), 3 * kStep);
}

TEST_F(SnapshotCopyTest, LaterBlocksAreNotOfTheRange) {
  const std::uint32_t t = join();
  record(0, t, 0, kStep);
  record(1, t, 1, kLater + 1);
  Copying copying(0, kLater, 0);
  EXPECT_EQ(copy_all(copying)[t], (Numbers{0}));
  EXPECT_EQ(copying.whole_from(), 0U);
}

}  // namespace
}  // namespace karst::test
