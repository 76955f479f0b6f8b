// The pool of blocks and the tables of the arena, by themselves.
#include "runtime/recording/arena.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "runtime/system/memory.h"

namespace karst::test {
namespace {

using namespace runtime;
using namespace format;

constexpr std::uint32_t kBlocks = 16;

class ArenaTest : public testing::Test {
 protected:
  void SetUp() override {
    Options options;
    options.memory = kBlocks * kBlockSize;
    ASSERT_EQ(arena.create(options), nullptr);
  }

  /// A living thread's entry.
  std::uint32_t join() {
    const std::uint32_t index = arena.claim_thread();
    arena.thread(index).state = static_cast<std::uint32_t>(ThreadLife::kLive);
    arena.header().live_threads += 1;
    return index;
  }

  /// As a thread does that has filled a block with `events`: it takes one, writes, and leaves it as history.
  BlockHeader* record(std::uint32_t thread, std::uint64_t sequence, std::uint32_t events = kEventsPerBlock) {
    BlockHeader* b = take();
    if (b == nullptr) return nullptr;
    give(*b, thread, sequence);
    auto* slots = reinterpret_cast<Event*>(b + 1);
    for (std::uint32_t i = 0; i < events; ++i) slots[i] = make_event(sequence, false, 1);
    b->state = static_cast<std::uint32_t>(BlockState::kFull);
    return b;
  }

  BlockHeader* take() {
    std::uint64_t spare = 0;  // memory is so small here that nothing is claimed ahead
    BlockHeader* b = arena.take_block(0, spare, wait);
    EXPECT_EQ(spare, 0U);
    return b;
  }

  void give(BlockHeader& b, std::uint32_t thread, std::uint64_t sequence) {
    b.thread = thread;
    b.sequence = sequence;
    __atomic_add_fetch(&arena.thread(thread).begun_blocks, 1, __ATOMIC_ACQ_REL);
    Arena::publish(b);
    arena.append(thread, last[thread], b);
    last[thread] = arena.key_of(b);
  }
  std::vector<std::uint64_t> last = std::vector<std::uint64_t>(kBlocks);

  Arena arena;
  WaitForTaking wait;
};

TEST_F(ArenaTest, WaitsForWhatIsToBeTaken) {
  const std::uint32_t thread = join();
  std::vector<BlockHeader*> blocks;
  for (std::uint64_t sequence = 0; sequence < kBlocks; ++sequence) blocks.push_back(record(thread, sequence));
  ArenaControl& control = arena.control();
  control.blocking = 1;
  // The oldest is taken already: no wait.
  __atomic_store_n(&blocks[0]->taken, static_cast<std::uint32_t>(blocks[0]->generation), __ATOMIC_RELEASE);
  EXPECT_EQ(record(thread, kBlocks), blocks[0]);
  EXPECT_EQ(wait.ticks, 0U);
  EXPECT_EQ(control.waits, 0U);
  // The next one is not, until somebody says so.
  std::thread taker([&] {
    while (__atomic_load_n(&control.waits, __ATOMIC_ACQUIRE) == 0) std::this_thread::yield();
    __atomic_store_n(&blocks[1]->taken, static_cast<std::uint32_t>(blocks[1]->generation), __ATOMIC_RELEASE);
    __atomic_add_fetch(&control.taken, 1, __ATOMIC_ACQ_REL);
  });
  EXPECT_EQ(record(thread, kBlocks + 1), blocks[1]);
  taker.join();
  EXPECT_GT(wait.ticks, 0U);
  EXPECT_EQ(control.waited_ticks, wait.ticks);
  EXPECT_EQ(control.blocking, 1U);
  // What was taken of a block's last owner says nothing of this one.
  EXPECT_NE(blocks[1]->taken, static_cast<std::uint32_t>(blocks[1]->generation));
  // Nobody waits where that is over.
  control.blocking = 0;
  EXPECT_EQ(record(thread, kBlocks + 2), blocks[2]);
  EXPECT_EQ(control.waits, 1U);
}

TEST_F(ArenaTest, HeaderDescribesTablesThatDoNotOverlap) {
  const ArenaHeader& h = arena.header();
  EXPECT_EQ(h.magic, kArenaMagic);
  EXPECT_EQ(h.version, kArenaVersion);
  EXPECT_EQ(h.block_capacity, kBlocks);
  // What a forked child gets comes last.
  EXPECT_GE(h.threads_offset, sizeof(ArenaHeader));
  EXPECT_GE(h.blocks_offset, h.threads_offset + sizeof(ArenaThread) * h.thread_capacity);
  EXPECT_GE(h.modules_offset, h.blocks_offset + std::uint64_t{kBlocks} * kBlockSize);
  EXPECT_GE(h.functions_offset, h.modules_offset + sizeof(ArenaModule) * h.module_capacity);
  EXPECT_GE(h.text_offset, h.functions_offset + sizeof(ArenaFunction) * h.function_capacity);
  EXPECT_GE(h.size, h.text_offset + h.text_capacity);
  EXPECT_EQ(h.blocks_offset % kBlockSize, 0U);
  EXPECT_GT(h.function_capacity, kMaxFunctionId);
}

TEST_F(ArenaTest, FileHasTheSizeAndCannotShrinkUnderAReader) {
  struct stat status {};
  ASSERT_EQ(fstat(arena.descriptor(), &status), 0);
  EXPECT_EQ(static_cast<std::uint64_t>(status.st_size), arena.header().size);
  EXPECT_EQ(ftruncate(arena.descriptor(), kBlockSize), -1);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(fcntl(arena.descriptor(), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
  EXPECT_GE(arena.descriptor(), 100) << "low numbers belong to the program";
}

TEST_F(ArenaTest, MemoryThatIsNotUsedIsNotTaken) {
  struct stat status {};
  ASSERT_EQ(fstat(arena.descriptor(), &status), 0);
  // The tables are reserved for 8 million functions and 65,536 threads.
  EXPECT_GT(arena.header().size, 100U << 20);
  EXPECT_LT(status.st_blocks * 512, 1 << 20);
}

TEST_F(ArenaTest, TextIsKeptAndNothingHasOffsetZero) {
  const std::uint32_t first = arena.add_text("alpha", 5);
  const std::uint32_t second = arena.add_text("beta", 4);
  EXPECT_NE(first, 0U);
  EXPECT_EQ(second, first + 5);
  const auto* text = reinterpret_cast<const char*>(&arena.header()) + arena.header().text_offset;
  EXPECT_EQ(std::string(text + first, 9), "alphabeta");
  EXPECT_EQ(arena.add_text("", 0), 0U);
  const std::vector<char> large(kArenaTextSize, 'x');
  EXPECT_EQ(arena.add_text(large.data(), kArenaTextSize), 0U);
  EXPECT_EQ(arena.header().text_used, second + 4);
}

TEST_F(ArenaTest, TablesRefuseMoreThanTheyHold) {
  EXPECT_TRUE(arena.reserve_functions(1000));
  EXPECT_FALSE(arena.reserve_functions(kMaxFunctionId + 1));
  EXPECT_FALSE(arena.reserve_functions(0xffffffffU));
  EXPECT_TRUE(arena.reserve_modules(10));
  EXPECT_FALSE(arena.reserve_modules(kArenaModules + 1));
}

TEST_F(ArenaTest, BlocksChangeHandsUnderAnOddGenerationAndComeEmpty) {
  BlockHeader* b = take();
  ASSERT_NE(b, nullptr);
  EXPECT_EQ(b->generation % 2, 1U);
  EXPECT_EQ(b->state, static_cast<std::uint32_t>(BlockState::kClaimed));
  const std::uint64_t claimed = b->generation;
  Arena::publish(*b);
  EXPECT_EQ(b->generation, claimed + 1);
  EXPECT_EQ(b->state, static_cast<std::uint32_t>(BlockState::kActive));
  const auto* slots = reinterpret_cast<const Event*>(b + 1);
  for (std::uint32_t i = 0; i < kEventsPerBlock; ++i) ASSERT_EQ(slots[i], 0U);
}

TEST_F(ArenaTest, BlockGivenBackIsFreshAgain) {
  BlockHeader* b = take();
  Arena::give_back(*b);
  EXPECT_EQ(b->generation % 2, 0U);
  EXPECT_EQ(b->state, static_cast<std::uint32_t>(BlockState::kFresh));
  std::set<BlockHeader*> taken;
  for (std::uint32_t i = 0; i < kBlocks; ++i) taken.insert(take());
  EXPECT_EQ(taken.size(), kBlocks);
  EXPECT_TRUE(taken.contains(b));
}

TEST(EmptySlot, IsFoundWhereverItIs) {
  alignas(16) Event slots[kEventsPerBlock + 1];
  // Halves that are 0 are no empty slot: an event has a function, and may have no ticks.
  const auto fill = [&] {
    for (std::uint32_t i = 0; i <= kEventsPerBlock; ++i)
      slots[i] = make_event(i % 3 == 0 ? 0 : i * 0x100000001ULL, i % 2 != 0, i % 5 == 0 ? kMaxFunctionId : 1);
  };
  for (std::uint32_t count = 0; count <= kEventsPerBlock; count += count < 40 || count > 490 ? 1 : 7) {
    fill();
    slots[count] = 0;  // behind them
    EXPECT_FALSE(karst_has_empty_slot(slots, count)) << count;
    for (std::uint32_t at = 0; at < count; at += count < 40 ? 1 : 5) {
      fill();
      slots[at] = 0;
      EXPECT_TRUE(karst_has_empty_slot(slots, count)) << at << " of " << count;
    }
  }
}

TEST_F(ArenaTest, FullMemoryRecyclesTheOldestBlockAndCountsItsEvents) {
  const std::uint32_t thread = join();
  const BlockHeader* oldest = record(thread, 0, 77);
  for (std::uint64_t i = 1; i < kBlocks; ++i) ASSERT_NE(record(thread, i), nullptr);
  const std::uint64_t generation = oldest->generation;
  EXPECT_EQ(take(), oldest);
  EXPECT_GT(oldest->generation, generation);
  EXPECT_EQ(arena.thread(thread).overwritten_events, 77U);
  EXPECT_EQ(history_blocks(arena.thread(thread)), kBlocks - 1);
  EXPECT_EQ(*reinterpret_cast<const Event*>(oldest + 1), 0U);
}

TEST_F(ArenaTest, QuietLivingThreadKeepsItsFloorOfHistory) {
  const std::uint32_t quiet = join();
  const std::uint32_t busy = join();
  const BlockHeader* kept = record(quiet, 0, 3);
  for (std::uint64_t i = 0; i < 5 * kBlocks; ++i) ASSERT_NE(record(busy, i), nullptr);
  EXPECT_EQ(kept->thread, quiet);
  EXPECT_EQ(history_blocks(arena.thread(quiet)), 1U);
  EXPECT_EQ(arena.thread(quiet).overwritten_events, 0U);
  EXPECT_EQ(history_blocks(arena.thread(busy)), kBlocks - 1);
}

TEST_F(ArenaTest, HistoryOfExitedThreadsHasNoFloor) {
  const std::uint32_t gone = join();
  const std::uint32_t busy = join();
  record(gone, 0, 3);
  arena.thread(gone).state = static_cast<std::uint32_t>(ThreadLife::kExited);
  arena.header().live_threads -= 1;
  for (std::uint64_t i = 0; i < 2 * kBlocks; ++i) ASSERT_NE(record(busy, i), nullptr);
  EXPECT_EQ(history_blocks(arena.thread(gone)), 0U);
  EXPECT_EQ(arena.thread(gone).overwritten_events, 3U);
}

TEST_F(ArenaTest, ThereIsNoBlockWhenAllAreInUse) {
  for (std::uint32_t i = 0; i < kBlocks; ++i) give(*take(), join(), 0);
  EXPECT_EQ(take(), nullptr);
  arena.block(5)->state = static_cast<std::uint32_t>(BlockState::kFull);
  EXPECT_EQ(take(), nullptr) << "the last block of a living thread went";
  arena.thread(5).state = static_cast<std::uint32_t>(ThreadLife::kExited);
  EXPECT_EQ(take(), arena.block(5));
}

TEST_F(ArenaTest, HandlerThatInterruptsTheStepToTheNextBlockRecyclesItsOwn) {
  const std::uint32_t thread = join();
  BlockHeader* before = take();
  give(*before, thread, 0);
  BlockHeader* step = take();  // published and in use, but not appended yet
  step->thread = thread;
  step->sequence = 1;
  arena.thread(thread).begun_blocks += 1;
  Arena::publish(*step);
  last[thread] = arena.key_of(*step);
  for (std::uint64_t i = 2; i < 5 * kBlocks; ++i) {
    BlockHeader* b = take();
    ASSERT_NE(b, nullptr) << i;
    give(*b, thread, i);
  }
  EXPECT_EQ(before->sequence, 0U) << "in use, as far as anybody can know";
  // The step is done: what it left is history like all else.
  arena.append(thread, arena.key_of(*before), *step);
  for (std::uint64_t i = 5 * kBlocks; i < 10 * kBlocks; ++i) {
    BlockHeader* b = take();
    ASSERT_NE(b, nullptr) << i;
    give(*b, thread, i);
  }
  EXPECT_GT(before->sequence, 5 * kBlocks);
}

TEST_F(ArenaTest, EntriesOfThreadsAreReusedOnlyWhenTheirHistoryIsGone) {
  for (std::uint32_t i = 0; i < kArenaThreads; ++i) {
    ASSERT_EQ(arena.claim_thread(), i);
    arena.thread(i).state = static_cast<std::uint32_t>(ThreadLife::kLive);
  }
  EXPECT_EQ(arena.claim_thread(), Arena::kNoThread);
  arena.thread(7).state = static_cast<std::uint32_t>(ThreadLife::kExited);
  arena.thread(7).begun_blocks = 1;
  EXPECT_EQ(arena.claim_thread(), Arena::kNoThread);
  arena.thread(7).begun_blocks = arena.thread(7).recycled_blocks;
  EXPECT_EQ(arena.claim_thread(), 7U);
}

TEST_F(ArenaTest, NoBlockHasTwoOwners) {
  constexpr std::uint32_t kThreads = 4;
  std::atomic<std::uint32_t> owners[kBlocks] = {};
  std::atomic<std::uint32_t> collisions{0};
  std::atomic<std::uint32_t> taken{0};
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < kThreads; ++t) join();
  for (std::uint32_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint64_t i = 0; i < 2000; ++i) {
        BlockHeader* b = take();
        if (b == nullptr) continue;
        taken.fetch_add(1);
        const auto index = static_cast<std::uint32_t>(
            (reinterpret_cast<std::uintptr_t>(b) - reinterpret_cast<std::uintptr_t>(arena.block(0))) / kBlockSize);
        if (owners[index].fetch_add(1) != 0) collisions.fetch_add(1);
        owners[index].fetch_sub(1);
        give(*b, t, i);
        if (i % 7 == 0) store(b->state, static_cast<std::uint32_t>(BlockState::kFull));  // as at a thread's end
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(collisions.load(), 0U);
  EXPECT_GT(taken.load(), 1000U);
  std::uint32_t blocks = 0;
  for (std::uint32_t t = 0; t < kThreads; ++t) blocks += history_blocks(arena.thread(t));
  EXPECT_EQ(blocks, kBlocks);
}

// A thread that passed over another's block for a whole round of memory made each claim cost dozens of cache misses.
TEST(ArenaAhead, IsByHalfOfWhatIsFilledWithinBounds) {
  Options options;
  options.memory = std::uint64_t{8192} * kBlockSize;
  Arena arena;
  ASSERT_EQ(arena.create(options), nullptr);
  ASSERT_EQ(arena.claim_thread(), 0U);
  arena.thread(0).state = static_cast<std::uint32_t>(ThreadLife::kLive);
  arena.header().live_threads = 1;
  std::uint64_t spare = 0;
  std::uint64_t sequence = 0;
  std::uint64_t last = 0;
  // A few calls: no more than the first step.
  const std::uint32_t first = arena.blocks_reserved();
  arena.reserve_ahead();
  EXPECT_EQ(arena.blocks_reserved(), first);
  for (const auto& [filled, lead] : {std::pair{20U, 128U}, std::pair{400U, 200U}, std::pair{5000U, 256U}}) {
    for (; sequence < filled; ++sequence) {
      WaitForTaking wait;
      BlockHeader* b = arena.take_block(0, spare, wait);
      ASSERT_NE(b, nullptr);
      b->thread = 0;
      b->sequence = sequence;
      __atomic_add_fetch(&arena.thread(0).begun_blocks, 1, __ATOMIC_ACQ_REL);
      Arena::publish(*b);
      arena.append(0, last, *b);
      last = arena.key_of(*b);
    }
    arena.reserve_ahead();
    const std::uint32_t ahead = arena.blocks_reserved() - static_cast<std::uint32_t>(arena.header().hand);
    EXPECT_GE(ahead, lead) << filled;
    EXPECT_LE(ahead, lead + 32) << filled;
    EXPECT_EQ(arena.header().blocks_reserved, arena.blocks_reserved());
  }
  EXPECT_GT(arena.header().reserving_ticks, arena.reserving_ticks() * 5000);
}

TEST(ArenaOfManyThreads, HandMeetsFewBlocksThatItCannotTake) {
  constexpr std::uint32_t kThreads = 4;
  constexpr std::uint64_t kTakes = 20'000;
  Options options;
  options.memory = 1024 * kBlockSize;
  Arena arena;
  ASSERT_EQ(arena.create(options), nullptr);
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < kThreads; ++t) {
    ASSERT_EQ(arena.claim_thread(), t);
    arena.thread(t).state = static_cast<std::uint32_t>(ThreadLife::kLive);
    arena.header().live_threads += 1;
  }
  std::atomic<std::uint32_t> gaps{0};
  for (std::uint32_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::uint64_t last = 0;
      std::uint64_t spare = 0;
      std::uintptr_t cursor = 0;
      WaitForTaking wait;
      for (std::uint64_t i = 0; i < kTakes; ++i) {
        BlockHeader* b = arena.take_block(cursor, spare, wait);
        if (b == nullptr) {
          gaps.fetch_add(1);
          continue;
        }
        b->thread = t;
        b->sequence = i;
        __atomic_add_fetch(&arena.thread(t).begun_blocks, 1, __ATOMIC_ACQ_REL);
        Arena::publish(*b);
        arena.append(t, last, *b);
        last = arena.key_of(*b);
        cursor = reinterpret_cast<std::uintptr_t>(b) + kBlockHeaderSize;
      }
      arena.give_back_spare(spare);
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(gaps.load(), 0U);
  EXPECT_LT(arena.header().hand, 2 * kThreads * kTakes);
  // What is kept of each thread has no gap, and no block was lost on the way.
  std::vector<std::set<std::uint64_t>> kept(kThreads);
  std::uint32_t fresh = 0;
  for (std::uint32_t i = 0; i < 1024; ++i) {
    const BlockHeader& b = *arena.block(i);
    if (b.state == static_cast<std::uint32_t>(BlockState::kFresh)) {
      ++fresh;
    } else {
      kept[b.thread].insert(b.sequence);
    }
  }
  std::uint32_t blocks = 0;
  for (std::uint32_t t = 0; t < kThreads; ++t) {
    blocks += history_blocks(arena.thread(t));
    EXPECT_EQ(kept[t].size(), history_blocks(arena.thread(t)));
    EXPECT_EQ(*kept[t].rbegin(), kTakes - 1);
    EXPECT_EQ(*kept[t].rbegin() - *kept[t].begin() + 1, kept[t].size());
  }
  EXPECT_EQ(blocks + fresh, 1024U);
}

TEST(ClaimsAhead, AreFewAndNeverMoreThanASixtyFourthOfMemory) {
  EXPECT_EQ(claims_ahead(16384, 1), 15U);
  EXPECT_EQ(claims_ahead(16384, 0), 15U);
  EXPECT_EQ(claims_ahead(16384, 100), 2U);
  EXPECT_EQ(claims_ahead(16384, 1000), 0U);
  EXPECT_EQ(claims_ahead(63, 1), 0U);
}

TEST(HistoryFloor, IsSixteenBlocksOrAFairShareOfHalfTheMemory) {
  EXPECT_EQ(history_floor(16384, 1), 16U);
  EXPECT_EQ(history_floor(16384, 0), 16U);
  EXPECT_EQ(history_floor(16384, 512), 16U);
  EXPECT_EQ(history_floor(16384, 1024), 8U);
  EXPECT_EQ(history_floor(16384, 100000), 1U);
  EXPECT_EQ(history_floor(16, 1), 8U);
}

}  // namespace
}  // namespace karst::test
