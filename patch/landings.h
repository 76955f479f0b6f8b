// SPDX-License-Identifier: MIT
// Where gcc's and clang's __builtin_longjmp() lands, which no function of libc is called for: Ruby's exceptions are
// made so. Its other half, __builtin_setjmp(), is inlined: it puts an address within its own function and the stack
// pointer into a buffer, and the jump goes there (gcc's manual, "Nonlocal Gotos").
#pragma once
#include <cstdint>
#include <vector>

#include "patch/joined.h"

namespace karst::patch {

/// Addresses of instructions that are executed one after the other with the same stack pointer, none but the last of
/// them a call: before which a hook is called makes no difference.
using Alike = std::vector<std::uint64_t>;

/// A place that such jumps alone lead to.
struct Landing {
  Alike behind;               ///< the place itself, and what follows
  std::vector<Alike> set_by;  ///< where buffers get it
};

/// In order of address. What is not understood whole is not in it.
std::vector<Landing> landings_in(const Frames& frames, const Code& code, const Joined& joined);

}  // namespace karst::patch
