// SPDX-License-Identifier: MIT
// What must hold in the guest, stated where it must: KARST_ASSERT(condition).
//
// In the preset `assertions` (CMake: KARST_ASSERTIONS) a condition that does not hold writes one line to stderr and
// traps: "karst: assertion failed: FILE:LINE: CONDITION". That takes one system call, no memory and no lock, so it may
// stand in any context, also in signal handlers. In every other build the condition is compiled and costs nothing: it
// is not evaluated. A condition has no effects.
//
// It is for mistakes of ours. What another process may have written into the arena is compared and refused as ever;
// with assertions on, a hostile arena may end the process.
#pragma once
#include "runtime/system/syscalls.h"

#ifdef KARST_ASSERTIONS
#define KARST_ASSERT(condition) \
  ((condition) ? static_cast<void>(0) : ::karst::runtime::assertion_failed(KARST_ASSERTION_LINE(condition)))
#define KARST_ASSERTION_LINE(condition) \
  "karst: assertion failed: " __FILE__ ":" KARST_ASSERTION_TEXT(__LINE__) ": " #condition "\n"
#define KARST_ASSERTION_TEXT(line) KARST_ASSERTION_TEXT_OF(line)
#define KARST_ASSERTION_TEXT_OF(line) #line

namespace karst::runtime {

template <std::size_t kSize>
[[noreturn]] __attribute__((noinline, cold)) void assertion_failed(const char (&line)[kSize]) {
  sys::write(2, line, kSize - 1);
  __builtin_trap();
}

}  // namespace karst::runtime
#else
#define KARST_ASSERT(condition) static_cast<void>(sizeof((condition) ? 1 : 0))
#endif
