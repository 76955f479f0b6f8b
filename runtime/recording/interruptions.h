// SPDX-License-Identifier: MIT
// Whether a signal handler may have begun in a thread since some moment, asked for in two loads.
//
// The kernel clears a thread's `rseq_cs` when it preempts the thread, or delivers a signal to it, outside of the
// restartable sequence that `rseq_cs` names (linux/rseq.h). libkarst names one in which no thread ever is: as long as
// it is there, nothing has come between. glibc registers all threads for restartable sequences (2.35 and later); where
// it has not, or the kernel has none, the answer is always yes. Handlers of a vfork child, which has its parent's
// memory but no registration, are not noticed.
#pragma once

namespace karst::runtime {

/// From now on handlers of the calling thread are noticed. A program's own sequences lose nothing, as no function is
/// called within one. Signal-safe.
void notice_interruptions();
/// The answer is yes until notice_interruptions() is called again. Signal-safe.
void notice_none();

/// False: no handler has begun in the calling thread since it last called notice_interruptions(). Signal-safe.
bool may_have_been_interrupted();

}  // namespace karst::runtime
