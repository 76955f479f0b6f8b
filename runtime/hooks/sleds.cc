// Modules come and go: each is checked, gets ids for its functions, is entered into the arena's tables, and is patched
// when its functions are chosen. What is refused is left alone, with one message.
#include "runtime/hooks/sleds.h"

#include <sys/mman.h>

#include "format/note.h"
#include "format/trace.h"
#include "runtime/clock/clock.h"
#include "runtime/hooks/file_identity.h"
#include "runtime/hooks/function_names.h"
#include "runtime/hooks/function_table.h"
#include "runtime/hooks/hooks.h"
#include "runtime/hooks/instrument.h"
#include "runtime/hooks/live_patch.h"
#include "runtime/hooks/module_image.h"
#include "runtime/hooks/modules.h"
#include "runtime/hooks/plain_code.h"
#include "runtime/hooks/plain_jumps.h"
#include "runtime/hooks/values.h"
#include "runtime/hooks/watch_sleds.h"
#include "runtime/recording/arena.h"
#include "runtime/recording/thread.h"
#include "runtime/system/assertion.h"
#include "runtime/system/lock.h"
#include "runtime/system/memory.h"
#include "runtime/system/message.h"
#include "runtime/system/own_program.h"
#include "runtime/system/patch_lock.h"
#include "runtime/system/syscalls.h"
#include "runtime/watching/watch.h"

namespace karst::runtime {

using namespace format;

// constinit: an initialiser that runs would run behind start(), and forget what that has found.
constinit Module g_modules[kArenaModules];
std::uint32_t g_module_count;

namespace {

std::uint64_t g_sleds;
std::uint32_t g_generated;  // 1 + the index of the module that stands for generated code
std::uint32_t g_notes;      // the same of the one whose functions are names of notes
std::uint32_t g_fibers;     // and of the one for fibers' notes
WipedLock g_lock;           // of the arena's function ids, which any thread may take
WipedLock g_entering;       // modules of which inlined functions are

// Hashes of the paths of modules of which something was said, which is done once however often one comes back.
constexpr std::uint32_t kMostSaid = 64;
std::uint64_t g_said[kMostSaid];
std::uint32_t g_said_count;
bool g_said_unpatchable;
bool g_keeps_functions_with_sleds;

std::uint64_t now() { return event_time(); }

Module* module_at(std::uintptr_t address) {
  const std::uint32_t count = load(g_module_count);
  for (std::uint32_t i = 0; i < count; ++i) {
    Module& m = g_modules[i];
    if (address >= m.text_begin && address < m.text_end && load(m.loaded) == 1) return &m;
  }
  return nullptr;
}

bool has_stubs(const ModuleImage& image) { return image.plain_count != 0; }

std::uint32_t index_of(const Module& m) { return static_cast<std::uint32_t>(&m - g_modules); }

const char* shown_path(const char* path, char (&buffer)[4096], std::uint32_t& size) {
  if (*path != '\0') {
    size = static_cast<std::uint32_t>(length(path));
    return path;
  }
  size = static_cast<std::uint32_t>(own_program(buffer, sizeof buffer));
  return buffer;
}

/// Of one kind of message.
bool is_first_said_of(const char* path, std::uint32_t path_size, unsigned char kind = 0) {
  std::uint64_t hash = 0xcbf29ce484222325U ^ kind;  // FNV-1a
  for (std::uint32_t i = 0; i < path_size; ++i) hash = (hash ^ static_cast<unsigned char>(path[i])) * 0x100000001b3U;
  for (std::uint32_t i = 0; i < g_said_count; ++i)
    if (g_said[i] == hash) return false;
  if (g_said_count == kMostSaid) return false;
  g_said[g_said_count++] = hash;
  return true;
}

void refuse(const char* path, std::uint32_t path_size, const char* why) {
  if (is_first_said_of(path, path_size)) Message().text(path, path_size).text(" ").text(why).text("; it is not traced");
}

void say_what_is_missing(const FunctionTable& functions, const char* path, std::uint32_t path_size) {
  const std::uint64_t count = functions.without_entry();
  if (count == 0 || !is_first_said_of(path, path_size)) return;
  Message()
      .text(path, path_size)
      .text(" has ")
      .number(count)
      .text(count == 1 ? " function" : " functions")
      .text(" to whose entry clang gave no sled (patchable_function_entry); ")
      .text(count == 1 ? "it is not traced" : "they are not traced");
}

const char* describe(SiteDefect defect) {
  return defect == SiteDefect::kOtherCode
             ? "has other code where its sleds should be"
             : "leaves a function by an instruction that Karst does not know behind the sled";
}

/// Functions with a sled that must stay as it is are left alone; the others are traced.
void say_what_is_left_out(const FunctionTable& functions, const ModuleImage& image, const char* path,
                          std::uint32_t path_size) {
  const std::uint32_t count = functions.left_out_count();
  if (count == 0 || !is_first_said_of(path, path_size, 1)) return;
  const std::uint64_t address = functions.first_left_out() - image.bias;
  char name[160];
  Message message;
  message.text(path, path_size).text(" ").text(describe(functions.first_defect())).text(": ");
  if (find_function_name(*image.path == '\0' ? "/proc/self/exe" : image.path, address, name, sizeof name))
    message.text(name);
  else
    message.text("the function at 0x").hex(address);
  if (count == 1)
    message.text("; it is not traced");
  else
    message.text(" and ").number(count - 1).text(count == 2 ? " other" : " others").text("; they are not traced");
}

std::uint32_t new_flags() { return load(g_arena.control().new_functions) != 0 ? std::uint32_t{kArenaFunctionOn} : 0; }

bool enter_functions(Module& m, std::uint32_t module) {
  const std::uint32_t count = m.functions.count();
  const std::uint32_t all = count + m.functions.alias_count();
  if (!g_arena.reserve_functions(all)) return false;
  m.first_id = g_arena.function_count() + 1;
  ArenaFunction* functions = g_arena.functions() + m.first_id;
  for (std::uint32_t i = 0; i < all; ++i) {
    const std::uint32_t index = i < count ? i : m.functions.function_of_alias(i - count);
    functions[i].address = m.functions.address(index);
    functions[i].module = module;
    functions[i].flags = (m.functions.left_out(index) ? 0U
                          : m.functions.always(index) ? kArenaFunctionOn | kArenaFunctionAlways
                                                      : new_flags()) |
                         (i < count                     ? 0U
                          : m.functions.has_returned(i) ? kArenaFunctionTailExit | kArenaFunctionTailReturn
                                                        : static_cast<std::uint32_t>(kArenaFunctionTailExit)) |
                         (g_keeps_functions_with_sleds && !m.has_stubs ? std::uint32_t{kArenaFunctionKeep} : 0U) |
                         (m.functions.late(index) ? static_cast<std::uint32_t>(kArenaFunctionLate) : 0U);
  }
  g_arena.set_function_count(m.first_id - 1 + all);
  return true;
}

bool same_text(const ArenaModule& entry, const char* path, std::uint32_t size) {
  const char* text = g_arena.text(entry.path_offset, size);
  if (text == nullptr || entry.path_offset == 0 || entry.path_size != size) return false;
  for (std::uint32_t i = 0; i < size; ++i)
    if (text[i] != path[i]) return false;
  return true;
}

/// The same file at the same place as before, if it has gone from there: its ids and trampolines are right again.
Module* take_up_again(const ModuleImage& image, const char* path, std::uint32_t path_size) {
  if (image.build_id_size == 0 || image.build_id_size > sizeof ArenaModule::build_id) return nullptr;
  for (std::uint32_t i = 0; i < g_module_count; ++i) {
    Module& m = g_modules[i];
    if (m.loaded == 1 || m.has_stubs != has_stubs(image) || m.bias != image.bias || m.text_begin != image.text_begin ||
        m.text_end != image.text_end)
      continue;
    ArenaModule& entry = g_arena.modules()[i];
    if (entry.build_id_size != image.build_id_size || !same_text(entry, path, path_size)) continue;
    bool equal_ids = true;
    for (std::uint32_t b = 0; b < image.build_id_size; ++b)
      equal_ids = equal_ids && entry.build_id[b] == image.build_id[b];
    if (!equal_ids) continue;
    store(entry.unloaded_ticks, std::uint64_t{0});
    return &m;
  }
  return nullptr;
}

/// Null on success, else why the module cannot be entered. Other threads may enter generated code meanwhile.
const char* enter_new(const ModuleImage& image, const char* path, std::uint32_t path_size, const FileIdentity* file,
                      std::uint32_t& entered) {
  constexpr const char* kNoMemory = "is too much for the memory there is for functions' tables";
  Module m{};
  m.text_begin = image.text_begin;
  m.text_end = image.text_end;
  m.reach_begin = image.plain_stubs != 0 && image.plain_stubs < m.text_begin ? image.plain_stubs : m.text_begin;
  m.reach_end = image.plain_stubs > m.text_end ? image.plain_stubs + image.plain_stubs_size : m.text_end;
  m.bias = image.bias;
  m.has_stubs = has_stubs(image);
  m.loaded = 1;
  m.finstrument = image.finstrument;
  m.own_exits = image.own_exits;
  if (!m.functions.create(image)) return kNoMemory;
  if (m.functions.count() != 0 && m.functions.left_out_count() == m.functions.count())
    return describe(m.functions.first_defect());
  ArenaHeader& h = g_arena.header();
  const Locked lock(g_lock);
  const std::uint32_t module = g_module_count;
  if (module == kArenaModules) return "came when there were too many modules";
  if (!g_arena.reserve_modules(1) || !enter_functions(m, module)) return kNoMemory;
  g_modules[module] = m;
  ArenaModule& entry = g_arena.modules()[module];
  entry.bias = image.bias;
  entry.text_begin = image.text_begin;
  entry.text_end = image.text_end;
  entry.loaded_ticks = now();
  entry.unloaded_ticks = 0;
  entry.path_offset = g_arena.add_text(path, path_size);
  entry.path_size = entry.path_offset == 0 ? 0 : path_size;
  entry.first_function = m.first_id;
  entry.function_count = m.functions.count() + m.functions.alias_count();
  const std::uint32_t room = sizeof entry.build_id;
  entry.build_id_size = image.build_id_size < room ? image.build_id_size : room;
  if (entry.build_id_size != 0) copy(entry.build_id, image.build_id, entry.build_id_size);
  entry.flags = image.plain_count == 0 ? 0U : kModulePatched | image.plain_left_alone << kModuleLeftAloneShift;
  if (image.build_id_size == 0) {
    entry.flags |= kModuleByFile;
    entry.build_id_size = file != nullptr ? std::uint32_t{kFileIdentitySize} : 0;
    if (file != nullptr) copy(entry.build_id, file, kFileIdentitySize);
  }
  g_arena.set_module_count(module + 1);
  g_sleds += m.functions.sleds();
  store(h.sites, g_sleds);
  store(g_module_count, module + 1);
  g_arena.remember();
  entered = module;
  return nullptr;
}

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
  entry.loaded_ticks = now();
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
  f.flags = flags |
            (new_flags() == 0 && (flags & kArenaFunctionAlways) == 0 ? 0 : kArenaFunctionOn | kArenaFunctionSwitchedOn);
  g_arena.set_function_count(id);
  g_arena.remember();
  return id;
}

/// The entered module, or null. `arrived` says what is new. `when`: how its file is looked at, if it has no build-id.
Module* enter(const ModuleImage& image, Arrived& arrived, Look when) {
  char buffer[4096];
  std::uint32_t path_size = 0;
  const char* path = shown_path(image.path, buffer, path_size);
  if (const char* wrong = image.defect()) {
    refuse(path, path_size, wrong);
    return nullptr;
  }
  if (Module* m = take_up_again(image, path, path_size)) {
    store(m->loaded, 1U);
    arrived = {index_of(*m), m->first_id, 0};
    return m;
  }
  FileIdentity file;
  const bool is_told = image.build_id_size == 0 && identify_file(image.path, image.text_begin, when, file);
  std::uint32_t entered = 0;
  if (const char* wrong = enter_new(image, path, path_size, is_told ? &file : nullptr, entered)) {
    refuse(path, path_size, wrong);
    return nullptr;
  }
  Module& m = g_modules[entered];
  say_what_is_missing(m.functions, path, path_size);
  say_what_is_left_out(m.functions, image, path, path_size);
  if (m.finstrument) {
    prepare_instrument_calls();
    if (load(g_generated) != 0) forget_instrument_calls(m.text_begin, m.text_end);  // it may have been there before
  }
  arrived = {entered, m.first_id, m.functions.count() + m.functions.alias_count()};
  return &m;
}

bool is_at_place_of(const Module& m, const ModuleImage& image) {
  return m.text_begin == image.text_begin && m.text_end == image.text_end;
}

/// A module that was built for tracing in part is two: that part, and the other one, which has stubs.
Module* module_of(const ModuleImage& image) {
  for (std::uint32_t i = 0; i < g_module_count; ++i)
    if (Module& m = g_modules[i]; m.loaded == 1 && m.has_stubs == has_stubs(image) && is_at_place_of(m, image))
      return &m;
  return nullptr;
}

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

bool make_trampolines(Module& m) {
  if (!m.has_trampolines && id_count(m) != 0) {
    m.has_trampolines = m.trampolines.create(m.reach_begin, m.reach_end, m.first_id, m.functions.count(),
                                             m.functions.alias_count(), &m.functions);
    watch_sleds(m);
  }
  return m.has_trampolines || id_count(m) == 0;
}

void module_is_gone(Module& m) {
  KARST_ASSERT(holds_patching());
  store(g_arena.modules()[index_of(m)].unloaded_ticks, now());
  store(m.loaded, 0U);
  m.chosen = false;
  m.patched_functions = 0;
  m.patched_sites = 0;
  for (std::uint32_t i = 0; i < m.functions.count(); ++i) m.functions.set_patched(i, false);
  if (m.finstrument) forget_instrument_calls(m.text_begin, m.text_end);
}

bool prepare_modules() {
  start_switches();
  return g_lock.create() && g_entering.create() && prepare_patch_lock();
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

void keep_functions_with_sleds() { g_keeps_functions_with_sleds = true; }

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

std::uint32_t module_count() { return g_module_count; }

std::uint64_t sled_count() { return g_sleds; }

bool lies_in_entered_module(std::uintptr_t address) { return module_at(address) != nullptr; }

bool enter_plain_module(std::uintptr_t function) {
  ModuleImage image;
  if (find_image(function, image) || image.has_note || image.text_end <= image.text_begin) return false;
  image.finstrument = true;
  char buffer[4096];
  std::uint32_t path_size = 0;
  const char* path = shown_path(image.path, buffer, path_size);
  const Locked lock(g_entering);
  if (lies_in_entered_module(function)) return true;
  FileIdentity file;
  const bool is_told = image.build_id_size == 0 && identify_file(image.path, image.text_begin, Look::kAtMapping, file);
  std::uint32_t entered = 0;
  if (const char* wrong = enter_new(image, path, path_size, is_told ? &file : nullptr, entered))
    return refuse(path, path_size, wrong), true;
  g_modules[entered].is_plain = true;
  g_modules[entered].chosen = true;  // it has no sleds; switches apply to its ids
  return true;
}

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
