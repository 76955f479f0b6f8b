// SPDX-License-Identifier: MIT
// What is recorded of the places that jumps lead to, and of jumps (format/event.h, marks). Stack pointers are those at
// the place. Async-signal-safe.
#pragma once
#include <cstdint>

#include "format/event.h"
#include "runtime/recording/thread.h"
#include "runtime/watching/watch.h"

namespace karst::runtime {

inline void record_place(std::uintptr_t stack_pointer) {
  const format::Event word = format::make_place(stack_pointer, format::Mark::kSetPlace);
  record_group(&word, 1);
}

inline void record_jump_to(std::uintptr_t stack_pointer) {
  const format::Event words[] = {format::make_mark(0, format::Mark::kJumped), format::make_place(stack_pointer)};
  record_group(words, 2);
  calls_left(reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)), stack_pointer);
}

}  // namespace karst::runtime
