// SPDX-License-Identifier: MIT
// karst_fiber_enter() and karst_fiber_leave() of include/karst/karst.h.
#include "runtime/fibers/fibers.h"
#include "runtime/fibers/stacks.h"

/// 0: the thread's own stack.
extern "C" __attribute__((visibility("default"))) void karst_api_fiber(std::uint64_t fiber, const char* name) {
  karst::runtime::leave_stacks_to_thread();
  karst::runtime::enter_fiber(fiber, name);
}
