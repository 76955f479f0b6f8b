// SPDX-License-Identifier: MIT
#include "runtime/modules/ids.h"

#include "format/note.h"
#include "format/trace.h"
#include "runtime/clock/clock.h"
#include "runtime/modules/modules.h"
#include "runtime/recording/arena.h"
#include "runtime/system/assertion.h"
#include "runtime/system/memory.h"

namespace karst::runtime {

using namespace format;

namespace {

constexpr const char* kPaths[] = {kGeneratedCode, kNotesModule, kFibersModule, kNamedModule, kPythonModule};
constexpr auto kMadeUpModules = static_cast<std::uint32_t>(sizeof kPaths / sizeof kPaths[0]);
std::uint32_t g_made_up[kMadeUpModules];  // 1 + the index of each that there is
WipedLock g_lock;

/// It is made when its first function is entered. Null when there is no room. Under the lock of ids.
const Module* made_up_module(MadeUp which) {
  KARST_ASSERT(g_lock.is_held());
  std::uint32_t& place = g_made_up[static_cast<std::uint32_t>(which)];
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
  const char* const path = kPaths[static_cast<std::uint32_t>(which)];
  const auto size = static_cast<std::uint32_t>(length(path));
  entry.path_offset = g_arena.add_text(path, size);
  entry.path_size = entry.path_offset == 0 ? 0 : size;
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

bool has_generated_code() { return load(g_made_up[static_cast<std::uint32_t>(MadeUp::kGenerated)]) != 0; }

std::uint32_t enter_function(std::uintptr_t address, std::uint32_t known, bool is_generated, bool* is_new) {
  const Locked lock(g_lock);
  *is_new = false;
  const Module* m = is_generated ? made_up_module(MadeUp::kGenerated) : module_at(address);
  // Code made with both kinds of instrumentation is recorded by its sleds.
  if (m == nullptr || (!is_generated && m->functions.find(address) != FunctionTable::kNone)) return 0;
  // The module may have gone and come back since: then its functions have their ids still.
  const ArenaFunction& was = g_arena.functions()[known];
  if (known != 0 && was.module == index_of(*m) && was.address == address) return known;
  const std::uint32_t id = add_function(*m, address, 0);
  *is_new = id != 0;
  return id;
}

void announce(MadeUp module) {
  const Locked lock(g_lock);
  made_up_module(module);
}

std::uint32_t enter_text(MadeUp module, std::uint64_t text_address) {
  const Locked lock(g_lock);
  const bool is_note = module == MadeUp::kNotes || module == MadeUp::kFibers;
  const Module* m = made_up_module(module);
  return m != nullptr ? add_function(*m, text_address, is_note ? kArenaFunctionNote | kArenaFunctionAlways : 0U) : 0;
}

}  // namespace karst::runtime
