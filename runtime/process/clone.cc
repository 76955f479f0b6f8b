// SPDX-License-Identifier: MIT
// clone(), as programs call it themselves (pthread_create does not come by here).
//
// A thread made so without CLONE_SETTLS shares its parent's thread-local area, and one with CLONE_SETTLS brings an area
// of the program's making, in which our variable may never have been initialised. Hooks cannot find such a thread by
// their thread-local pointer; before the first one is made, all hooks change to the kind that asks the kernel. The
// definition here comes before libc's in the search order, whether libkarst is preloaded or linked.
#include <sched.h>

#include "runtime/process/fork.h"
#include "runtime/recording/arena.h"
#include "runtime/recording/thread.h"

extern "C" {

int __clone(int (*function)(void*), void* stack, int flags, void* argument, ...);

// libc's is variadic; what was not passed is whatever lies there, and is not looked at without its flag.
__attribute__((visibility("default"))) int karst_clone(int (*function)(void*), void* stack, int flags, void* argument,
                                                       void* parent_tid, void* tls, void* child_tid) asm("clone");

namespace {

struct Start {
  int (*function)(void*);
  void* argument;
};

// In a child that has a copy of its parent's memory, so also of the frame that `start` lies in.
int begin_child(void* start) {
  karst::runtime::in_cloned_child();
  const Start copy = *static_cast<Start*>(start);
  return copy.function(copy.argument);
}

}  // namespace

int karst_clone(int (*function)(void*), void* stack, int flags, void* argument, void* parent_tid, void* tls,
                void* child_tid) {
  using namespace karst::runtime;
  if (g_arena.exists() && (flags & CLONE_VM) == 0 && (flags & CLONE_SETTLS) == 0) {
    note_clone();
    Start start{function, argument};
    return __clone(begin_child, stack, flags, &start, parent_tid, tls, child_tid);
  }
  const bool same_memory = (flags & CLONE_VM) != 0 && (flags & CLONE_VFORK) == 0;
  if (same_memory && g_arena.exists()) find_threads_by_tid();
  return __clone(function, stack, flags, argument, parent_tid, tls, child_tid);
}

}  // extern "C"
