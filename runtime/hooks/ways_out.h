// Ways out of functions that pass no sled: unwind.cc, jumps.cc. Both stand before functions of libc and libgcc.
#pragma once

namespace karst::runtime {

/// At start: looks up libc's functions, so that nothing needs looking up when a signal handler jumps.
void find_jumps();

}  // namespace karst::runtime
