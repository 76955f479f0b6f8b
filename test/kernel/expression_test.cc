// DWARF expressions: what they give, and that broken ones give nothing.
#include "kernel/expression.h"

#include <dwarf.h>
#include <gtest/gtest.h>

#include <random>

namespace karst::kernel {
namespace {

using Operations = std::vector<Dwarf_Op>;

Dwarf_Op op(unsigned atom, std::uint64_t number = 0, std::uint64_t number2 = 0) {
  return {static_cast<std::uint8_t>(atom), number, number2, 0};
}

constexpr std::uint64_t kFrame = 0x5000;

std::optional<Evaluated> evaluated(const Operations& operations) {
  Registers registers{};
  for (unsigned i = 0; i < kRegisters; ++i) registers[i] = 0x1000 + i;
  static const std::array<std::uint64_t, 4> kWords = {11, 22, 33, 44};
  return evaluate(operations, registers, kFrame, {0x2000, std::as_bytes(std::span(kWords))});
}

std::uint64_t number(const Operations& operations) {
  const auto result = evaluated(operations);
  EXPECT_TRUE(result);
  return result ? result->number : 0;
}

TEST(Expressions, GiveWhatTheyMean) {
  EXPECT_EQ(number({op(DW_OP_breg7, 16)}), 0x1007U + 16);
  EXPECT_EQ(number({op(DW_OP_breg6, static_cast<std::uint64_t>(-8))}), 0x1006U - 8);
  EXPECT_EQ(number({op(DW_OP_bregx, 3, 5)}), 0x1003U + 5);
  EXPECT_EQ(number({op(DW_OP_call_frame_cfa), op(DW_OP_plus_uconst, 8)}), kFrame + 8);
  EXPECT_EQ(number({op(DW_OP_const4u, 0x2008), op(DW_OP_deref)}), 22U);
  EXPECT_TRUE(evaluated({op(DW_OP_lit3), op(DW_OP_stack_value)})->is_value);
  EXPECT_TRUE(evaluated({op(DW_OP_reg5)})->is_value);
  EXPECT_EQ(number({op(DW_OP_reg5)}), 0x1005U);
  // The rule of a table of jumps (.plt): 8 more from its 11th byte on.
  const auto plt = [](std::uint64_t at) {
    Registers registers{};
    registers[kStackPointer] = 100;
    registers[kInstructionPointer] = at;
    const Operations operations = {op(DW_OP_breg7, 8), op(DW_OP_breg16), op(DW_OP_lit15),
                                   op(DW_OP_and),      op(DW_OP_lit11),  op(DW_OP_ge),
                                   op(DW_OP_lit3),     op(DW_OP_shl),    op(DW_OP_plus)};
    return evaluate(operations, registers, 0, {})->number;
  };
  EXPECT_EQ(plt(0x40), 108U);
  EXPECT_EQ(plt(0x4a), 108U);
  EXPECT_EQ(plt(0x4b), 116U);
  EXPECT_EQ(number({op(DW_OP_lit2), op(DW_OP_lit5), op(DW_OP_over), op(DW_OP_minus)}), 3U);
  EXPECT_EQ(number({op(DW_OP_lit2), op(DW_OP_const1s, static_cast<std::uint64_t>(-1)), op(DW_OP_lt)}), 0U);
  EXPECT_EQ(number({op(DW_OP_lit1), op(DW_OP_const1u, 64), op(DW_OP_shl)}), 0U);
}

TEST(Expressions, ThatAreBrokenGiveNothing) {
  EXPECT_FALSE(evaluated({}));
  EXPECT_FALSE(evaluated({op(DW_OP_plus)}));
  EXPECT_FALSE(evaluated({op(DW_OP_lit1), op(DW_OP_plus)}));
  EXPECT_FALSE(evaluated({op(DW_OP_const4u, 0x3000), op(DW_OP_deref)})) << "behind the copy";
  EXPECT_FALSE(evaluated({op(DW_OP_const4u, 0x201c), op(DW_OP_deref)})) << "half behind it";
  EXPECT_FALSE(evaluated({op(DW_OP_const4u, 0x1fff), op(DW_OP_deref)})) << "before it";
  EXPECT_FALSE(evaluated({op(DW_OP_breg17)}));
  EXPECT_FALSE(evaluated({op(DW_OP_bregx, ~std::uint64_t{0})}));
  EXPECT_FALSE(evaluated({op(DW_OP_lit1), op(DW_OP_pick, ~std::uint64_t{0})}));
  EXPECT_FALSE(evaluated({op(DW_OP_skip, 3)}));
  EXPECT_FALSE(evaluated(Operations(33, op(DW_OP_lit1))));
}

TEST(Expressions, OfAnyKindEnd) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 20'000; ++round) {
    Operations operations;
    for (std::size_t i = random() % 40; i != 0; --i)
      operations.push_back(
          op(static_cast<unsigned>(random() % 256), random() % 3 == 0 ? random() : random() % 70, random()));
    evaluated(operations);
  }
}

}  // namespace
}  // namespace karst::kernel
