// clone(), as programs call it themselves (pthread_create does not come by here).
//
// A thread made so without CLONE_SETTLS shares its parent's thread-local area, and one with CLONE_SETTLS brings an area
// of the program's making, in which our variable may never have been initialised. Hooks cannot find such a thread by
// their thread-local pointer; before the first one is made, all hooks change to the kind that asks the kernel. The
// definition here comes before libc's in the search order, whether libkarst is preloaded or linked.
#include <sched.h>

#include "runtime/core/arena.h"
#include "runtime/core/thread.h"

extern "C" {

int __clone(int (*function)(void*), void* stack, int flags, void* argument, ...);

// libc's is variadic; what was not passed is whatever lies there, and is not looked at without its flag.
__attribute__((visibility("default"))) int karst_clone(int (*function)(void*), void* stack, int flags, void* argument,
                                                       void* parent_tid, void* tls, void* child_tid) asm("clone");

int karst_clone(int (*function)(void*), void* stack, int flags, void* argument, void* parent_tid, void* tls,
                void* child_tid) {
  const bool same_memory = (flags & CLONE_VM) != 0 && (flags & CLONE_VFORK) == 0;
  if (same_memory && karst::runtime::g_arena.exists() && !karst::runtime::in_forked_child())
    karst::runtime::find_threads_by_tid();
  return __clone(function, stack, flags, argument, parent_tid, tls, child_tid);
}

}  // extern "C"
