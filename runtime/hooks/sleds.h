// The modules that are traced: found by their note, checked, entered into the arena's tables, patched; and told apart
// while they come and go.
//
// Each function has an id for as long as the process lives; ids of a module follow its functions' addresses. A function
// with tail calls has a second one, its alias (kArenaFunctionTailExit), for the exits in front of them. A module that
// is closed keeps its ids, and so its names: when the same file comes back to the same place they are taken up
// again; anywhere else it gets new ones.
//
// Code that a program makes while it runs lies in no module. One stands for all of it; its functions are those that
// call __cyg_profile_func_enter.
//
// Threads: what comes and goes does so one at a time, under the dynamic linker's lock. Looking up may be done by any
// thread at any time, also in signal handlers.
#pragma once
#include <cstdint>

namespace karst::runtime {

/// At start, before anything below. False when memory is short.
bool prepare_modules();

/// Modules with anything to trace among those loaded now. Reads the note alone; cheap.
std::uint32_t count_instrumented_modules();
/// The program itself is one.
bool program_has_sleds();

/// At start. Budgets leave on what was built for tracing; they are for the other functions.
void keep_functions_with_sleds();
/// At start. Enters all loaded modules with sleds and their functions into the arena. A module whose table is damaged
/// is left alone with a message. Returns how many modules can be patched.
std::uint32_t register_modules();

/// At start. Patches the sleds of the functions that are on in the arena, if tracing as a whole is. `alone`: no other
/// thread exists. False when the system does not allow it; then nothing is patched.
bool patch_modules(bool alone);

/// What a module that came later brought.
struct Arrived {
  std::uint32_t module;          ///< index in the arena
  std::uint32_t first_function;  ///< new ids; count 0: it has been here before, or has no tables
  std::uint32_t function_count;
};

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

/// Modules entered so far, those that have gone included.
std::uint32_t module_count();
/// Sleds of all modules entered so far.
std::uint64_t sled_count();

/// Code made with -finstrument-functions says of a function that was inlined into it where the function itself lies:
/// maybe in a library that is not traced (std::string's members in libstdc++). Enters that module, so that it has a
/// name. False: it is none, or has code of its own to trace. Signals are blocked, and the dynamic linker may be asked.
bool enter_plain_module(std::uintptr_t function);
/// True if the address lies in the code of a module that has been entered and is there.
bool lies_in_entered_module(std::uintptr_t address);
/// A function id for code that calls __cyg_profile_func_enter: entered into the arena as `address` of the module that
/// it lies in, or with `is_generated` of the one that stands for code outside of all (format/trace.h); `known` is an id
/// that it had before, or 0. 0 when the address lies in no entered module, or there is no room. `*is_new`: the session
/// has not seen this id. Takes a lock; blocks signals.
std::uint32_t enter_function(std::uintptr_t address, std::uint32_t known, bool is_generated, bool* is_new);
/// A function id for a name of notes, whose text lies there (format/note.h); 0: there is no room. Takes a lock; blocks
/// signals.
std::uint32_t enter_note_name(std::uint64_t text_address, bool of_fibers);

struct FunctionHere {
  std::uint32_t id;  ///< 0: there is none
  bool own_exit;     ///< code of -finstrument-functions: see function_of_region()
};

/// The traced function, if any, whose code, or whose part in another section, begins at `fde_start`, as a frame
/// description entry has it. 0 when it is switched off, or its module is not patched.
/// `own_exit`: compiled with -finstrument-functions. gcc's code then records the exit itself when an exception passes
/// through, in a cleanup of its own, unless it has none (no language-specific data: C without -fexceptions); clang's
/// records none, and own_exit is false if the module was linked as clang's (KARST_NOTE_NO_CLEANUPS).
/// Async-signal-safe, lock-free.
FunctionHere function_of_region(std::uintptr_t fde_start);

}  // namespace karst::runtime
