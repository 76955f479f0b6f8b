// SPDX-License-Identifier: MIT
// Gives functions of a program that was not built for tracing their own code back. Of the program alone: a library may
// be unmapped meanwhile, and nothing of ours keeps it there.
#include "runtime/patching/code_back.h"

#include <sys/mman.h>

#include "runtime/maintenance/seams.h"
#include "runtime/modules/modules.h"
#include "runtime/recording/arena.h"
#include "runtime/system/assertion.h"
#include "runtime/system/patch_lock.h"
#include "runtime/unbuilt/plain_code.h"
#include "runtime/unbuilt/plain_jumps.h"

namespace karst::runtime {

using namespace format;

namespace {

/// What is asked for. Under the lock of patching.
struct Work {
  const std::uint32_t* functions;
  std::uint32_t count;
  std::uint32_t done;
  Module* module;
} g_work;

/// The program's code can be read.
bool is_program(const ModuleImage& image) {
  bool readable = true;
  for (std::uint32_t i = 0; i < image.segment_count; ++i)
    readable = readable && (image.segments[i].protection & PROT_READ) != 0;
  return *image.path == '\0' && readable;
}

/// Null: it is not the program, or not traced.
Module* program_of(const ModuleImage& image) {
  if (!is_program(image)) return nullptr;
  for (std::uint32_t i = 0; i < load(g_module_count); ++i)
    if (Module& m = g_modules[i]; load(m.loaded) == 1 && m.chosen && m.has_stubs && m.text_begin == image.text_begin)
      return &m;
  return nullptr;
}

const Module* g_program;  // of the last search

/// The program, if its functions have stubs.
const Module* program_with_stubs() {
  g_program = nullptr;
  for_each_plain_code([](ModuleImage& image, PlainCode&) {
    if (const Module* m = program_of(image)) g_program = m;
  });
  return g_program;
}

/// The number among the module's entries of the next function that is to have its code back. It is off for good then.
std::uint32_t next_function(void* context) {
  auto& w = *static_cast<Work*>(context);
  while (w.done < w.count) {
    FunctionTable& functions = w.module->functions;
    const std::uint32_t index = w.functions[w.done++] - w.module->first_id;
    if (index >= functions.count() || functions.patched(index) || functions.fixed(index)) continue;
    functions.set_given_back(index, true);
    return functions.entry_of(index);
  }
  return FunctionTable::kNone;
}

void give_back(ModuleImage& image, PlainCode& code) {
  g_work.done = 0;
  g_work.module = program_of(image);
  if (g_work.module != nullptr) remove_jumps(image, code, &g_work, next_function);
}

/// The budget keeps this id out no more.
void bring_back(std::uint32_t id) {
  __atomic_fetch_and(&g_arena.functions()[id].flags, ~static_cast<std::uint32_t>(kArenaFunctionCulled),
                     __ATOMIC_ACQ_REL);
}

void look_again(ModuleImage& image, PlainCode& code) {
  Module* m = program_of(image);
  for (std::uint32_t i = 0; m != nullptr && i < m->functions.count(); ++i) {
    if (!m->functions.given_back(i) || !jumps_stand(image, code, m->functions.entry_of(i))) continue;
    m->functions.set_given_back(i, false);
    bring_back(m->first_id + i);
    if (const std::uint32_t alias = m->functions.alias(i); alias != FunctionTable::kNone)
      for (std::uint32_t n = 0; n < FunctionTable::kAliases; ++n) bring_back(m->first_id + alias + n);
  }
}

}  // namespace

void find_code_taken_again() {
  KARST_ASSERT(holds_patching());
  for_each_plain_code(look_again);
}

void give_code_back(const std::uint32_t* functions, std::uint32_t count) {
  const Patching lock;
  g_work.functions = functions;
  g_work.count = count;
  for_each_plain_code(give_back);
  note_patched();
}

bool has_stub(std::uint32_t function) {
  const std::uint32_t module =
      function <= g_arena.function_count() ? g_arena.functions()[function].module : kArenaModules;
  return module < load(g_module_count) && g_modules[module].chosen && g_modules[module].has_stubs;
}

bool can_give_code_back(std::uint32_t function) {
  const Module* m = program_with_stubs();
  return m != nullptr && function - m->first_id < m->functions.count();
}

bool is_given_back(std::uint32_t function) {
  if (!has_stub(function)) return false;
  const Module& m = g_modules[g_arena.functions()[function].module];
  const std::uint32_t index = function - m.first_id;
  return index < m.functions.count() && m.functions.given_back(index);
}

bool have_stubs() {
  for (std::uint32_t i = 0; i < load(g_module_count); ++i)
    if (g_modules[i].chosen && g_modules[i].has_stubs) return true;
  return false;
}

}  // namespace karst::runtime
