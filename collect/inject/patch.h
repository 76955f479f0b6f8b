// The jumps of functions without sleds, of probes and of detours, in a process that runs (format/patch_table.h).
//
// libkarst has mapped the stubs by then. Jumps are written while all threads are stopped, and only over bytes in the
// middle of which nobody stands: no thread, and no frame of a signal's handler. Calls never lie in such bytes, so no
// return address points there. A stop ends after some milliseconds whatever is left; what is left has its turn in the
// next.
//
// Karst may be killed at any instant: each page is written at once, and no jump lies in two. The stubs of functions
// that are patched in part do no more than the code that they replace, as their sleds are off until libkarst is told,
// and detours closed.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "base/result.h"

namespace karst::collect {

struct PatchedCode {
  std::uint64_t functions = 0;  ///< that have their jumps; of take_back_jumps(): their own code
  std::uint64_t left = 0;  ///< that were left as they are: a thread was never out of them, or a place is in two pages
  std::uint32_t stops = 0;
  std::uint64_t longest_stop_ns = 0;  ///< from the first request to a thread until all go on
};

/// Writes the jumps of all modules whose stubs the process has, but those of detours and of functions that have one,
/// and leads the ways out of calls by libkarst (slots.h), for good. Errors are phrases behind the process's name.
Result<PatchedCode> write_jumps(pid_t pid);

/// Puts back the code that was there before, also of detours. A process without such jumps: 0 functions, and it is not
/// stopped.
Result<PatchedCode> take_back_jumps(pid_t pid);

/// The detours that a process has stubs for.
struct Detours {
  bool any = false;
  bool stand = false;                    ///< the jumps of all of them
  bool are_open = false;                 ///< each leads to a library of ours
  std::vector<std::uint64_t> functions;  ///< that are not traced where they stand: their addresses
};
Result<Detours> detours_of(pid_t pid);

/// Writes the jumps of all detours, or none. What else stands in those functions for their tracing goes first; who
/// calls this has switched them off. Error: which of them has none and why; all is then as it was.
Status write_detours(pid_t pid);

}  // namespace karst::collect
