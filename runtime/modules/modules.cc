// SPDX-License-Identifier: MIT
#include "runtime/modules/modules.h"

#include "runtime/clock/clock.h"
#include "runtime/modules/instrument.h"
#include "runtime/recording/arena.h"
#include "runtime/system/assertion.h"
#include "runtime/system/patch_lock.h"

namespace karst::runtime {

using namespace format;

// constinit: an initialiser that runs would run behind start(), and forget what that has found.
constinit Module g_modules[kArenaModules];
std::uint32_t g_module_count;

Module* module_at(std::uintptr_t address) {
  const std::uint32_t count = load(g_module_count);
  for (std::uint32_t i = 0; i < count; ++i) {
    Module& m = g_modules[i];
    if (address >= m.text_begin && address < m.text_end && load(m.loaded) == 1) return &m;
  }
  return nullptr;
}

Module* module_of(const ModuleImage& image) {
  for (std::uint32_t i = 0; i < g_module_count; ++i)
    if (Module& m = g_modules[i]; m.loaded == 1 && m.has_stubs == has_stubs(image) && is_at_place_of(m, image))
      return &m;
  return nullptr;
}

namespace {

FunctionAt function_in(const Module& m, std::uint32_t index) {
  const std::uint32_t alias = m.functions.alias(index);
  return {m.first_id + index, alias == FunctionTable::kNone ? 0 : m.first_id + alias, m.functions.address(index),
          m.functions.late(index)};
}

}  // namespace

FunctionAt function_at(std::uintptr_t address) {
  const std::uint32_t count = load(g_module_count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const Module& m = g_modules[i];
    if (load(m.loaded) != 1 || !m.has_trampolines || address < m.reach_begin || address >= m.reach_end) continue;
    const std::uint32_t index = m.functions.find(address);
    if (index != FunctionTable::kNone) return function_in(m, index);
  }
  return {};
}

FunctionAt function_of(std::uint32_t id) {
  const std::uint32_t count = load(g_module_count);
  for (std::uint32_t i = 0; i < count; ++i)
    if (const Module& m = g_modules[i]; id - m.first_id < m.functions.count()) return function_in(m, id - m.first_id);
  return {};
}

void module_is_gone(Module& m) {
  KARST_ASSERT(holds_patching());
  store(g_arena.modules()[index_of(m)].unloaded_ticks, event_time());
  store(m.loaded, 0U);
  m.chosen = false;
  m.patched_functions = 0;
  m.patched_sites = 0;
  for (std::uint32_t i = 0; i < m.functions.count(); ++i) m.functions.set_patched(i, false);
  if (m.finstrument) forget_instrument_calls(m.text_begin, m.text_end);
}

FunctionHere function_of_region(std::uintptr_t fde_start) {
  const Module* m = module_at(fde_start);
  if (m == nullptr) return {find_instrument_call(fde_start), false};  // generated code has ids as well
  const auto* const end = g_modules + load(g_module_count);
  for (const Module* part = m; part != end; ++part) {
    if (fde_start < part->text_begin || fde_start >= part->text_end || load(part->loaded) != 1) continue;
    const std::uint32_t index = part->functions.find(fde_start);
    if (index != FunctionTable::kNone) return {part->functions.patched(index) ? part->first_id + index : 0, false};
  }
  if (!m->finstrument || m->is_plain) return {0, false};
  return {find_instrument_call(fde_start), m->own_exits};
}

}  // namespace karst::runtime
