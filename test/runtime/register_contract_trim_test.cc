// The hooks of --min-duration preserve every register (register_contract_test.cc).
#include "arch/cpu.h"
#include "runtime/clock/clock.h"
#include "test/runtime/register_contract.h"

namespace karst::test {
namespace {

/// Sets what the hooks go by, for one test. With true: exits are those of conditional tail calls.
class Trimming : public RegisterContract, public testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    RegisterContract::SetUp();
    if (IsSkipped()) return;
    set_hooks(karst_hook_trace, karst_hook_trim);
    karst_min_duration = std::uint64_t{1} << 38;
    auto& functions = *g_arena.functions();
    (&functions)[kId].address = 0x1000;
    (&functions)[kOther].address = 0x2000;
    (&functions)[kTail].address = 0x1000;
    have_slots();
    cross_once(true);  // an exit before it all: nothing is open
    conditional_ = GetParam();
  }
  void TearDown() override { karst_min_duration = 0; }

  static constexpr std::uint32_t kOther = kId + 5;

  /// As if this had been recorded.
  static void put(Event e) {
    *reinterpret_cast<Event*>(karst_state->cursor) = e;
    karst_state->cursor += sizeof(Event);
  }
  static Event at_cursor() { return *reinterpret_cast<const Event*>(karst_state->cursor); }
  static std::uint64_t ticks() { return arch::time_stamp(); }
};

TEST_P(Trimming, AShortCallIsTakenBack) {
  for (const Hook hook : {karst_hook_trim, karst_hook_trim_clock}) {
    karst_clock.ticks = ticks();
    set_hooks(hook == karst_hook_trim ? karst_hook_trace : karst_hook_trace_clock, hook);
    for (const std::uint64_t shift : {0, 8}) {
      have_slots();
      const std::uintptr_t cursor = karst_state->cursor;
      EXPECT_EQ(cross_once(false, shift), "");
      EXPECT_EQ(karst_state->cursor, cursor + sizeof(Event));
      EXPECT_EQ(cross_once(true, shift), "");
      EXPECT_EQ(karst_state->cursor, cursor);
      EXPECT_EQ(at_cursor(), 0U);
    }
  }
}

TEST_P(Trimming, ALongCallIsKept) {
  for (const Hook hook : {karst_hook_trim, karst_hook_trim_clock}) {
    set_hooks(karst_hook_trace, hook);
    for (const std::uint64_t shift : {0, 8}) {
      have_slots();
      EXPECT_EQ(cross_once(false), "");
      karst_clock.ticks = ticks();
      karst_min_duration = 1;
      const std::uintptr_t cursor = karst_state->cursor;
      EXPECT_EQ(cross_once(true, shift), "");
      EXPECT_EQ(karst_state->cursor, cursor + sizeof(Event));
      EXPECT_TRUE(event_is_exit(last_event()));
    }
  }
}

TEST_P(Trimming, WhatIsInBetweenKeepsACall) {
  const Event between[] = {make_event(ticks(), true, kOther), make_place(0x7ff000, Mark::kSetPlace),
                           make_mark(ticks(), Mark::kUnwound), make_event(ticks(), false, kOther), Event{0}};
  for (const Event e : between) {
    have_slots();
    EXPECT_EQ(cross_once(false), "");
    put(e);
    const std::uintptr_t cursor = karst_state->cursor;
    EXPECT_EQ(cross_once(true), "") << e;
    EXPECT_EQ(karst_state->cursor, cursor + sizeof(Event)) << e;
  }
}

TEST_P(Trimming, ATailCallsExitIsItsFunctions) {
  for (const Hook hook : {karst_hook_trim, karst_hook_trim_clock}) {
    karst_clock.ticks = ticks();
    set_hooks(karst_hook_trace, hook);
    have_slots();
    const std::uintptr_t cursor = karst_state->cursor;
    put(make_event(karst_clock.ticks - 1000, false, kTail));  // two ids of one address
    EXPECT_EQ(cross_once(true), "");
    EXPECT_EQ(karst_state->cursor, cursor);
    put(make_event(karst_clock.ticks - (std::uint64_t{1} << 38) - 1'000'000, false, kTail));
    EXPECT_EQ(cross_once(true), "");
    EXPECT_EQ(karst_state->cursor, cursor + 2 * sizeof(Event));
  }
}

TEST_P(Trimming, AnEnterInTheBlockBeforeStays) {
  have_slots();
  fill_block();
  const std::uint64_t sequence = block().sequence;
  EXPECT_EQ(cross_once(true), "");
  EXPECT_EQ(block().sequence, sequence + 1);
  EXPECT_EQ(karst_state->cursor % kBlockSize, kBlockHeaderSize + sizeof(Event));
  EXPECT_TRUE(event_is_exit(last_event()));
  // In the first slot of a block there is the header before it.
  karst_state->cursor -= sizeof(Event);
  *reinterpret_cast<Event*>(karst_state->cursor) = 0;
  EXPECT_EQ(cross_once(true), "");
  EXPECT_EQ(karst_state->cursor % kBlockSize, kBlockHeaderSize + sizeof(Event));
}

TEST_P(Trimming, ByThreadId) {
  set_hooks(karst_hook_trace_by_tid, karst_hook_trace_by_tid);
  have_slots();
  const std::uintptr_t cursor = karst_state->cursor;
  EXPECT_EQ(cross_once(false), "");
  EXPECT_EQ(cross_once(true), "");
  EXPECT_EQ(karst_state->cursor, cursor);
  EXPECT_EQ(at_cursor(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Exits, Trimming, testing::Bool());

}  // namespace
}  // namespace karst::test
