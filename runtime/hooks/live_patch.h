// Changing code that threads are executing: what is wanted (format/control.h) against what the sleds are.
//
// The way: all code that has anything to change is made writable, and stays executable; three passes over its sleds
// (arch.h), behind each of which every processor is told (membarrier); its protection is as before. No thread is
// stopped, and there is no instruction that traps: a thread with SIGTRAP blocked would be killed by that. Who holds the
// lock of patching may change code, nobody else.
//
// A change is written to the log of switches before its first byte and completed after its last.
#pragma once
#include <cstdint>

#include "format/control.h"
#include "runtime/hooks/modules.h"

namespace karst::runtime {

/// At start, while there is one thread: asks the kernel once for what telling all processors needs. Later, when it is
/// needed first, that may take as long as a slow processor takes (100 ms were seen). No lock.
void prepare_live_patch();

// All of these under the lock of patching (system/patch_lock.h), unless they say otherwise.

/// At start: tracing is on as a whole or off, as the control page says.
void start_switches();

/// The functions of the module are chosen: what is wanted of them now is how they begin, and is not a change to be
/// logged. `tables` are the module's. Its sleds are not patched yet.
void begin_switches(Module& module, const SledTables& tables);

/// Makes the sleds of the module what begin_switches() found, none of its code being executed. False if the system does
/// not allow it.
bool patch_unused(Module& module);
/// The same for all modules, and for code that threads may be executing.
bool patch_used();

/// Tracing as a whole, and a function's own switch, as they were last applied. Lock-free.
bool is_switched_on();
bool is_switched_on(std::uint32_t id);

/// In a forked child: makes code and switches equal, and code whole if it was being changed at that moment.
void mend_after_fork();
/// That was the case. No lock.
bool was_forked_in_change();

/// Numbers of what is patched now, into the control page.
void note_patched();

}  // namespace karst::runtime
