// What is traced now: what is wanted (format/control.h), made true of the code by hooks/live_patch.cc.
#pragma once
#include <cstdint>

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

/// A function that was not built for tracing: its sleds lie in stubs, through which its calls go also while it is off.
bool has_stub(std::uint32_t function);
/// There are such functions.
bool have_stubs();
/// One of them that can get its own code back: the program's. The maintenance process, as all that follow.
bool can_give_code_back(std::uint32_t function);
/// Such functions that are off get it, as far as that can be while threads run. They are off for good then, as a jump
/// cannot be put where a thread may stand. Takes the lock of patching.
void give_code_back(const std::uint32_t* functions, std::uint32_t count);
bool is_given_back(std::uint32_t function);

/// Tracing as a whole, and a function's own switch, as they were last applied. Lock-free.
bool is_switched_on();
bool is_switched_on(std::uint32_t id);

/// In a forked child: the fork came while code was being changed. No lock.
bool was_forked_in_change();

// All of these under the lock of patching (system/patch_lock.h).

/// At start: tracing is on as a whole or off, as the control page says.
void start_switches();
/// In a forked child: makes code and switches equal, and code whole if it was being changed at that moment.
void mend_after_fork();
/// Numbers of what is patched now, into the control page.
void note_patched();

}  // namespace karst::runtime
