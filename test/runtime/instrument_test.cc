// __cyg_profile_func_enter and _exit: the table from addresses to ids, and what the two functions leave alone.
#include "runtime/modules/instrument.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "format/trace.h"
#include "runtime/entering/sleds.h"
#include "runtime/modules/hooks.h"
#include "runtime/process/fork.h"
#include "runtime/recording/arena.h"
#include "runtime/recording/thread.h"

extern "C" {
void __cyg_profile_func_enter(void* function, void* site);
void __cyg_profile_func_exit(void* function, void* site);
/// crossing.S: calls with a value in every register that a called function must preserve; 1 if they all come back.
int karst_test_call(void (*hook)(void*, void*), void* function);
}

namespace karst::test {
namespace {

using namespace runtime;

bool preserves(void (*hook)(void*, void*), void* function) { return karst_test_call(hook, function) == 1; }

TEST(InstrumentCalls, NothingHappensWithoutATable) {
  ASSERT_EQ(karst_calls, nullptr);
  EXPECT_TRUE(preserves(__cyg_profile_func_enter, reinterpret_cast<void*>(&preserves)));
  EXPECT_TRUE(preserves(__cyg_profile_func_exit, reinterpret_cast<void*>(&preserves)));
}

TEST(InstrumentCalls, NeighboursAreNeighboursAndModulesDoNotCollide) {
  std::set<std::uint32_t> places;
  for (std::uint64_t function = 0x7f0000001000; function < 0x7f0000011000; function += 16)
    places.insert(first_place(function));
  EXPECT_EQ(places.size(), 4096U);
  EXPECT_EQ(first_place(0x7f0000001010), first_place(0x7f0000001000) + 1);
  EXPECT_NE(first_place(0x7f0000001000), first_place(0x7f0001001000));
}

/// With an arena, and the table; addresses here lie in no module, as those of generated code do.
class WithTable : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    Options options;
    options.memory = 64 * format::kBlockSize;
    if (!g_arena.exists()) {
      ASSERT_EQ(g_arena.create(options), nullptr);
    }
    ASSERT_TRUE(prepare_threads(false) && follow_forks(options) && prepare_modules());
    ASSERT_TRUE(prepare_instrument_calls());
  }
  static void TearDownTestSuite() { karst_calls = nullptr; }

  static InstrumentedCall& entry(std::uint64_t function) {
    EXPECT_NE(karst_find_call(function), 0U);  // enters it
    for (std::uint32_t i = 0; i < 1U << KARST_CALLS_BITS; ++i)
      if (karst_calls[i].function == function) return karst_calls[i];
    ADD_FAILURE() << "not entered";
    return karst_calls[0];
  }
};

TEST_F(WithTable, AFunctionOfAModuleThatIsNotTracedIsRecordedWhereOthersHaveInlinedIt) {
  const auto function = reinterpret_cast<std::uintptr_t>(&preserves);
  __cyg_profile_func_enter(reinterpret_cast<void*>(function), nullptr);
  const std::uint32_t id = find_instrument_call(function);
  ASSERT_NE(id, 0U);
  const std::uintptr_t before = karst_state->cursor;
  __cyg_profile_func_enter(reinterpret_cast<void*>(function), nullptr);
  ASSERT_EQ(karst_state->cursor, before + sizeof(format::Event));
  EXPECT_EQ(format::event_function(*reinterpret_cast<const format::Event*>(before)), id);
  // Its own code has nothing of ours.
  const FunctionHere own = function_of_region(function);
  EXPECT_EQ(own.id, 0U);
}

TEST_F(WithTable, CodeInNoModuleIsOfTheOneThatStandsForIt) {
  __cyg_profile_func_enter(reinterpret_cast<void*>(0x1230), nullptr);
  const std::uint32_t id = format::event_function(reinterpret_cast<const format::Event*>(karst_state->cursor)[-1]);
  ASSERT_NE(id, 0U);
  EXPECT_EQ(find_instrument_call(0x1230), id);
  const std::uint32_t other = karst_find_call(0x1240);
  EXPECT_NE(other, id);
  const format::ArenaFunction* functions = g_arena.functions();
  EXPECT_EQ(functions[id].address, 0x1230U);
  EXPECT_EQ(functions[id].module, functions[other].module);
  const format::ArenaModule& module = g_arena.modules()[functions[id].module];
  EXPECT_EQ(std::string(g_arena.text(module.path_offset, module.path_size), module.path_size), format::kGeneratedCode);
  EXPECT_EQ(module.bias, 0U);
  // What comes to lie there is asked for anew; the code that was there keeps its id.
  forget_instrument_calls(0x1230, 0x1231);
  EXPECT_EQ(find_instrument_call(0x1230), 0U);
  EXPECT_EQ(karst_find_call(0x1230), id);
  EXPECT_EQ(function_of_region(0x1230).id, id);
}

TEST_F(WithTable, EventsHaveTheIdAndAllRegistersComeBack) {
  const std::uint64_t function = 0x45670;
  entry(function).id = 815;
  EXPECT_EQ(find_instrument_call(function), 815U);
  for (int i = 0; i < 1000; ++i) {  // over the end of a block
    ASSERT_TRUE(preserves(__cyg_profile_func_enter, reinterpret_cast<void*>(function)));
    EXPECT_EQ(reinterpret_cast<const format::Event*>(karst_state->cursor)[-1] & 0xffffff, 815U);
    ASSERT_TRUE(preserves(__cyg_profile_func_exit, reinterpret_cast<void*>(function)));
    EXPECT_EQ(reinterpret_cast<const format::Event*>(karst_state->cursor)[-1] & 0xffffff, 815U | KARST_EVENT_EXIT_BIT);
  }
}

TEST_F(WithTable, FunctionsWithTheSameFirstPlaceAreToldApart) {
  const std::uint64_t a = 0x90000;
  const std::uint64_t b = a + 1;
  ASSERT_EQ(first_place(a), first_place(b));
  entry(a).id = 1;
  entry(b).id = 2;
  EXPECT_EQ(find_instrument_call(a), 1U);
  EXPECT_EQ(find_instrument_call(b), 2U);
  __cyg_profile_func_enter(reinterpret_cast<void*>(b), nullptr);
  EXPECT_EQ(format::event_function(reinterpret_cast<const format::Event*>(karst_state->cursor)[-1]), 2U);
}

TEST_F(WithTable, ThreadsThatCallTheSameNewFunctionsFindEachOnce) {
  std::vector<std::thread> threads;
  std::vector<std::uint32_t> ids[4];
  for (auto& found : ids)
    threads.emplace_back([&found] {
      for (std::uint64_t f = 0xa00000; f < 0xa00000 + 2000 * 16; f += 16) found.push_back(karst_find_call(f));
    });
  for (std::thread& t : threads) t.join();
  for (const auto& found : ids) EXPECT_EQ(found, ids[0]);
  EXPECT_EQ(std::set<std::uint32_t>(ids[0].begin(), ids[0].end()).size(), 2000U);
  std::set<std::uint64_t> seen;
  for (std::uint32_t i = 0; i < 1U << KARST_CALLS_BITS; ++i) {
    const std::uint64_t f = karst_calls[i].function;
    if (f >= 0xa00000 && f < 0xa00000 + 2000 * 16) {
      EXPECT_TRUE(seen.insert(f).second) << f;
    }
  }
  EXPECT_EQ(seen.size(), 2000U);
}

TEST_F(WithTable, HooksThatChangeServeTheseCallsToo) {
  const std::uint64_t function = 0xb0000;
  entry(function).id = 7;
  __cyg_profile_func_enter(reinterpret_cast<void*>(function), nullptr);
  const std::uintptr_t before = karst_state->cursor;
  set_hooks(karst_hook_discard, karst_hook_discard);
  EXPECT_TRUE(preserves(__cyg_profile_func_enter, reinterpret_cast<void*>(function)));
  EXPECT_EQ(karst_state->cursor, before);
  set_hooks(karst_hook_trace, karst_hook_trace);
}

}  // namespace
}  // namespace karst::test
