// SPDX-License-Identifier: MIT
// Functions that have no sleds, of modules with or without: karst finds where their functions can be patched, and gives
// a table of stubs (format/patch_table.h). The stubs lie near the module and have sleds in them, so the module is
// entered, switched and recorded as any other. Its own code is written to once, when nobody executes it: jumps to the
// stubs. At start the runtime does so; in a process that runs karst attach, which can stop all threads.
//
// Probes (unbuilt/probes.h) come the same way, also those of modules that have sleds: of such a table only the jumps
// are used.
//
// Nothing is decoded or guessed here: bytes are written where those that karst saw stand, and nowhere else.
#pragma once
#include <cstdint>

#include "runtime/unbuilt/patch_tables.h"

namespace karst::runtime {

struct WantedCode {
  bool program = false;    ///< patch its functions
  bool libraries = false;  ///< those of the libraries that the session wants
  bool probes = false;     ///< the probes of any module
  bool detours = false;    ///< of functions that the program has in itself
};
/// Before there is an arena: asks the session for tables. Those with sleds are not in them. Returns how
/// many tables there are.
std::uint32_t fetch_plain_code(const WantedCode& wanted);

/// Under the dynamic linker's lock, in a process that has an arena: asks for the tables of modules that have come
/// since, as fetch_plain_code() did. Returns how many there are.
std::uint32_t fetch_late_code(const WantedCode& wanted);
/// Calls visit(ModuleImage&) for modules with stubs that have gone since the last time.
void for_each_gone_code(void (*visit)(const ModuleImage& image));

/// Maps the stubs of all tables, ready to be executed. A module whose stubs find no memory near it is left out, with a
/// message.
void map_plain_code();
/// Calls visit(ModuleImage&, PlainCode&) for each module that is there and whose functions have stubs.
void for_each_plain_code(void (*visit)(ModuleImage& image, PlainCode& code));

/// Writes the jumps of the probes and detours of modules that are new, and tells the program that somebody listens.
void begin_probes();
/// The program is among them.
bool has_code_of_program();
/// Whatever was fetched up to now is new no more.
void end_of_new_code();

}  // namespace karst::runtime
