// SPDX-License-Identifier: MIT
// The jumps of functions without sleds, of probes and of detours, in a process that runs (format/patch_table.h).
//
// libkarst has mapped the stubs by then. Jumps are written while all threads are stopped, and only over bytes in the
// middle of which nobody stands: no thread, and no frame of a signal's handler. Calls never lie in such bytes, so no
// return address points there. A stop ends after some milliseconds whatever is left; what is left has its turn in the
// next.
//
// A thread in uninterruptible sleep does not stop. It executes nothing until that ends, and has been asked to stop
// before it does; so it counts as stopped where the kernel says it is. Not so in vfork(): the child that it waits for
// executes the same code in the same memory, and is another process, maybe with other rights. Then nothing is changed
// until the child has gone on to a program of its own.
//
// Karst may be killed at any instant: each page is written at once, and no jump lies in two. The stubs of functions
// that are patched in part do no more than the code that they replace, as their sleds are off until libkarst is told,
// and detours closed.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/held_process.h"
#include "base/result.h"

namespace karst::collect {

struct PatchedCode {
  std::uint64_t functions = 0;  ///< that have their jumps; of take_back_jumps(): their own code
  /// That were left as they are: a thread was never out of them, a place is in two pages, or is not as in its file.
  std::uint64_t left = 0;
  std::uint32_t stops = 0;            ///< also those in which not all threads stopped, and nothing was changed
  std::uint64_t longest_stop_ns = 0;  ///< from the first request to a thread until all go on
  std::uint64_t calls_ns = 0;         ///< how long a thread was kept with calls of libkarst's, at most; 0: not known
  std::string problem;                ///< why, in the last of these stops, not all threads stopped; empty: they did
};

/// Writes the jumps of all modules whose stubs the process has, but those of detours and of functions that have one,
/// and leads the ways out of calls by libkarst (slots.h), for good. Errors are phrases behind the process's name.
Result<PatchedCode> write_jumps(const HeldProcess& process);

/// Puts back the code that was there before, also of detours. A process without such jumps: 0 functions, and it is not
/// stopped.
Result<PatchedCode> take_back_jumps(const HeldProcess& process);

/// The detours that a process has stubs for.
struct Detours {
  bool any = false;
  bool stand = false;                    ///< the jumps of all of them
  bool are_open = false;                 ///< each leads to a library of ours
  std::vector<std::uint64_t> functions;  ///< that are not traced where they stand: their addresses
};
Result<Detours> detours_of(const HeldProcess& process);

/// Writes the jumps of all detours, or none. What else stands in those functions for their tracing goes first; who
/// calls this has switched them off. Error: which of them has none and why; all is then as it was.
Status write_detours(const HeldProcess& process);

}  // namespace karst::collect
