// Assertions of the guest: where they are on, each broken state below ends the process with a line that says where;
// else they are not even evaluated.
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>

#include "runtime/modules/instrument.h"
#include "runtime/recording/arena.h"
#include "runtime/recording/marks.h"
#include "runtime/system/assertion.h"
#include "runtime/system/lock.h"
#include "runtime/system/patch_lock.h"

namespace karst::test {
namespace {

using namespace runtime;
using namespace format;

#ifdef KARST_ASSERTIONS

#define EXPECT_FAILED(statement, line) \
  EXPECT_EXIT(statement, testing::KilledBySignal(SIGILL), "^karst: assertion failed: [./]*" line "[^\n]*\n$")

/// An arena of the dying child's own: blocks are not mapped in a forked one.
struct Own {
  static constexpr std::uint32_t kBlocks = 16;

  Own() {
    Options options;
    options.memory = kBlocks * kBlockSize;
    if (arena.create(options) != nullptr) std::abort();
  }
  BlockHeader& take(std::uintptr_t cursor = 0) { return *arena.take_block(cursor, spare); }
  /// Takes a block for the thread and leaves it as history.
  void record(std::uint32_t thread, std::uint64_t sequence) {
    BlockHeader& b = take();
    b.thread = thread;
    b.sequence = sequence;
    __atomic_add_fetch(&arena.thread(thread).begun_blocks, 1, __ATOMIC_ACQ_REL);
    Arena::publish(b);
    arena.append(thread, last, b);
    last = arena.key_of(b);
  }
  std::uintptr_t slot(std::uint32_t block, int number) {
    return reinterpret_cast<std::uintptr_t>(arena.block(block)) + kBlockHeaderSize +
           static_cast<std::uintptr_t>(number) * sizeof(Event);
  }

  Arena arena;
  std::uint64_t spare = 0;
  std::uint64_t last = 0;
};

void publish_unclaimed() {
  Own own;
  Arena::publish(*own.arena.block(0));
}
void publish_twice() {
  Own own;
  BlockHeader& taken = own.take();
  Arena::publish(taken);
  Arena::publish(taken);
}
void publish_for_nobody() {
  Own own;
  BlockHeader& taken = own.take();
  taken.thread = kArenaThreads;
  Arena::publish(taken);
}
void give_back_history() {
  Own own;
  own.arena.block(3)->state = static_cast<std::uint32_t>(BlockState::kFull);
  Arena::give_back(*own.arena.block(3));
}
void take_what_changes_hands() {
  Own own;
  own.arena.block(0)->generation = 1;
  own.take();
}
void leave_a_block_between_slots() {
  Own own;
  own.take(own.slot(2, 8) + 1);
}
void leave_a_block_in_its_header() {
  Own own;
  own.take(own.slot(2, -4));
}
void recycle_what_nobody_has() {
  Own own;
  const std::uint32_t thread = own.arena.claim_thread();
  for (std::uint64_t n = 0; n < Own::kBlocks; ++n) own.record(thread, n);
  own.arena.thread(thread).begun_blocks = own.arena.thread(thread).recycled_blocks;
  own.take();
}
void put_into_a_used_slot() {
  Own own;
  ThreadState state{};
  state.cursor = own.slot(0, 0);
  state.epoch = static_cast<std::uint32_t>(event_time() >> 32) & ~0xffU;
  *reinterpret_cast<Event*>(state.cursor) = make_event(1, false, 1);
  const Event mark = make_mark(0, Mark::kSwitched);
  put_group<1>(state, &mark);
}

TEST(Assertions, ABlockIsPublishedByWhoClaimedIt) {
  EXPECT_FAILED(publish_unclaimed(), "runtime/.*arena_blocks.cc:[0-9]+: is_in\\(b, BlockState::kClaimed\\)");
  EXPECT_FAILED(publish_twice(), "runtime/.*arena_blocks.cc:[0-9]+: is_in\\(b, BlockState::kClaimed\\)");
  EXPECT_FAILED(publish_for_nobody(), "runtime/.*arena_blocks.cc:[0-9]+: .*b.thread < kArenaThreads");
}

TEST(Assertions, HistoryIsNotGivenBack) {
  EXPECT_FAILED(give_back_history(), "runtime/.*arena_blocks.cc:[0-9]+: is_in");
}

TEST(Assertions, AFreshBlockHasAnEvenGeneration) {
  EXPECT_FAILED(take_what_changes_hands(), "runtime/.*arena_blocks.cc:[0-9]+: .*changes_hands");
}

TEST(Assertions, TheCursorIsThatOfASlotInItsBlock) {
  EXPECT_FAILED(leave_a_block_between_slots(), "runtime/.*arena_blocks.cc:[0-9]+: used % sizeof\\(Event\\)");
  EXPECT_FAILED(leave_a_block_in_its_header(), "runtime/.*arena_blocks.cc:[0-9]+: .*used <=");
}

TEST(Assertions, WhoseHistoryIsRecycledHasSome) {
  EXPECT_FAILED(recycle_what_nobody_has(), "runtime/.*arena_blocks.cc:[0-9]+: history_blocks");
}

TEST(Assertions, ATakenSlotIsEmpty) { EXPECT_FAILED(put_into_a_used_slot(), "runtime/.*marks.h:[0-9]+: .*are_slots"); }

TEST(AssertionsOfLocks, ALockIsNotTakenTwice) {
  WipedLock lock;
  ASSERT_TRUE(lock.create());
  { const Locked once(lock); }
  EXPECT_FAILED(
      {
        const Locked once(lock);
        const Locked twice(lock);
      },
      "runtime/.*lock.cc:[0-9]+: .*is_own");
}

TEST(AssertionsOfLocks, ALockThatWasNotMadeIsNotTaken) {
  WipedLock lock;
  EXPECT_FAILED(Locked{lock}, "runtime/.*lock.cc:[0-9]+: lock_.exists");
}

TEST(AssertionsOfLocks, PatchingDoesNotWaitForItself) {
  ASSERT_TRUE(prepare_patch_lock());
  EXPECT_FAILED(
      {
        const Patching once;
        const Patching twice;
      },
      "runtime/.*patch_lock.cc:[0-9]+: ");
}

TEST(AssertionsOfLocks, CodeIsChangedUnderTheLockOfPatching) {
  ASSERT_TRUE(prepare_patch_lock());
  EXPECT_FAILED(switch_instrument_call(1, 1), "runtime/.*instrument.cc:[0-9]+: holds_patching");
}

#else

TEST(Assertions, AreNotEvaluatedWhereTheyAreOff) {
  int evaluated = 0;
  KARST_ASSERT(++evaluated == 0);
  EXPECT_EQ(evaluated, 0);
}

#endif

}  // namespace
}  // namespace karst::test
