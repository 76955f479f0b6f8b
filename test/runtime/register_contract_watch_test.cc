// The hooks of watched functions preserve every register (register_contract_test.cc).
#include "arch/cpu.h"
#include "runtime/clock/clock.h"
#include "runtime/watching/watch.h"
#include "test/runtime/register_contract.h"

namespace karst::test {
namespace {

/// The test's function is watched; nothing is wanted of it. With true: its entry is a late one, its exits are those
/// of conditional tail calls.
class Watching : public RegisterContract, public testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    RegisterContract::SetUp();
    if (IsSkipped()) return;
    Trampolines trampolines = runtime_of_process();
    // Of no module: those that other tests make have functions that are called by address.
    for (const std::uint32_t id : {kId, kTail}) {
      g_arena.functions()[id].module = kArenaModules;
      g_arena.functions()[id].address = 0x1000;
    }
    set_late(GetParam(), true);
    ASSERT_TRUE(trampolines.begin_change());
    trampolines.aim(kTail - kId, {true, false, false, false, false});
    trampolines.end_change();
    for (WatchedFunction& function : functions_) function = {kNever, 0, 0, 0, 0};
    karst_watched = functions_;
    set_hooks(karst_hook_discard, karst_hook_discard, karst_hook_watch_enter, karst_hook_watch_exit);
    have_slots();
    while (open() != 0) karst_state->watch -= 1;  // of a call at another depth of the stack
    conditional_ = GetParam();
  }
  void TearDown() override {
    karst_watched = nullptr;
    set_late(false);
    set_hooks(karst_hook_trace, karst_hook_trace);
  }

  /// Calls on the thread's stack; its first entry is nobody's.
  static std::size_t open() {
    return karst_state->watch == nullptr
               ? 0
               : (reinterpret_cast<std::uintptr_t>(karst_state->watch) - 1) % KARST_WATCH_STACK / KARST_WATCH_ENTRY;
  }
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};
  static inline WatchedFunction functions_[kId + 16];
};

TEST_P(Watching, ShortCallsComeAndGo) {
  for (const bool by_clock_thread : {false, true}) {
    if (by_clock_thread)
      set_hooks(karst_hook_discard, karst_hook_discard, karst_hook_watch_enter_clock, karst_hook_watch_exit_clock);
    for (const std::uint64_t shift : {0, 8}) {
      have_slots();
      karst_clock.ticks = arch::time_stamp();
      const std::uintptr_t cursor = karst_state->cursor;
      EXPECT_EQ(cross_once(false, shift), "");
      EXPECT_EQ(open(), 1U);
      EXPECT_EQ(cross_once(false, shift + 16), "");
      EXPECT_EQ(open(), 2U);
      EXPECT_EQ(cross_once(true, shift + 16), "");
      EXPECT_EQ(open(), 1U);
      EXPECT_EQ(cross_once(true, shift), "");
      EXPECT_EQ(open(), 0U);
      EXPECT_EQ(karst_state->cursor, cursor + 4 * sizeof(Event));
      EXPECT_EQ(event_function(last_event()), GetParam() ? kTail : kId);
    }
  }
}

TEST_P(Watching, LongOnesAndOthersGoTheSlowWay) {
  functions_[kId].limit = 0;
  for (const std::uint64_t shift : {0, 8}) {
    have_slots();
    EXPECT_EQ(cross_once(false, shift), "");
    EXPECT_EQ(open(), 1U);
    EXPECT_EQ(cross_once(true, shift), "");
    EXPECT_EQ(open(), 0U);
    // An exit whose enter was not seen leaves the others as they are; one that is not on top is found.
    EXPECT_EQ(cross_once(true, shift), "");
    EXPECT_EQ(cross_once(false, shift + 32), "");
    EXPECT_EQ(cross_once(false, shift), "");
    EXPECT_EQ(cross_once(true, shift + 16), "");
    EXPECT_EQ(open(), 2U);
    EXPECT_EQ(cross_once(true, shift + 32), "");
    EXPECT_EQ(cross_once(true, shift), "");
    EXPECT_EQ(open(), 1U);  // an empty place, for the next exit to take away
    while (open() != 0) karst_state->watch -= 1;
  }
}

TEST_P(Watching, ANewBlockIsTakenOnTheWay) {
  fill_block();
  EXPECT_EQ(cross_once(false), "");
  fill_block();
  EXPECT_EQ(cross_once(true), "");
  EXPECT_EQ(open(), 0U);
}

TEST_P(Watching, MoreCallsThanThereIsRoomForAreNotWatched) {
  constexpr std::size_t kRoom = KARST_WATCH_STACK / KARST_WATCH_ENTRY - 1;
  have_slots();
  const std::uint64_t too_deep = g_arena.watching()->too_deep;
  // As a recursion whose stack grows down: the deepest ones find no place.
  EXPECT_EQ(cross_once(false, 4096), "");
  const WatchEntry first = karst_state->watch[-1];
  for (std::size_t i = 1; i < kRoom; ++i) {
    *karst_state->watch = {first.enter, first.pointer + 16 * i, first.epoch, 0, kNever};
    ++karst_state->watch;
  }
  ASSERT_EQ(open(), kRoom);
  EXPECT_EQ(cross_once(false, 8192), "");  // below all of them: nothing is gone
  EXPECT_EQ(open(), kRoom);
  EXPECT_EQ(g_arena.watching()->too_deep, too_deep + 1);
  EXPECT_EQ(cross_once(true, 8192), "");
  EXPECT_EQ(open(), kRoom);
  EXPECT_EQ(cross_once(false, 0), "");  // above some: those are gone
  EXPECT_LT(open(), kRoom);
  calls_left(0, ~std::uintptr_t{0});
  EXPECT_EQ(open(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Exits, Watching, testing::Bool());

}  // namespace
}  // namespace karst::test
