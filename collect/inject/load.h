// SPDX-License-Identifier: MIT
// Bringing a library into a process that runs: one thread of it is made to call the process's own dlopen. Then it may
// be made to call functions of libkarst's.
//
// Karst may be killed at any instant, and the process must go on and compute the same. So:
//   - The code (arch/remote_call.h) is written into bytes that nothing executes: between the end of a library's code
//     and the end of its last page. Until the thread is sent there it does nothing.
//   - One ptrace request then changes the thread's rip, and nothing else that a program can see. The code saves and
//     restores all by itself, and jumps back to where the thread was. Nobody has to come back for that.
//   - The next one blocks all signals of the thread. The code has its mask, and sets it back.
//   - A system call in which the thread waited is begun anew by that jump, or ends, as the kernel would have it.
//   - Of ptrace only seize, interrupt and system call stops are used: none leaves anything behind if the tracer dies.
// The other threads run on all the time.
#pragma once
#include <string>

#include "base/held_process.h"
#include "base/result.h"

namespace karst::collect {

/// Loads the library of this path, which must be the same file for that process. Returns when its constructors are
/// done. Gives up after some seconds if no thread is where dlopen may be called: not in the dynamic linker, the
/// allocator or a signal handler, and best asleep in a system call. Errors: why not, in words for the user.
Status load_library(const HeldProcess& process, const std::string& path);

/// As load_library(), for libkarst.so when it is loaded: calls `function`, const void*(const char*), with `argument`.
/// It returns null on failure; karst_attach_problem() then says why.
Status call_runtime(const HeldProcess& process, const std::string& function, const std::string& argument);

/// The same of another library that is loaded, by its file's name without the version (libkarst-files.so). `problem` is
/// its function that says why `function` returned null.
Status call_library(const HeldProcess& process, const std::string& library, const std::string& function,
                    const std::string& problem);

}  // namespace karst::collect
