// Ways out of functions that pass no sled: unwind.cc, jumps.cc, threads.cc stand before functions of libc and of the
// unwinder.
#pragma once

namespace karst::runtime {

/// Called from within the unwinder (`caller`: the address it will return to): all frames inside of that of `context`,
/// an _Unwind_Context, are gone. Records the exits of the traced calls among them.
void frames_are_gone(void* context, const void* caller);

}  // namespace karst::runtime
