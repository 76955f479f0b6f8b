// The hooks that find stacks preserve every register (register_contract_test.cc), and tell of each switch once.
#include <ucontext.h>

#include <vector>

#include "runtime/entering/sleds.h"
#include "runtime/fibers/stacks.h"
#include "test/runtime/register_contract.h"

namespace karst::test {
namespace {

class FindsStacks : public RegisterContract {
 protected:
  void SetUp() override {
    RegisterContract::SetUp();
    if (IsSkipped()) return;
    ASSERT_TRUE(prepare_modules() && (stacks_are_found() || prepare_stacks()));
    set_hooks_behind_stacks(karst_hook_trace, karst_hook_trace, karst_hook_watch_enter, karst_hook_watch_exit);
    have_slots();
  }
  void TearDown() override { set_hooks(karst_hook_trace, karst_hook_trace); }

  /// What the thread's words from `cursor` on say of fibers: whether each is entered that is none's own stack.
  static std::vector<bool> entered_since(std::uintptr_t cursor) {
    std::vector<bool> entered;
    const auto* const end = reinterpret_cast<const Event*>(karst_state->cursor);
    for (const auto* e = reinterpret_cast<const Event*>(cursor); e < end; ++e)
      if (event_is(*e, Mark::kNoteHead) && note_head(*e).kind == NoteKind::kFiber)
        entered.push_back(fiber_note([&](std::uint32_t i) {
                            return i < note_head(*e).words ? note_payload(e[1 + i]) : 0;
                          }).entered != 0);
    return entered;
  }

  static void on_another_stack() {
    static std::vector<char> memory(std::size_t{1} << 16);
    static ucontext_t here;
    static ucontext_t there;
    getcontext(&there);
    there.uc_stack.ss_sp = memory.data();
    there.uc_stack.ss_size = memory.size();
    there.uc_link = &here;
    makecontext(
        &there, [] { differences_there() = cross([] { have_slots(); }); }, 0);
    swapcontext(&here, &there);
  }
  static std::string& differences_there() {
    static std::string differences;
    return differences;
  }
};

TEST_F(FindsStacks, OnTheStackThatIsKnown) {
  cross_once(false);
  const Stack* const own = stack_of_thread();
  EXPECT_EQ(own->fiber, 0U);
  EXPECT_EQ(cross([] { have_slots(); }), "");
  EXPECT_EQ(stack_of_thread(), own);
}

TEST_F(FindsStacks, WhereTheStackIsToBeFound) {
  EXPECT_EQ(cross([] {
              have_slots();
              begin_stacks();
            }),
            "");
  EXPECT_EQ(stack_of_thread()->fiber, 0U);
}

TEST_F(FindsStacks, EachSwitchIsOneNote) {
  cross_once(false);
  if (karst_state->cursor % kBlockSize > kBlockSize / 2) fill_block(), cross_once(false);
  const std::uintptr_t before = karst_state->cursor;
  for (int i = 0; i < 2; ++i) {
    on_another_stack();
    EXPECT_EQ(differences_there(), "");
    EXPECT_NE(stack_of_thread()->fiber, 0U);
    EXPECT_EQ(cross([] { have_slots(); }), "");
    EXPECT_EQ(stack_of_thread()->fiber, 0U);
  }
  EXPECT_EQ(entered_since(before), (std::vector<bool>{true, false, true, false}));
}

}  // namespace
}  // namespace karst::test
