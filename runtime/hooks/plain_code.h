// Modules that have no sleds: karst finds where their functions can be patched, and gives a table of stubs
// (format/patch_table.h). The stubs lie near the module and have sleds in them, so the module is entered, switched and
// recorded as any other. Its own code is written to once, when nobody executes it: jumps to the stubs. At start the
// runtime does so; in a process that runs karst attach, which can stop all threads.
//
// Probes (hooks/probes.h) come the same way, also those of modules that have sleds: of such a table only the jumps are
// used.
//
// Nothing is decoded or guessed here: bytes are written where those that karst saw stand, and nowhere else.
#pragma once
#include <cstdint>

#include "format/patch_table.h"
#include "runtime/hooks/module_image.h"
#include "runtime/system/options.h"

namespace karst::runtime {

/// A table as it came, and where its stubs are.
struct PlainCode {
  const format::PatchTable* table = nullptr;
  const format::PatchProbe* probes = nullptr;
  const format::PatchSled* sleds = nullptr;
  const format::PatchJump* jumps = nullptr;
  const format::PatchFixup* fixups = nullptr;
  const format::PatchDetour* detours = nullptr;
  const unsigned char* code = nullptr;
  const char* text = nullptr;
  std::uint64_t size = 0;  ///< bytes that are mapped
  bool is_new = true;      ///< it may be patched: nobody executes the module's code

  std::uintptr_t stubs = 0;
  std::uint64_t stubs_size = 0;  ///< whole pages
};

struct WantedCode {
  bool program = false;    ///< patch its functions
  bool libraries = false;  ///< those of the libraries that the session wants
  bool probes = false;     ///< the probes of any module
  bool detours = false;    ///< of functions that the program has in itself
};
/// Before there is an arena: asks the session for tables. Functions of modules with sleds are passed over. Returns how
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

/// Writes the jumps of functions for which `is_wanted(context, number)` says so, where the bytes are those that karst
/// saw. Nobody executes the module's code meanwhile. Calls left_out(context, number) for every other function. False,
/// and nothing written, if the system does not let the code be changed.
bool write_jumps(const ModuleImage& image, const PlainCode& code, void* context,
                 bool (*is_wanted)(void* context, std::uint32_t function),
                 void (*left_out)(void* context, std::uint32_t function));

/// Writes the jumps of the probes and detours of modules that are new, and tells the program that somebody listens.
void begin_probes();
/// In a process that has an arena: asks `session` for detours of the program and maps their stubs, closed. Their jumps
/// are karst's to write (collect/inject/patch.h). Null; or why not, in words for people. Any thread.
const char* fetch_detours(const Options& session);
/// Where what the program's own function of this name was can be called; null: it has no detour, or the jumps of the
/// detours do not all stand. For libraries of interpose/, as they begin.
const void* find_detour(const char* name);
/// From now on calls of that function go to `to`. False, and nothing changed: it has no detour, or one that leads
/// elsewhere, or code may not be changed. Threads may be executing it.
bool open_detour(const char* name, const void* to);
/// Whatever was fetched up to now is new no more.
void end_of_new_code();

/// The same of functions whose jumps somebody else has written, in a process that runs (collect/inject/patch.h): calls
/// left_out(context, number) for every function that lacks one.
void check_jumps(const ModuleImage& image, const PlainCode& code, void* context,
                 void (*left_out)(void* context, std::uint32_t function));

}  // namespace karst::runtime
