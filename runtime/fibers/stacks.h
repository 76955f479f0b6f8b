// SPDX-License-Identifier: MIT
// Fibers that nobody tells of (`karst run --fibers=stack`): which stack a thread runs on, by its stack pointer.
//
// Hooks of their own (arch/x86_64/stack_hooks.S) stand before those in force. They compare the stack pointer with the
// window of the stack that the thread ran on last. Outside of it, karst_find_stack() finds out:
//
//   the thread's own stack     its bounds are known: what pthread_create was told, or the kernel's limit
//   a signal's stack           sigaltstack() tells; whose the calls are does not change
//   a stack that is known      it has all from the place of its last event, or from its lowest, up to its highest one
//   the same one, further on   near its last event; or a function with a large frame called (called_from.h)
//   a new one                  all others
//
// A program resumes a stack where it left it, so the place of the last event tells stacks apart that lie side by side.
// A stack whose calls have all ended keeps no more than its top. Where calls had not ended and the next call begins at
// the top or above, the memory has become another fiber's.
//
// What it cannot tell is in docs/limits.md.
#ifndef KARST_RUNTIME_FIBERS_STACKS_H
#define KARST_RUNTIME_FIBERS_STACKS_H

// Offsets in Stack.
#define KARST_STACK_LOW 0
#define KARST_STACK_HIGH 8
#define KARST_STACK_LAST 16
#define KARST_STACK_OWNER 24

#ifndef __ASSEMBLER__
#include <cstddef>
#include <cstdint>

#include "format/values.h"
#include "runtime/recording/thread.h"
#include "runtime/system/memory.h"

namespace karst::runtime {

/// Places are the stack pointer as the hooks have it when they look. One thread at a time runs on a stack.
struct Stack {
  std::uintptr_t low;    ///< from here
  std::uintptr_t high;   ///< to here the stack pointer is on this stack for sure
  std::uintptr_t last;   ///< of the last event; +1: it was an exit
  std::uintptr_t owner;  ///< pointer of the thread that runs on it, or did last
  std::uintptr_t top;    ///< highest one
  std::uint64_t fiber;   ///< 0: a thread's own stack
  std::uint32_t next;    ///< in the table: index + 1
  std::uint32_t gone;    ///< another entry stands for it
};
static_assert(offsetof(Stack, low) == KARST_STACK_LOW && offsetof(Stack, high) == KARST_STACK_HIGH &&
              offsetof(Stack, last) == KARST_STACK_LAST && offsetof(Stack, owner) == KARST_STACK_OWNER);

/// At start: stacks are found from now on. False when memory is short.
bool prepare_stacks();
/// In a thread that begins. A handler may have been there before it.
void begin_stacks();
/// The calling thread says itself what its fibers are: nothing is found in it from now on. Any context.
void leave_stacks_to_thread();

extern "C" {
/// The hook in force goes on behind it. Any context.
__attribute__((visibility("hidden"))) void karst_find_stack(const format::SavedRegisters* saved);
/// Where all stacks are; 0: they are not found. That of the calling thread is karst_stack bytes behind.
extern __attribute__((visibility("hidden"))) std::uintptr_t karst_stacks;
}

/// The one that the calling thread ran on last. Requires stacks_are_found().
inline Stack* stack_of_thread() { return reinterpret_cast<Stack*>(karst_stacks + karst_stack); }

inline bool stacks_are_found() { return load(karst_stacks) != 0; }

/// What a note before the event itself needs: the same as those hooks do.
inline void find_stack(const format::SavedRegisters* saved) {
  if (stacks_are_found()) karst_find_stack(saved);
}

}  // namespace karst::runtime
#endif
#endif
