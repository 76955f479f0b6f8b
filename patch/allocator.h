// SPDX-License-Identifier: MIT
// The code of an allocator that a program has in itself: where a thread stands in it, it may hold the allocator's
// locks, and must not be made to call what takes memory.
//
// Of such an allocator only the functions are known that libc has, too (malloc and its like). Its code is what they may
// execute by calls and jumps of known targets, and, as that may take locks for who calls it, all that leads there but
// by one of those functions. What is reached by pointers alone has a frame of this code below it on the stack.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "patch/elf_image.h"
#include "sandbox/credentials.h"

namespace karst::patch {

struct AllocatorCode {
  std::vector<Range> code;  ///< ELF addresses, in order
  /// Where pointers lie by which its functions end in others: if one leads to what may be an allocator's, the code is
  /// not known after all.
  std::vector<std::uint64_t> pointers;
  std::vector<std::uint64_t> slots;  ///< the same of calls by name: until they are bound they lead into the program
};
/// Read by a sandbox (sandbox/sandbox.h). No code: the program has none. Errors: it cannot be told from the program's
/// other code.
Result<AllocatorCode> allocator_code(int descriptor, const std::optional<sandbox::Credentials>& as);

}  // namespace karst::patch
