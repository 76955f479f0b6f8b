// SPDX-License-Identifier: MIT
// What the calling thread works on: the note that it goes on with another fiber (format/note.h, FiberNote).
#pragma once
#include <cstdint>

namespace karst::runtime {

/// 0: the thread's own stack. Nothing if it works on that already and not `again`: others did meanwhile. Any context.
void enter_fiber(std::uint64_t fiber, const char* name, bool again = false);

}  // namespace karst::runtime
