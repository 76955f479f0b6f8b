// SPDX-License-Identifier: MIT
// Ways out of functions that pass no sled: unwind.cc, jumps.cc, threads.cc stand before functions of libc and of the
// unwinder.
//
// In a dynamic program libkarst comes first in the search order. A static one is linked with --wrap=NAME for each of
// them (toolchain/karst-gcc.specs): what refers to NAME gets __wrap_NAME, ours, and ours gets libc's as __real_NAME.
#ifndef KARST_RUNTIME_WAYS_OUT_WAYS_OUT_H
#define KARST_RUNTIME_WAYS_OUT_WAYS_OUT_H

#ifdef KARST_STATIC
#define KARST_BEFORE(name) __wrap_##name
#else
#define KARST_BEFORE(name) name
#endif

#ifndef __ASSEMBLER__
#define KARST_NAME_TEXT(name) #name
#define KARST_NAME_OF(name) KARST_NAME_TEXT(name)

#include <cstdint>

namespace karst::runtime {

struct Context;  // _Unwind_Context, of whichever unwinder

/// What is asked of an unwinder: the functions of these names. toolchain/own_unwinder.S has such a table, too.
struct Unwinder {
  void (*set_ip)(Context*, std::uintptr_t);
  std::uintptr_t (*stack_pointer)(Context*);  ///< _Unwind_GetCFA: the stack pointer in the frame, as its call left it
  std::uintptr_t (*region_start)(Context*);
  void* (*language_data)(Context*);
  int (*backtrace)(int (*)(Context*, void*), void*);
};
static_assert(sizeof(Unwinder) == 40);

/// Called from within the unwinder (`caller`: the address it will return to): all frames inside of that of `context`,
/// an _Unwind_Context, are gone. Records the exits of the traced calls among them.
void frames_are_gone(void* context, const void* caller);

/// Threads of the process that are in vfork(), their children among them. After a fork it may be too many.
extern std::uint32_t g_vforks;

}  // namespace karst::runtime

/// The same, called by a module that has an unwinder of its own inside (toolchain/own_unwinder.S).
extern "C" __attribute__((visibility("default"))) void karst_frames_gone(karst::runtime::Context* context,
                                                                         const karst::runtime::Unwinder* unwinder);
#endif
#endif
