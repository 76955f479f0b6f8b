// SPDX-License-Identifier: MIT
// Calls that end by a tail call and last until their callee returns: what arch/x86_64/tail_hooks.S puts on the stack.
#ifndef KARST_RUNTIME_MODULES_TAIL_FRAMES_H
#define KARST_RUNTIME_MODULES_TAIL_FRAMES_H

// The stack grows by a frame of 64 bytes for each such call that has not returned. A tail call beyond these bounds
// stays a jump.
#define KARST_TAIL_MOST_IN_A_ROW 8  // each the tail call of the one before
#define KARST_TAIL_MOST 32          // in a thread

// Where a frame has the address of its exit trampoline, in bytes from the stack pointer as the callee's return leaves
// it.
#define KARST_TAIL_EXIT_ABOVE 32

// Offsets in Tails.
#define KARST_TAILS_COUNT 0
#define KARST_TAILS_FIRST 4

#ifndef __ASSEMBLER__
#include <cstddef>
#include <cstdint>

namespace karst::runtime {

/// Of the calling thread. It may be too many, as some frames go without coming back.
struct Tails {
  std::uint32_t count;  ///< frames that there are
  std::uint32_t first;  ///< where the outermost one's function has its return address: the lower half; valid if any is
};
static_assert(offsetof(Tails, count) == KARST_TAILS_COUNT && offsetof(Tails, first) == KARST_TAILS_FIRST);

extern "C" {
extern __attribute__((tls_model("initial-exec"), visibility("hidden"))) __thread Tails karst_tail_state;

// Not callable from C++.
/// Puts a frame there. The carry flag is set if it did not.
__attribute__((visibility("hidden"))) void karst_hook_tail();
/// Never does.
__attribute__((visibility("hidden"))) void karst_hook_tail_left();
/// The code of the frames.
__attribute__((visibility("hidden"))) void karst_tail_frame();
/// The id of the function whose frame it is, by the stack pointer in the frame as the callee's return leaves it; 0: the
/// frame is not there any more.
__attribute__((visibility("hidden"))) std::uint32_t karst_function_of_tail_frame(std::uintptr_t stack_pointer);
}

/// Whether an FDE that begins there is that of the frames.
inline bool are_tail_frames(std::uintptr_t region) {
  return region == reinterpret_cast<std::uintptr_t>(karst_tail_frame);
}

/// Frames of the calling thread have gone: by a jump, or an exception.
inline void tail_frames_are_gone() { karst_tail_state.count = 0; }

}  // namespace karst::runtime
#endif
#endif
