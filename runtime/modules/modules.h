// SPDX-License-Identifier: MIT
// The modules that have been entered: their functions, ids and trampolines, and what of them is patched. enter.h adds
// to them, patching changes them.
//
// Threads: what comes and goes does so one at a time, under the dynamic linker's lock. Looking up may be done by any
// thread at any time, also in signal handlers.
#pragma once
#include <cstdint>

#include "format/arena.h"
#include "runtime/modules/function_table.h"
#include "runtime/modules/hooks.h"
#include "runtime/recording/mode.h"
#include "runtime/system/memory.h"

namespace karst::runtime {

/// An entered module; its place among g_modules is its index in the arena.
struct Module {
  std::uintptr_t text_begin = 0;
  std::uintptr_t text_end = 0;
  std::uintptr_t reach_begin = 0;  ///< where its sleds are: its code, or that and its stubs (unbuilt/plain_code.h)
  std::uintptr_t reach_end = 0;
  std::uint64_t bias = 0;
  std::uint32_t loaded = 0;  ///< 1 while it is there
  bool finstrument = false;
  bool own_exits = false;
  bool is_plain = false;   ///< its functions are traced where others have inlined them: its own code is not
  bool has_stubs = false;  ///< it is the part of a module that was not built for tracing (unbuilt/plain_code.h)
  bool has_trampolines = false;
  std::uint32_t first_id = 0;
  FunctionTable functions{};
  Trampolines trampolines{};

  // Under the lock of patching.
  bool chosen = false;  ///< its functions are chosen, and its sleds are as is wanted: switches apply to it
  std::uint32_t patched_functions = 0;
  std::uint64_t patched_sites = 0;
  SledTables tables{};  ///< valid while it is chosen
};

extern Module g_modules[format::kArenaModules];
extern std::uint32_t g_module_count;

inline std::uint32_t index_of(const Module& m) { return static_cast<std::uint32_t>(&m - g_modules); }
/// Modules entered so far, those that have gone included.
inline std::uint32_t module_count() { return load(g_module_count); }

/// The one that is there and whose code the address lies in; null: none.
Module* module_at(std::uintptr_t address);
inline bool is_at_place_of(const Module& m, const ModuleImage& image) {
  return m.text_begin == image.text_begin && m.text_end == image.text_end;
}
inline bool has_stubs(const ModuleImage& image) { return image.plain_count != 0; }
/// The one that is there. A module that was built for tracing in part is two: that part, and the other one, which has
/// stubs.
Module* module_of(const ModuleImage& image);

/// Ids of its tables, aliases among them.
inline std::uint32_t id_count(const Module& m) { return m.functions.count() + m.functions.alias_count(); }

/// A function that is traced by sleds. By what is in private memory alone.
struct FunctionAt {
  std::uint32_t id = 0;     ///< 0: there is none
  std::uint32_t alias = 0;  ///< the first of its ids for tail calls (FunctionTable::alias()); 0: it makes none
  std::uintptr_t address = 0;
  bool late = false;  ///< FunctionTable::late()
};
/// That begins there.
FunctionAt function_at(std::uintptr_t address);
FunctionAt function_of(std::uint32_t id);

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

/// True for sleds that get calls: under `karst run --count` entries alone.
inline bool is_used(const SledPlace& place) {
  return place.kind == format::SledKind::kEntry || (place.kind != format::SledKind::kCold && !is_counting());
}

/// Where a sled of the function shall call.
inline std::uintptr_t trampoline_of(const Module& m, const SledPlace& place, std::uint32_t index) {
  if (place.kind == format::SledKind::kEntry) return m.trampolines.enter(index);
  const std::uint32_t alias = format::is_tail_call(place.kind) ? m.functions.alias(index) : FunctionTable::kNone;
  if (alias == FunctionTable::kNone) return m.trampolines.exit(index);
  if (arch::is_conditional(reinterpret_cast<const unsigned char*>(place.address), place.sled))
    return m.trampolines.conditional_exit(alias);
  return place.kind == format::SledKind::kRegisterTailCall ? m.trampolines.tail_call(alias + 1)
                                                           : m.trampolines.exit(alias);
}

/// The module has gone. Under the lock of patching.
void module_is_gone(Module& module);

}  // namespace karst::runtime
