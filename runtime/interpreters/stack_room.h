// SPDX-License-Identifier: MIT
// Whether the calling thread has used less than half of the stack that it had when it asked first.
#pragma once
#include <cstdint>

namespace karst::runtime {

/// Where half of the thread's stack is; 0: not known yet.
extern __attribute__((tls_model("initial-exec"), visibility("hidden"))) __thread std::uintptr_t t_half_of_stack;

/// False also where it cannot be told. The first call of a thread asks libc, and reads the mappings in the main thread.
__attribute__((cold)) bool find_stack_room(std::uintptr_t here);

/// On the thread's own stack. Any thread.
inline bool has_stack_room() {
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  return t_half_of_stack != 0 ? here > t_half_of_stack : find_stack_room(here);
}

}  // namespace karst::runtime
