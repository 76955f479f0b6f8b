// SPDX-License-Identifier: MIT
// What the maintenance process asks of the folders above it (see recording/seams.h): what is wanted
// (format/control.h), made true of the code. (patching/live_patch.cc)
#pragma once
#include "format/control.h"

namespace karst::runtime {

/// At start, while there is one thread: asks the kernel once for what telling all processors needs. Later, when it is
/// needed first, that may take as long as a slow processor takes (100 ms were seen). No lock.
void prepare_live_patch();

/// Makes code and log equal to what is wanted (enabled, and kArenaFunctionOn and not kArenaFunctionCulled in each
/// function's flags): who changes any of these calls it afterwards. Any thread outside of signal handlers, the
/// maintenance process's tasks among them; takes the lock of patching. kRefused: the system does not let the code be
/// changed, and all is as it was.
format::ControlOutcome apply_switches(format::SwitchReason reason);

/// In a forked child: the fork came while code was being changed. No lock.
bool was_forked_in_change();

// Both under the lock of patching (system/patch_lock.h).

/// In a forked child: makes code and switches equal, and code whole if it was being changed at that moment.
void mend_after_fork();
/// Numbers of what is patched now, into the control page.
void note_patched();

}  // namespace karst::runtime
