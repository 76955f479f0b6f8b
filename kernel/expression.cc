// SPDX-License-Identifier: MIT
#include "kernel/expression.h"

#include <dwarf.h>

namespace karst::kernel {
namespace {

/// A stack of numbers; after too many, or one that is not there, nothing is right any more.
class Numbers {
 public:
  void push(std::uint64_t number) {
    if (count_ >= numbers_.size())
      failed_ = true;
    else
      numbers_[count_++] = number;
  }
  std::uint64_t pop() {
    const std::uint64_t top = at(0);
    if (!failed_) --count_;
    return top;
  }
  /// From the top, 0 the first.
  std::uint64_t at(std::uint64_t place) {
    if (!failed_ && place < count_ && count_ <= numbers_.size()) return numbers_[count_ - 1 - place];
    failed_ = true;
    return 0;
  }
  void fail() { failed_ = true; }
  bool failed() const { return failed_; }

 private:
  std::array<std::uint64_t, 32> numbers_{};
  std::size_t count_ = 0;
  bool failed_ = false;
};

std::uint64_t register_of(const Registers& registers, std::uint64_t number, Numbers& numbers) {
  if (number < kRegisters) return registers[number];
  numbers.fail();
  return 0;
}

/// True if it is one of two numbers that makes a third.
bool combine(unsigned operation, Numbers& numbers) {
  constexpr std::uint64_t kBits = 64;
  const std::uint64_t b = numbers.at(0);
  const std::uint64_t a = numbers.at(1);
  const auto signed_a = static_cast<std::int64_t>(a);
  const auto signed_b = static_cast<std::int64_t>(b);
  std::uint64_t result = 0;
  switch (operation) {
    case DW_OP_and:
      result = a & b;
      break;
    case DW_OP_or:
      result = a | b;
      break;
    case DW_OP_xor:
      result = a ^ b;
      break;
    case DW_OP_plus:
      result = a + b;
      break;
    case DW_OP_minus:
      result = a - b;
      break;
    case DW_OP_mul:
      result = a * b;
      break;
    case DW_OP_shl:
      result = b < kBits ? a << b : 0;
      break;
    case DW_OP_shr:
      result = b < kBits ? a >> b : 0;
      break;
    case DW_OP_eq:
      result = a == b ? 1 : 0;
      break;
    case DW_OP_ne:
      result = a != b ? 1 : 0;
      break;
    case DW_OP_ge:
      result = signed_a >= signed_b ? 1 : 0;
      break;
    case DW_OP_gt:
      result = signed_a > signed_b ? 1 : 0;
      break;
    case DW_OP_le:
      result = signed_a <= signed_b ? 1 : 0;
      break;
    case DW_OP_lt:
      result = signed_a < signed_b ? 1 : 0;
      break;
    default:
      return false;
  }
  numbers.pop();
  numbers.pop();
  numbers.push(result);
  return true;
}

}  // namespace

std::optional<Evaluated> evaluate(std::span<const Dwarf_Op> expression, const Registers& registers, std::uint64_t frame,
                                  const StackCopy& memory) {
  Numbers numbers;
  for (const Dwarf_Op& operation : expression) {
    const unsigned what = operation.atom;
    if (what >= DW_OP_lit0 && what <= DW_OP_lit31) {
      numbers.push(what - DW_OP_lit0);
    } else if (what >= DW_OP_breg0 && what <= DW_OP_breg31) {
      numbers.push(register_of(registers, what - DW_OP_breg0, numbers) + operation.number);
    } else if (what >= DW_OP_reg0 && what <= DW_OP_reg31) {
      return Evaluated{register_of(registers, what - DW_OP_reg0, numbers), true};
    } else if (what == DW_OP_bregx) {
      numbers.push(register_of(registers, operation.number, numbers) + operation.number2);
    } else if (what == DW_OP_call_frame_cfa) {
      numbers.push(frame);
    } else if (what == DW_OP_const1u || what == DW_OP_const1s || what == DW_OP_const2u || what == DW_OP_const2s ||
               what == DW_OP_const4u || what == DW_OP_const4s || what == DW_OP_const8u || what == DW_OP_const8s ||
               what == DW_OP_constu || what == DW_OP_consts) {
      numbers.push(operation.number);
    } else if (what == DW_OP_plus_uconst) {
      numbers.push(numbers.pop() + operation.number);
    } else if (what == DW_OP_dup) {
      numbers.push(numbers.at(0));
    } else if (what == DW_OP_over) {
      numbers.push(numbers.at(1));
    } else if (what == DW_OP_pick) {
      numbers.push(numbers.at(operation.number));
    } else if (what == DW_OP_drop) {
      numbers.pop();
    } else if (what == DW_OP_deref) {
      const auto value = memory.read(numbers.pop());
      if (!value) return std::nullopt;
      numbers.push(*value);
    } else if (what == DW_OP_stack_value) {
      return numbers.failed() ? std::nullopt : std::optional(Evaluated{numbers.pop(), true});
    } else if (!combine(what, numbers)) {
      return std::nullopt;
    }
    if (numbers.failed()) return std::nullopt;
  }
  const std::uint64_t result = numbers.pop();
  if (numbers.failed()) return std::nullopt;
  return Evaluated{result, false};
}

}  // namespace karst::kernel
