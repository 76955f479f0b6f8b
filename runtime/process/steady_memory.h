// SPDX-License-Identifier: MIT
// Memory that stays readable whatever other threads do, so that it is read without asking the kernel:
//
//   the calling thread's stack, from the running function's frame up to libc's data at its upper end, if it runs on the
//   stack that it was started with. How large that is says who creates the thread; of the program's first thread, the
//   kernel keeps what lies below its arguments and environment free of other mappings for RLIMIT_STACK.
//   the program's own code and constants, which nothing ever takes away: no segment that it can write, as programs
//   protect parts of those against themselves, and none of a library, whose file may be truncated.
#pragma once
#include <cstdint>

namespace karst::runtime {

/// At start, in the program's first thread, before it has others.
void find_steady_memory();
/// From now on threads that begin note their stacks.
void note_stacks_of_threads();
/// In a thread that begins. `size`: bytes of its stack, thread-local storage included; 0: not known.
void note_own_stack(std::uint64_t size);
/// Bytes of the stack that pthread_create gives a thread with these attributes; 0 if note_stacks_of_threads() was not
/// called.
std::uint64_t stack_size_of(const void* attributes);

struct StackBounds {
  std::uintptr_t low, top;  ///< 0: not known
};
/// All that may be of the stack that the calling thread was started with. Any context.
StackBounds own_stack();

/// How many of the `size` bytes at `address` are such memory: all up to there may be read. `stack`: where the frame of
/// the function that called begins. Any context.
std::uint32_t steady_bytes(std::uintptr_t address, std::uint32_t size, std::uintptr_t stack);

}  // namespace karst::runtime
