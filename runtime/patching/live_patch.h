// SPDX-License-Identifier: MIT
// Changing code that threads are executing: what is wanted (format/control.h) against what the sleds are.
//
// The way: all code that has anything to change is made writable, and stays executable; three passes over its sleds
// (arch.h), behind each of which every processor is told (membarrier); its protection is as before. No thread is
// stopped, and there is no instruction that traps: a thread with SIGTRAP blocked would be killed by that. Who holds the
// lock of patching may change code, nobody else.
//
// A change is written to the log of switches before its first byte and completed after its last.
#pragma once
#include "runtime/maintenance/seams.h"
#include "runtime/modules/modules.h"

namespace karst::runtime {

// All of these under the lock of patching (system/patch_lock.h). What is asked for from below is in
// maintenance/seams.h.

/// At start: tracing is on as a whole or off, as the control page says.
void start_switches();
/// The functions of the module are chosen: what is wanted of them now is how they begin, and is not a change to be
/// logged. `tables` are the module's. Its sleds are not patched yet.
void begin_switches(Module& module, const SledTables& tables);

/// Makes the sleds of the module what begin_switches() found, none of its code being executed. `is_new`: nobody has run
/// it, so the program has not made any of it writable itself. False if the system does not allow it.
bool patch_unused(Module& module, bool is_new);
/// Why patch_unused() returned false the last time, as a phrase behind "NAME is not traced: ".
const char* why_not_patched();
/// patch_unused() for all modules, and for code that threads may be executing.
bool patch_used();

}  // namespace karst::runtime
