// SPDX-License-Identifier: MIT
// Knows the few instructions that compilers put between a sled and the end of a function: NOPs that align the jump,
// lfence, then a return or a jump. Everything else is unknown, so nothing is patched on a guess.
#include "arch/x86_64/branch.h"

namespace karst::arch {
namespace {

/// Bytes of a ModRM byte and what belongs to it, in 64-bit code; 0 if they do not end within `size`.
std::uint64_t operand_size(const unsigned char* at, std::uint64_t size) {
  if (size < 1) return 0;
  const unsigned mode = at[0] >> 6;
  const unsigned rm = at[0] & 7;
  if (mode == 3) return 1;
  std::uint64_t all = 1;
  bool wide = mode == 2 || (mode == 0 && rm == 5);  // a displacement of 32 bits
  if (rm == 4) {
    if (size < 2) return 0;
    wide = wide || (mode == 0 && (at[1] & 7) == 5);
    ++all;
  }
  all += wide ? 4 : mode == 1 ? 1 : 0;
  return all <= size ? all : 0;
}

bool is_prefix(unsigned char byte) {
  switch (byte) {
    case 0x2e:  // segments, which are padding as well, or hints to a jump
    case 0x36:
    case 0x3e:
    case 0x26:
    case 0x64:
    case 0x65:
    case 0x66:
    case 0xf2:  // bnd
    case 0xf3:  // rep ret
      return true;
    default:
      return (byte & 0xf0) == 0x40;  // REX
  }
}

/// Bytes of the NOP or lfence whose opcode stands at `at`, behind its prefixes; 0 if it is none.
std::uint64_t padding_size(const unsigned char* at, std::uint64_t size) {
  if (at[0] == 0x90) return 1;
  if (size < 3 || at[0] != 0x0f) return 0;
  if (at[1] == 0xae) return at[2] == 0xe8 ? 3 : 0;  // lfence
  if (at[1] != 0x1f) return 0;
  const std::uint64_t operand = operand_size(at + 2, size - 2);
  return operand == 0 ? 0 : 2 + operand;
}

}  // namespace

Branch branch_at(const unsigned char* code, std::uint64_t size) {
  constexpr Branch kUnknown{Leaves::kUnknown, 0};
  for (std::uint64_t at = 0; at < size;) {
    if (is_prefix(code[at])) {
      ++at;
      continue;
    }
    const unsigned char* op = code + at;
    const std::uint64_t left = size - at;
    if (const std::uint64_t padding = padding_size(op, left); padding != 0) {
      at += padding;
      continue;
    }
    const auto condition = static_cast<unsigned char>(op[0] & 0x0f);
    if ((op[0] & 0xf0) == 0x70 && left >= 2) return {Leaves::kIf, condition};
    if (op[0] == 0x0f && left >= 6 && (op[1] & 0xf0) == 0x80)
      return {Leaves::kIf, static_cast<unsigned char>(op[1] & 0x0f)};
    const bool returns = op[0] == 0xc3 || (op[0] == 0xc2 && left >= 3);
    const bool jumps = (op[0] == 0xeb && left >= 2) || (op[0] == 0xe9 && left >= 5);
    const bool jumps_by_operand = op[0] == 0xff && operand_size(op + 1, left - 1) != 0 && (op[1] >> 3 & 7) == 4;
    if (returns || jumps || jumps_by_operand) return {};
    return kUnknown;
  }
  return kUnknown;
}

}  // namespace karst::arch
