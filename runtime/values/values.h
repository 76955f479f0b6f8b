// SPDX-License-Identifier: MIT
// Arguments and returned values of functions that karst chose (format/values.h): copied into a note by the hooks of
// arch/*/hooks.S. Which values, and where they are, stands in the arena at first, and is taken over into private
// memory before any code of the program has run: whoever could write to the arena later, like a forked child with fewer
// rights, would else choose what of the process's memory is copied to where they can read it (docs/security.md). What
// is wanted later karst writes into that private memory, by the kernel's leave (format/values.h).
#pragma once
#include <cstdint>

#include "format/arena.h"
#include "format/note.h"
#include "format/values.h"

namespace karst::runtime {

/// What is wanted of the function; null: nothing. Any context.
const format::ArenaValueSpec* value_spec(std::uint32_t function);

/// At start. `no_system_calls`: none may be made; then only what lies in registers is noted.
void prepare_values(bool no_system_calls);
/// At start, once karst has chosen and before any other code of the program runs.
void take_over_values();
/// Takes over what karst has added to karst_noted_values since. Any thread, outside of signal handlers and of the lock
/// of patching.
void apply_values();

/// They are numbers that lie in registers, or are constants.
bool are_numbers(const format::ValueOp* ops, std::uint32_t count);
/// As record_values_note(), of such values, kMostValues at most: without a buffer in memory.
void record_numbers_note(format::NoteKind kind, std::uint32_t name, const format::ValueOp* ops, std::uint32_t count,
                         const std::uint64_t* saved);
/// Records a note of the values that lie where `ops` say in `words`, which a hook has saved. `stack`: where the frame
/// of the function begins. Any context.
void record_values_note(format::NoteKind kind, std::uint32_t name, const format::ValueOp* ops, std::uint32_t count,
                        const std::uint64_t* words, std::uintptr_t stack, std::uint32_t most_text);

/// One value that `spec` says, as it stands in a note (format/values.h): its size byte, and its bytes to `to`, which
/// has room for kMostValueBytes. `vectors`: where vector registers are kept.
std::uint8_t read_value(const format::ArenaValueSpec& spec, std::uint32_t number, const std::uint64_t* words,
                        const unsigned char* vectors, std::uintptr_t stack, unsigned char* to);

extern "C" {
/// Called by the hooks, at an entry or a return. Async-signal-safe; takes no lock, uses 1 KiB of stack at most.
__attribute__((visibility("hidden"))) void karst_record_values(const format::SavedRegisters* saved);
/// The same with the event of the call behind the note, which has the same time. 0: the event is still to be recorded.
__attribute__((visibility("hidden"))) std::uint32_t karst_record_values_and_call(const format::SavedRegisters* saved);
}

}  // namespace karst::runtime
