// SPDX-License-Identifier: MIT
// pthread_create, so that there is one frame of ours below all others of a thread: see thread_start.S. A thread that
// ends inside of calls (pthread_exit, pthread_cancel) is unwound by libc; what runs afterwards, destructors of
// thread-local objects among it, is called by none of them.
#include <dlfcn.h>
#include <pthread.h>

#include "runtime/fibers/stacks.h"
#include "runtime/process/steady_memory.h"
#include "runtime/recording/arena.h"
#include "runtime/system/memory.h"
#include "runtime/ways_out/ways_out.h"

#ifdef KARST_STATIC
// Strong: were it weak, a program whose every reference is wrapped would not get libc's from its archive.
extern "C" int __real_pthread_create(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
#endif

namespace karst::runtime {
namespace {

using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);

/// What a new thread shall run, from its creation until it begins.
struct Start {
  std::uint32_t taken;
  void* (*function)(void*);
  void* argument;
  std::uint64_t stack_size;
};
constexpr std::uint32_t kStarts = 1024;
Start g_starts[kStarts];
std::uint32_t g_next_start;

/// Null when so many threads have been created and not begun; then one begins without us.
Start* take_start() {
  for (std::uint32_t tries = 0; tries < kStarts; ++tries) {
    Start& s = g_starts[__atomic_fetch_add(&g_next_start, 1, __ATOMIC_RELAXED) % kStarts];
    if (load(s.taken) == 0 && exchange_if(s.taken, 0U, 1U)) return &s;
  }
  return nullptr;
}

#ifdef KARST_STATIC
Create libc_create() { return __real_pthread_create; }
#else
Create g_create;

Create libc_create() {
  Create found = load(g_create);
  if (found == nullptr) {
    found = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
    store(g_create, found);
  }
  return found;
}
#endif

}  // namespace

}  // namespace karst::runtime

extern "C" {

__attribute__((visibility("hidden"))) void* karst_thread_start(void* start);

__attribute__((visibility("hidden"))) void karst_thread_begins(karst::runtime::Start* start, void** frame) {
  using namespace karst::runtime;
  frame[0] = reinterpret_cast<void*>(start->function);
  frame[1] = start->argument;
  note_own_stack(start->stack_size);
  begin_stacks();
  store(start->taken, 0U);
}

__attribute__((visibility("hidden"))) int karst_thread_personality(int version, int actions, std::uint64_t, void*,
                                                                   void* context) {
  constexpr int kCleanupPhase = 2;  // _UA_CLEANUP_PHASE
  constexpr int kGoOn = 8;          // _URC_CONTINUE_UNWIND
  if (version == 1 && (actions & kCleanupPhase) != 0)
    karst::runtime::frames_are_gone(context, __builtin_return_address(0));
  return kGoOn;
}

__attribute__((visibility("default"))) int karst_pthread_create(
    pthread_t* thread, const pthread_attr_t* attributes, void* (*function)(void*),
    void* argument) asm(KARST_NAME_OF(KARST_BEFORE(pthread_create)));

int karst_pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*function)(void*),
                         void* argument) {
  using namespace karst::runtime;
  Start* start = g_arena.exists() ? take_start() : nullptr;
  if (start == nullptr) return libc_create()(thread, attributes, function, argument);
  start->function = function;
  start->argument = argument;
  start->stack_size = stack_size_of(attributes);
  const int result = libc_create()(thread, attributes, karst_thread_start, start);
  if (result != 0) store(start->taken, 0U);
  return result;
}

}  // extern "C"
