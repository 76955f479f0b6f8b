// The hook that notes values preserves every register (register_contract_test.cc).
#include "runtime/values/values.h"
#include "test/runtime/register_contract.h"

namespace karst::test {
namespace {

/// What the registers of the crossing have becomes a note; its addresses are bad ones as a rule.
TEST_F(RegisterContract, HookThatNotesValues) {
  Trampolines trampolines = runtime_of_process();
  prepare_values(false);
  ArenaValues& values = *g_arena.values();
  ArenaValueSpec& spec = values.specs[0];
  spec = {};
  spec.most_text = kMostValueBytes;
  const std::uint8_t place = offsetof(SavedRegisters, rdi) / sizeof(std::uint64_t);
  const ValueOp ops[] = {{static_cast<std::uint8_t>(ValueHow::kRegister), place, 8, 0},
                         {static_cast<std::uint8_t>(ValueHow::kRegister), kFirstVectorPlace + 7, 8, 0},
                         {static_cast<std::uint8_t>(ValueHow::kText), place, 0, 0},
                         {static_cast<std::uint8_t>(ValueHow::kSizedText), place, 0, -8},
                         {static_cast<std::uint8_t>(ValueHow::kMemory), place, 60000, 8},
                         {static_cast<std::uint8_t>(ValueHow::kViewText), place, 250, 8},
                         {77, 250, 60000, -1}};
  for (const ValueOp& op : ops) spec.ops[spec.arguments++] = op;
  for (const ValueOp& op : ops) spec.ops[spec.arguments + spec.returned++] = op;
  g_arena.set_function_count(kId + 4);
  ArenaFunction& function = g_arena.functions()[kId];
  function.flags |= 1U << kValueSpecShift;
  values.count = 1;
  take_over_values();
  ASSERT_TRUE(trampolines.begin_change());
  trampolines.aim(0, {false, true, true, false, false});
  trampolines.end_change();
  for (const std::uint64_t shift : {0, 8}) {
    for (const bool exit : {false, true}) {
      have_slots();
      if (karst_state->cursor % kBlockSize > kBlockSize / 2) fill_block();
      const std::uintptr_t before = karst_state->cursor;
      EXPECT_EQ(cross_once(exit, shift), "");
      EXPECT_EQ(event_function(last_event()), kId);
      EXPECT_EQ(event_is_exit(last_event()), exit);
      if (before % kBlockSize == 0) continue;  // the note is in the next block
      ASSERT_GT(karst_state->cursor, before + 3 * sizeof(Event));
      const auto* events = reinterpret_cast<const Event*>(before);
      ASSERT_TRUE(event_is(events[0], Mark::kNote) && event_is(events[1], Mark::kNoteHead));
      EXPECT_EQ(note_head(events[1]).name, kId);
      EXPECT_EQ(note_head(events[1]).kind, exit ? NoteKind::kReturned : NoteKind::kArguments);
      const std::uint64_t first = note_payload(events[2]);
      EXPECT_EQ(first & 0xff, note_bytes_of(karst_test_before.general[7]));
    }
  }
  // What is written to the arena from now on chooses nothing; a number of values that cannot be is none.
  const std::uintptr_t before = karst_state->cursor;
  spec.arguments = 0;
  EXPECT_EQ(cross_once(false), "");
  EXPECT_GT(karst_state->cursor, before + 3 * sizeof(Event));
  spec.arguments = 200;
  take_over_values();
  EXPECT_EQ(cross_once(false), "");
  function.flags &= (1U << kValueSpecShift) - 1;
  ASSERT_TRUE(trampolines.begin_change());
  trampolines.aim(0, {false, false, false, false, false});
  trampolines.end_change();
}

}  // namespace
}  // namespace karst::test
