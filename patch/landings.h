// Where gcc's and clang's __builtin_longjmp() lands, which no function of libc is called for: Ruby's exceptions are made
// so. Its other half, __builtin_setjmp(), is inlined: it puts an address within its own function and the stack pointer
// into a buffer, and the jump goes there (gcc's manual, "Nonlocal Gotos").
#pragma once
#include <cstdint>
#include <vector>

#include "patch/joined.h"

namespace karst::patch {

/// An address that such jumps alone lead to.
struct Landing {
  std::uint64_t address = 0;
  /// Of each place where a buffer gets the address: instructions that have the stack pointer which it gets, too. The
  /// nearest come first.
  std::vector<std::vector<std::uint64_t>> set_by;
};

/// In order of address. What is not understood whole is not in it.
std::vector<Landing> landings_in(const Frames& frames, const Code& code, const Joined& joined);

}  // namespace karst::patch
