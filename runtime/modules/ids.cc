// SPDX-License-Identifier: MIT
#include "runtime/modules/ids.h"

#include "format/note.h"
#include "format/trace.h"
#include "runtime/clock/clock.h"
#include "runtime/modules/modules.h"
#include "runtime/recording/arena.h"
#include "runtime/system/assertion.h"

namespace karst::runtime {

using namespace format;

namespace {

std::uint32_t g_generated;  // 1 + the index of the module that stands for generated code
std::uint32_t g_notes;      // the same of the one whose functions are names of notes
std::uint32_t g_fibers;     // and of the one for fibers' notes
WipedLock g_lock;

/// A module that no file has, made when its first function is entered; `place` is 1 + its index then. Null when there
/// is no room. Under the lock of ids.
template <std::uint32_t kSize>
const Module* made_up_module(std::uint32_t& place, const char (&name)[kSize]) {
  KARST_ASSERT(g_lock.is_held());
  if (place != 0) return &g_modules[place - 1];
  const std::uint32_t module = g_module_count;
  if (module == kArenaModules || !g_arena.reserve_modules(1)) return nullptr;
  Module& m = g_modules[module];
  m = Module{};
  m.loaded = 1;
  m.finstrument = true;
  m.chosen = true;  // it has no sleds; switches apply to its ids
  ArenaModule& entry = g_arena.modules()[module];
  entry = ArenaModule{};
  entry.loaded_ticks = event_time();
  entry.path_offset = g_arena.add_text(name, kSize - 1);
  entry.path_size = entry.path_offset == 0 ? 0 : kSize - 1;
  g_arena.set_module_count(module + 1);
  store(g_module_count, module + 1);
  store(place, module + 1);
  return &m;
}

/// Enters one function, which is chosen if new ones are. 0: there is no room. Under the lock of ids.
std::uint32_t add_function(const Module& m, std::uint64_t address, std::uint32_t flags) {
  if (!g_arena.reserve_functions(1)) return 0;
  const std::uint32_t id = g_arena.function_count() + 1;
  ArenaFunction& f = g_arena.functions()[id];
  f.address = address;
  f.module = index_of(m);
  f.flags = flags | (flags_of_new_functions() == 0 && (flags & kArenaFunctionAlways) == 0
                         ? 0
                         : kArenaFunctionOn | kArenaFunctionSwitchedOn);
  g_arena.set_function_count(id);
  g_arena.remember();
  return id;
}

}  // namespace

WipedLock& lock_of_ids() { return g_lock; }

std::uint32_t flags_of_new_functions() {
  return load(g_arena.control().new_functions) != 0 ? std::uint32_t{kArenaFunctionOn} : 0;
}

bool has_generated_code() { return load(g_generated) != 0; }

std::uint32_t enter_function(std::uintptr_t address, std::uint32_t known, bool is_generated, bool* is_new) {
  const Locked lock(g_lock);
  *is_new = false;
  const Module* m = is_generated ? made_up_module(g_generated, kGeneratedCode) : module_at(address);
  // Code made with both kinds of instrumentation is recorded by its sleds.
  if (m == nullptr || (!is_generated && m->functions.find(address) != FunctionTable::kNone)) return 0;
  // The module may have gone and come back since: then its functions have their ids still.
  const ArenaFunction& was = g_arena.functions()[known];
  if (known != 0 && was.module == index_of(*m) && was.address == address) return known;
  const std::uint32_t id = add_function(*m, address, 0);
  *is_new = id != 0;
  return id;
}

std::uint32_t enter_note_name(std::uint64_t text_address, bool of_fibers) {
  const Locked lock(g_lock);
  const Module* m = of_fibers ? made_up_module(g_fibers, kFibersModule) : made_up_module(g_notes, kNotesModule);
  return m != nullptr ? add_function(*m, text_address, kArenaFunctionNote | kArenaFunctionAlways) : 0;
}

}  // namespace karst::runtime
