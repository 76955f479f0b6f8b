// SPDX-License-Identifier: MIT
// Modules come and go: each is entered, and is patched when its functions are chosen.
#include "runtime/entering/sleds.h"

#include <sys/mman.h>

#include "runtime/modules/hooks.h"
#include "runtime/modules/module_image.h"
#include "runtime/modules/modules.h"
#include "runtime/patching/live_patch.h"
#include "runtime/patching/watch_sleds.h"
#include "runtime/recording/arena.h"
#include "runtime/recording/mode.h"
#include "runtime/recording/seams.h"
#include "runtime/system/assertion.h"
#include "runtime/system/memory.h"
#include "runtime/system/message.h"
#include "runtime/system/patch_lock.h"
#include "runtime/unbuilt/plain_code.h"
#include "runtime/unbuilt/plain_jumps.h"
#include "runtime/values/values.h"
#include "runtime/watching/watch.h"

namespace karst::runtime {

using namespace format;

namespace {

bool g_said_unpatchable;

void leave(Module& m) {
  const Patching lock;
  module_is_gone(m);
  note_patched();
}

/// True if the module that we know at the image's place is the one that is there now: its sleds are as we left them.
bool is_still_here(const ModuleImage& image, const Module& m) {
  if (!is_at_place_of(m, image)) return false;
  bool same = true;
  bool seen = false;
  std::uint64_t sleds = 0;
  m.functions.for_each_sled(image, [&](const SledPlace& p, std::uint32_t index) {
    sleds += p.kind != SledKind::kCold;
    if (seen || !is_used(p) || index >= m.functions.count() || !m.functions.patched(index)) return;
    seen = true;
    same = !arch::is_sled(reinterpret_cast<const unsigned char*>(p.address), p.sled);
  });
  return same && sleds == m.functions.sleds();
}

/// A module that has no sleds of its own: they are in its stubs, and those alone are changed later.
void begin_plain_switches(ModuleImage& image, PlainCode& code) {
  Module* m = module_of(image);
  if (m == nullptr) return;
  SledTables tables = image;
  tables.segments[0] = {code.stubs, code.stubs + code.stubs_size, PROT_READ | PROT_EXEC};
  tables.segment_count = 1;
  begin_switches(*m, tables);
}

bool g_jumps_refused;

void leave_as_it_is(void* context, std::uint32_t function) {
  auto& module = *static_cast<Module*>(context);
  module.functions.set_fixed(module.functions.index_of_entry(function));
}

/// Functions that are off when the program starts keep their code as it is.
void write_plain_jumps(ModuleImage& image, PlainCode& code) {
  Module* m = module_of(image);
  if (m == nullptr || !m->chosen || g_jumps_refused) return;
  const auto wanted = [](void* context, std::uint32_t function) {
    const auto& module = *static_cast<const Module*>(context);
    const std::uint32_t id = module.first_id + module.functions.index_of_entry(function);
    return (load(g_arena.functions()[id].flags) & kArenaFunctionOn) != 0;
  };
  g_jumps_refused = !write_jumps(image, code, m, wanted, leave_as_it_is);
}

void check_plain_jumps(ModuleImage& image, PlainCode& code) {
  if (Module* m = module_of(image)) check_jumps(image, code, m, leave_as_it_is);
}

/// Modules of which we did not learn that they have gone, though another one has their place.
void forget_replaced(const ModuleImage& image) {
  for (std::uint32_t i = 0; i < g_module_count; ++i) {
    Module& m = g_modules[i];
    if (m.has_stubs != has_stubs(image) && is_at_place_of(m, image)) continue;  // the other part tells when it comes
    if (m.loaded == 1 && m.text_begin < image.text_end && image.text_begin < m.text_end && !is_still_here(image, m))
      leave(m);
  }
}

}  // namespace

bool prepare_modules() {
  start_switches();
  return prepare_entering() && prepare_patch_lock();
}

std::uint32_t count_instrumented_modules() {
  std::uint32_t count = 0;
  for_each_image([&count](const ModuleImage&) { ++count; });
  return count;
}

bool program_has_sleds() {
  bool has = false;
  for_each_image([&has](const ModuleImage& image) { has = has || *image.path == '\0'; });
  return has;
}

std::uint32_t register_modules() {
  for_each_image([](const ModuleImage& image) {
    Arrived arrived{};
    if (module_of(image) == nullptr) enter(image, arrived, Look::kAtMapping);
  });
  map_plain_code();
  for_each_plain_code([](ModuleImage& image, PlainCode&) {
    Arrived arrived{};
    enter(image, arrived, Look::kAtMapping);
  });
  return g_module_count;
}

namespace {

/// Threads run: sleds go on one by one, and all begin to record at once.
bool patch_before_recording() {
  hold_hooks(HeldHooks::kAll);
  choose_hooks();
  const bool done = patch_used();
  hold_hooks(HeldHooks::kEnters);
  choose_hooks();
  hold_hooks(HeldHooks::kNone);
  choose_hooks();
  return done;
}

}  // namespace

bool patch_modules(bool alone) {
  apply_watches();
  const Patching lock;
  for_each_image([](const ModuleImage& image) {
    if (Module* m = module_of(image)) begin_switches(*m, image);
  });
  for_each_plain_code(begin_plain_switches);
  bool done = true;
  if (!alone) {
    for_each_plain_code(check_plain_jumps);
    done = patch_before_recording();
  } else if (is_switched_on()) {
    // All of it is asked for before any of the program is touched.
    for (std::uint32_t i = 0; i < g_module_count; ++i) done = done && make_trampolines(g_modules[i]);
    if (!done) return end_of_new_code(), false;
    // Where karst attach has brought us, the program has run before.
    for (std::uint32_t i = 0; i < g_module_count; ++i) done = done && patch_unused(g_modules[i], false);
    if (!done) set_hooks(karst_hook_discard, karst_hook_discard);  // modules before the one that could not are patched
  }
  if (done && alone) for_each_plain_code(write_plain_jumps);
  done = done && !g_jumps_refused;
  if (done && alone) begin_probes();
  end_of_new_code();
  note_patched();
  return done;
}

bool enter_module(std::uintptr_t note, Arrived& arrived) {
  ModuleImage image;
  if (!find_image(note, image)) return false;
  forget_replaced(image);
  return module_of(image) == nullptr && enter(image, arrived, Look::kAtPath) != nullptr;
}

bool is_program(std::uintptr_t note) {
  ModuleImage image;
  return find_image(note, image) && *image.path == '\0';
}

void patch_module(std::uint32_t module) {
  apply_watches();
  apply_values();
  Module& m = g_modules[module];
  ModuleImage image;
  {
    const Patching lock;
    if (find_image(m.text_begin, image)) {
      begin_switches(m, image);
      if (patch_unused(m, true)) return note_patched();
    }
  }
  if (g_said_unpatchable) return;
  g_said_unpatchable = true;
  Message().text(image.name()).text(" is not traced: ").text(why_not_patched());
}

namespace {

/// Begins with a module whose code nobody executes yet.
void begin_late_code(ModuleImage& image, PlainCode& code) {
  Module* m = module_of(image);
  if (m == nullptr || !code.is_new) return;
  begin_plain_switches(image, code);
  if (!is_switched_on() || !make_trampolines(*m) || !patch_unused(*m, true)) return;
  write_plain_jumps(image, code);
}

}  // namespace

void enter_late_code(void (*arrived)(const Arrived& arrived)) {
  static void (*s_arrived)(const Arrived& arrived);  // for the visitor
  s_arrived = arrived;
  map_plain_code();
  for_each_plain_code([](ModuleImage& image, PlainCode&) {
    Arrived came{};
    if (module_of(image) != nullptr) return;
    forget_replaced(image);
    if (enter(image, came, Look::kAtMapping) != nullptr) s_arrived(came);
  });
  apply_watches();
  apply_values();
  const Patching lock;
  for_each_plain_code(begin_late_code);
  begin_probes();
  end_of_new_code();
  note_patched();
}

void leave_gone_code() {
  for_each_gone_code([](const ModuleImage& image) {
    if (Module* m = module_of(image)) leave(*m);
  });
}

void leave_module(std::uintptr_t note) {
  ModuleImage image;
  if (!find_image(note, image)) return;
  if (Module* m = module_of(image)) leave(*m);
}

}  // namespace karst::runtime
