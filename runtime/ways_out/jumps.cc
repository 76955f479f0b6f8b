// SPDX-License-Identifier: MIT
// setjmp and longjmp, and their like (vfork, too): ways out of many calls at once that pass no sled.
//
// No stack is walked: where a place to jump to is set (setjmp), its stack pointer is recorded, and so it is at the
// jump; the reader, which knows the calls that were open then, ends those begun since. That costs two words each, where
// unwinding would cost a hundred times a longjmp. What begins in arch/*/jumps.S are the functions that return twice:
// they go on into libc's with the caller's frame as it was.
#include "runtime/ways_out/jumps.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <ucontext.h>

#include "arch/jump_buffer.h"
#include "runtime/modules/tail_frames.h"
#include "runtime/recording/marks.h"
#include "runtime/recording/thread.h"
#include "runtime/system/memory.h"
#include "runtime/system/syscalls.h"
#include "runtime/ways_out/jump_marks.h"

extern "C" {
#ifdef KARST_STATIC
#define KARST_DECLARE(name, constant) void __real_##name();
KARST_JUMP_FUNCTIONS(KARST_DECLARE)
#define KARST_REAL(name, constant) reinterpret_cast<void*>(__real_##name),
#else
#define KARST_REAL(name, constant) nullptr,
#endif
/// libc's own functions, by Function; jumps.S reads it, too.
__attribute__((visibility("hidden"))) void* karst_libc[] = {KARST_JUMP_FUNCTIONS(KARST_REAL)};
}

namespace karst::runtime {
namespace {

using namespace format;

#define KARST_CONSTANT(name, constant) constant,
enum Function : std::uint32_t { KARST_JUMP_FUNCTIONS(KARST_CONSTANT) kFunctions };
static_assert(kFunctions == sizeof karst_libc / sizeof karst_libc[0]);

#ifdef KARST_STATIC
void* libc(Function f) { return karst_libc[f]; }
#else
#define KARST_NAME(name, constant) #name,
constexpr const char* kNames[kFunctions] = {KARST_JUMP_FUNCTIONS(KARST_NAME)};

__attribute__((noinline)) void* find_libc(Function f) {
  void* found = dlsym(RTLD_NEXT, kNames[f]);
  store(karst_libc[f], found);
  return found;
}

inline void* libc(Function f) {
  void* found = load(karst_libc[f]);
  return found != nullptr ? found : find_libc(f);
}
#endif

void record_switch(std::uintptr_t from, std::uintptr_t to) {
  const Event words[] = {make_mark(0, Mark::kSwitched), make_place(from), make_place(to)};
  record_group(words, 3);
}

bool on_alternate_stack() {
  stack_t stack{};
  return sys::call(SYS_sigaltstack, 0, sys::word(&stack)) == 0 && (stack.ss_flags & SS_ONSTACK) != 0;
}

// Stacks grow down: whoever is jumped to on the same stack lies above. A jump down leads to another stack, and the
// calls here may go on some day; but a handler on its alternate stack that jumps out ends them.
void record_jump(std::uintptr_t here, std::uintptr_t to) {
  tail_frames_are_gone();
  if (to >= here || on_alternate_stack()) [[likely]]
    record_jump_to(to);
  else
    record_switch(here, to);
}

#ifndef KARST_STATIC
// Before the program's own constructors, so that nothing needs looking up when a signal handler jumps.
__attribute__((constructor)) void find_all() {
  for (std::uint32_t f = 0; f < kFunctions; ++f) libc(static_cast<Function>(f));
}
#endif

}  // namespace

std::uint32_t g_vforks;

}  // namespace karst::runtime

// Called by jumps.S, with the stack pointer that the caller has after the call. Return where to go on.
extern "C" {

#define KARST_HIDDEN __attribute__((visibility("hidden")))

KARST_HIDDEN void* karst_sets_place(std::uint32_t which, std::uintptr_t stack_pointer) {
  using namespace karst::runtime;
  record_place(stack_pointer);
  return libc(static_cast<Function>(which));
}

KARST_HIDDEN void* karst_sets_context(const ucontext_t* to, std::uintptr_t stack_pointer) {
  using namespace karst::runtime;
  if (is_recording()) {
    // A context got on the same stack not far above is used as a place to jump to.
    constexpr std::uintptr_t kNear = std::uintptr_t{1} << 20;
    const std::uintptr_t there = karst::arch::stack_pointer_of(*to);
    if (there >= stack_pointer && there - stack_pointer < kNear)
      record_jump_to(there);
    else
      record_switch(stack_pointer, there);
  }
  return libc(kSetcontext);
}

KARST_HIDDEN void* karst_swaps_context(const ucontext_t* to, std::uintptr_t stack_pointer) {
  using namespace karst::runtime;
  if (is_recording()) record_switch(stack_pointer, karst::arch::stack_pointer_of(*to));
  return libc(kSwapcontext);
}

KARST_HIDDEN void* karst_jumps(std::uint32_t which, std::uintptr_t stack_pointer, const void* buffer) {
  using namespace karst::runtime;
  record_jump(stack_pointer, karst::arch::stack_pointer_of(buffer));
  return libc(static_cast<Function>(which));
}

/// The calling thread is about to become a child of vfork, too.
KARST_HIDDEN void karst_vforks(std::uintptr_t stack_pointer) {
  using namespace karst::runtime;
  record_place(stack_pointer);
  __atomic_add_fetch(&g_vforks, 1, __ATOMIC_RELAXED);
}

/// In the parent, when the child has exec'd or ended: what the child called and did not return from is over.
KARST_HIDDEN int karst_vforked(long result, std::uintptr_t stack_pointer) {
  __atomic_sub_fetch(&karst::runtime::g_vforks, 1, __ATOMIC_RELAXED);
  karst::runtime::record_jump_to(stack_pointer);
  if (result > 0) return static_cast<int>(result);
  errno = static_cast<int>(-result);
  return -1;
}

}  // extern "C"
