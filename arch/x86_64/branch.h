// SPDX-License-Identifier: MIT
// The instruction that leaves a function, behind an exit's sled: whether it leaves always, or on a condition.
#pragma once
#include <cstdint>

#include "arch/arch.h"

namespace karst::arch {

struct Branch {
  Leaves leaves = Leaves::kAlways;
  unsigned char condition = 0;  ///< of kIf: as in the instruction's opcode; the lowest bit turns it round
};

/// Padding and the instruction take at most so many bytes: NOPs up to a line of 32 bytes (Intel's jump erratum), then
/// one instruction.
inline constexpr std::uint64_t kMostInstruction = 32 + 15;

/// The first instruction at `code` that is no NOP. Reads at most `size` bytes; what does not end within is kUnknown.
Branch branch_at(const unsigned char* code, std::uint64_t size);

}  // namespace karst::arch
