// The hooks that take the clock thread's time preserve every register (register_contract_test.cc).
#include <string>
#include <thread>

#include "arch/cpu.h"
#include "runtime/clock/clock.h"
#include "test/runtime/register_contract.h"

namespace karst::test {
namespace {

TEST_F(RegisterContract, HookByTheClockThread) {
  have_slots();
  set_hooks(karst_hook_trace_clock, karst_hook_trace_clock);
  karst_clock.ticks = arch::time_stamp();
  EXPECT_EQ(cross([] {}), "");
  EXPECT_EQ(event_ticks(last_event(), block().ticks), karst_clock.ticks);
}

TEST_F(RegisterContract, AClockThatSleepsIsWokenByAHookWithoutANewBlock) {
  have_slots();
  set_hooks(karst_hook_trace_clock, karst_hook_trace_clock);
  karst_clock_on = 1;
  EXPECT_EQ(cross([] {
              have_slots();
              karst_clock.ticks = kClockSleeps;
            }),
            "");
  karst_clock_on = 0;
  EXPECT_NE(karst_clock.ticks, kClockSleeps);
  EXPECT_EQ(event_ticks(last_event(), block().ticks), karst_clock.ticks);
}

TEST_F(RegisterContract, FirstEventOfAThreadWhileTheClockSleeps) {
  set_hooks(karst_hook_trace_clock, karst_hook_trace_clock);
  karst_clock_on = 1;
  karst_clock.ticks = kClockSleeps;
  std::string result = "not run";
  std::thread([&] { result = cross_once(false); }).join();
  karst_clock_on = 0;
  EXPECT_EQ(result, "");
  EXPECT_NE(karst_clock.ticks, kClockSleeps);
}

}  // namespace
}  // namespace karst::test
