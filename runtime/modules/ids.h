// SPDX-License-Identifier: MIT
// Function ids, beside those that a module's sleds get as it is entered (enter.h): of functions that call
// __cyg_profile_func_enter, and of names of notes.
//
// Code that a program makes while it runs lies in no module. One stands for all of it; its functions are those that
// call __cyg_profile_func_enter. Others stand for all names of notes, and for functions that have a name and no code.
#pragma once
#include <cstdint>

#include "runtime/system/lock.h"

namespace karst::runtime {

/// Of the arena's function ids, which any thread may take.
WipedLock& lock_of_ids();
/// What new functions begin with (format/arena.h).
std::uint32_t flags_of_new_functions();
/// Code in no module has been seen.
bool has_generated_code();

/// A function id for code that calls __cyg_profile_func_enter: entered into the arena as `address` of the module that
/// it lies in, or with `is_generated` of the one that stands for code outside of all (format/trace.h); `known` is an id
/// that it had before, or 0. 0 when the address lies in no entered module, or there is no room. `*is_new`: the session
/// has not seen this id. Takes a lock; blocks signals.
std::uint32_t enter_function(std::uintptr_t address, std::uint32_t known, bool is_generated, bool* is_new);
/// Modules that no file has.
enum class MadeUp : std::uint8_t { kGenerated, kNotes, kFibers, kNamed, kPython };
/// Enters the module before its first function, so that it is seen that there will be some.
void announce(MadeUp module);
/// A function id of such a module for a name whose text lies there (format/note.h); 0: there is no room. Takes a lock;
/// blocks signals.
std::uint32_t enter_text(MadeUp module, std::uint64_t text_address);

}  // namespace karst::runtime
