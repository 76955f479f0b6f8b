// SPDX-License-Identifier: MIT
// Modules as they come and go: found by their note, entered (modules/enter.h), chosen and patched.
//
// Threads: what comes and goes does so one at a time, under the dynamic linker's lock. Looking up may be done by any
// thread at any time, also in signal handlers.
#pragma once
#include <cstdint>

#include "runtime/modules/enter.h"

namespace karst::runtime {

/// At start, before anything below. False when memory is short.
bool prepare_modules();

/// Modules with anything to trace among those loaded now. Reads the note alone; cheap.
std::uint32_t count_instrumented_modules();
/// The program itself is one.
bool program_has_sleds();

/// At start. Enters all loaded modules with sleds and their functions into the arena. A module whose table is damaged
/// is left alone with a message. Returns how many modules can be patched.
std::uint32_t register_modules();

/// At start. Patches the sleds of the functions that are on in the arena, if tracing as a whole is. `alone`: no other
/// thread exists. False when the system does not allow it; then nothing is patched.
bool patch_modules(bool alone);

/// The module in whose memory `note` lies has come, and none of its code has run. Enters it. False if there is nothing
/// (more) to do for it, be it that it is known, or was refused with a message.
bool enter_module(std::uintptr_t note, Arrived& arrived);
/// True if `note` lies in the program itself, not in a library.
bool is_program(std::uintptr_t note);
/// The functions of an entered module are chosen: patches it, if tracing as a whole is on. When the system does not
/// allow it, says so.
void patch_module(std::uint32_t module);
/// The module is about to go.
void leave_module(std::uintptr_t note);
/// Modules without sleds have come, and their tables (fetch_late_code); none of their code has run. Enters them, calls
/// arrived() for each that has new functions, so that these are chosen, and patches them.
void enter_late_code(void (*arrived)(const Arrived& arrived));
/// Forgets those that have gone.
void leave_gone_code();

}  // namespace karst::runtime
