#include "runtime/hooks/sleds.h"

#include <sys/mman.h>

#include "runtime/core/arena.h"
#include "runtime/core/lock.h"
#include "runtime/core/memory.h"
#include "runtime/core/message.h"
#include "runtime/core/syscalls.h"
#include "runtime/hooks/function_table.h"
#include "runtime/hooks/hooks.h"
#include "runtime/hooks/instrument.h"
#include "runtime/hooks/module_image.h"

namespace karst::runtime {

using namespace format;

namespace {

/// An entered module; its place among g_modules is its index in the arena.
struct Module {
  std::uintptr_t text_begin = 0;
  std::uintptr_t text_end = 0;
  std::uint64_t bias = 0;
  std::uint32_t loaded = 0;  ///< 1 while it is there
  bool finstrument = false;
  bool own_exits = false;
  bool has_trampolines = false;
  std::uint32_t first_id = 0;
  FunctionTable functions{};
  Trampolines trampolines{};
};

// constinit: an initialiser that runs would run behind start(), and forget what that has found.
constinit Module g_modules[kArenaModules];
std::uint32_t g_module_count;
std::uint64_t g_sleds;
WipedLock g_lock;  // of the arena's function ids, which any thread may take

// Hashes of the paths of modules that were refused with a message, which is said once however often one comes back.
constexpr std::uint32_t kMostRefused = 64;
std::uint64_t g_refused[kMostRefused];
std::uint32_t g_refused_count;
bool g_said_unpatchable;

std::uint64_t now() { return __builtin_ia32_rdtsc(); }

Module* module_at(std::uintptr_t address) {
  const std::uint32_t count = load(g_module_count);
  for (std::uint32_t i = 0; i < count; ++i) {
    Module& m = g_modules[i];
    if (address >= m.text_begin && address < m.text_end && load(m.loaded) == 1) return &m;
  }
  return nullptr;
}

std::uint32_t index_of(const Module& m) { return static_cast<std::uint32_t>(&m - g_modules); }

const char* shown_path(const char* path, char (&buffer)[4096], std::uint32_t& size) {
  if (*path != '\0') {
    size = static_cast<std::uint32_t>(length(path));
    return path;
  }
  const long n = sys::call(SYS_readlinkat, -100, sys::word("/proc/self/exe"), sys::word(buffer), sizeof buffer - 1);
  size = n > 0 ? static_cast<std::uint32_t>(n) : 0;
  buffer[size] = '\0';
  return buffer;
}

void refuse(const char* path, std::uint32_t path_size, const char* why) {
  std::uint64_t hash = 0xcbf29ce484222325U;  // FNV-1a
  for (std::uint32_t i = 0; i < path_size; ++i) hash = (hash ^ static_cast<unsigned char>(path[i])) * 0x100000001b3U;
  for (std::uint32_t i = 0; i < g_refused_count; ++i)
    if (g_refused[i] == hash) return;
  if (g_refused_count == kMostRefused) return;
  g_refused[g_refused_count++] = hash;
  Message().text(path, path_size).text(" ").text(why).text("; it is not traced");
}

bool enter_functions(Module& m, std::uint32_t module) {
  const std::uint32_t count = m.functions.count();
  const std::uint32_t all = count + m.functions.alias_count();
  if (!g_arena.reserve_functions(all)) return false;
  ArenaHeader& h = g_arena.header();
  m.first_id = h.function_count + 1;
  ArenaFunction* functions = g_arena.functions() + m.first_id;
  for (std::uint32_t i = 0; i < all; ++i) {
    const std::uint32_t index = i < count ? i : m.functions.function_of_alias(i - count);
    functions[i].address = m.functions.address(index);
    functions[i].module = module;
    functions[i].flags = (m.functions.always(index) ? kArenaFunctionOn | kArenaFunctionAlways : kArenaFunctionOn) |
                         (i < count ? 0U : static_cast<std::uint32_t>(kArenaFunctionTailExit));
  }
  store(h.function_count, h.function_count + all);
  return true;
}

bool same_text(const ArenaModule& entry, const char* path, std::uint32_t size) {
  const char* text = g_arena.text(entry.path_offset);
  if (entry.path_offset == 0 || entry.path_size != size) return false;
  for (std::uint32_t i = 0; i < size; ++i)
    if (text[i] != path[i]) return false;
  return true;
}

/// The same file at the same place as before, if it has gone from there: its ids and trampolines are right again.
Module* take_up_again(const ModuleImage& image, const char* path, std::uint32_t path_size) {
  if (image.build_id_size == 0 || image.build_id_size > sizeof ArenaModule::build_id) return nullptr;
  for (std::uint32_t i = 0; i < g_module_count; ++i) {
    Module& m = g_modules[i];
    if (m.loaded == 1 || m.bias != image.bias || m.text_begin != image.text_begin || m.text_end != image.text_end)
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

/// Null on success, else why the module cannot be entered.
const char* enter_new(const ModuleImage& image, const char* path, std::uint32_t path_size) {
  if (g_module_count == kArenaModules) return "came when there were too many modules";
  constexpr const char* kNoMemory = "is too much for the memory there is for functions' tables";
  Module& m = g_modules[g_module_count];
  m = Module{};
  m.text_begin = image.text_begin;
  m.text_end = image.text_end;
  m.bias = image.bias;
  m.loaded = 1;
  m.finstrument = image.finstrument;
  m.own_exits = image.own_exits;
  if (!m.functions.create(image)) return kNoMemory;
  ArenaHeader& h = g_arena.header();
  const std::uint32_t module = g_module_count;
  const Locked lock(g_lock);
  if (!g_arena.reserve_modules(1) || !enter_functions(m, module)) return kNoMemory;
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
  store(h.module_count, module + 1);
  g_sleds += m.functions.sleds();
  store(h.sites, g_sleds);
  store(g_module_count, module + 1);
  g_arena.remember();
  return nullptr;
}

/// The entered module, or null. `arrived` says what is new.
Module* enter(const ModuleImage& image, Arrived& arrived) {
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
  if (const char* wrong = enter_new(image, path, path_size)) {
    refuse(path, path_size, wrong);
    return nullptr;
  }
  Module& m = g_modules[g_module_count - 1];
  if (m.finstrument && g_arena.header().off == 0) prepare_instrument_calls();
  arrived = {index_of(m), m.first_id, m.functions.count() + m.functions.alias_count()};
  return &m;
}

bool set_protection(const CodeSegment& s, int protection) {
  return sys::mprotect(s.begin, s.end - s.begin, protection) == 0;
}

// In a static program we are ourselves in the code that is patched.
#ifdef KARST_STATIC
constexpr int kWhilePatching = PROT_READ | PROT_WRITE | PROT_EXEC;
#else
constexpr int kWhilePatching = PROT_READ | PROT_WRITE;
#endif

bool make_writable(const ModuleImage& m) {
  for (std::uint32_t i = 0; i < m.segment_count; ++i)
    if (!set_protection(m.segments[i], kWhilePatching)) return false;
  return true;
}

void restore_protection(const ModuleImage& m) {
  for (std::uint32_t i = 0; i < m.segment_count; ++i)
    if (!set_protection(m.segments[i], m.segments[i].protection))
      set_protection(m.segments[i], PROT_READ | PROT_WRITE | PROT_EXEC);
}

void write_calls(const ModuleImage& image, Module& m) {
  const ArenaFunction* functions = g_arena.functions() + m.first_id;
  m.functions.for_each_sled(image, [&](const SledPlace& p, std::uint32_t index) {
    if (p.kind == SledKind::kCold || (load(functions[index].flags) & kArenaFunctionOn) == 0) return;
    const std::uint32_t alias = p.kind == SledKind::kTailCall ? m.functions.alias(index) : FunctionTable::kNone;
    const std::uint32_t target = alias == FunctionTable::kNone ? index : alias;
    arch::write_call(reinterpret_cast<unsigned char*>(p.address),
                     p.kind == SledKind::kEntry ? m.trampolines.enter(target) : m.trampolines.exit(target), p.sled);
  });
  for (std::uint32_t i = 0; i < m.functions.count(); ++i)
    m.functions.set_patched(i, (load(functions[i].flags) & kArenaFunctionOn) != 0);
}

/// Trampolines show whether the system lets written memory become executable (SELinux, systemd's
/// MemoryDenyWriteExecute, PR_SET_MDWE), before anything of the program is touched.
bool make_trampolines(Module& m) {
  const std::uint32_t ids = m.functions.count() + m.functions.alias_count();
  if (!m.has_trampolines && ids != 0)
    m.has_trampolines = m.trampolines.create(m.text_begin, m.text_end, m.first_id, ids);
  return m.has_trampolines || ids == 0;
}

bool patch(const ModuleImage& image, Module& m) {
  if (m.functions.count() == 0) return true;
  const bool writable = make_writable(image);
  if (writable) write_calls(image, m);
  restore_protection(image);
  return writable;
}

Module* module_of(const ModuleImage& image) {
  Module* m = module_at(image.text_begin);
  return m != nullptr && m->text_end == image.text_end ? m : nullptr;
}

void leave(Module& m) {
  store(g_arena.modules()[index_of(m)].unloaded_ticks, now());
  store(m.loaded, 0U);
  if (m.finstrument) forget_instrument_calls(m.text_begin, m.text_end);
}

/// True if the module that we know at the image's place is the one that is there now: its sleds are as we left them.
bool is_still_here(const ModuleImage& image, const Module& m) {
  if (m.text_begin != image.text_begin || m.text_end != image.text_end) return false;
  bool same = true;
  bool seen = false;
  std::uint64_t sleds = 0;
  m.functions.for_each_sled(image, [&](const SledPlace& p, std::uint32_t index) {
    sleds += p.kind != SledKind::kCold;
    if (seen || p.kind == SledKind::kCold || index >= m.functions.count() || !m.functions.patched(index)) return;
    seen = true;
    same = !arch::is_sled(reinterpret_cast<const unsigned char*>(p.address), p.sled);
  });
  return same && sleds == m.functions.sleds();
}

/// Modules of which we did not learn that they have gone, though another one has their place.
void forget_replaced(const ModuleImage& image) {
  for (std::uint32_t i = 0; i < g_module_count; ++i) {
    Module& m = g_modules[i];
    if (m.loaded == 1 && m.text_begin < image.text_end && image.text_begin < m.text_end && !is_still_here(image, m))
      leave(m);
  }
}

}  // namespace

bool prepare_modules() { return g_lock.create(); }

std::uint32_t count_instrumented_modules() {
  std::uint32_t count = 0;
  for_each_image([&count](const ModuleImage&) { ++count; });
  return count;
}

std::uint32_t register_modules() {
  for_each_image([](const ModuleImage& image) {
    Arrived arrived{};
    if (module_of(image) == nullptr) enter(image, arrived);
  });
  return g_module_count;
}

bool patch_modules() {
  for (std::uint32_t i = 0; i < g_module_count; ++i)
    if (!make_trampolines(g_modules[i])) return false;
  // A handler of the program (when libkarst comes late) could be in the code that cannot be executed now.
  const sys::SignalsBlocked guard;
  bool done = true;
  for_each_image([&done](const ModuleImage& image) {
    Module* m = done ? module_of(image) : nullptr;
    if (m != nullptr) done = patch(image, *m);
  });
  if (!done) set_hooks(karst_hook_discard, karst_hook_discard);  // modules before the one that could not are patched
  return done;
}

bool enter_module(std::uintptr_t note, Arrived& arrived) {
  ModuleImage image;
  if (!find_image(note, image)) return false;
  forget_replaced(image);
  return module_of(image) == nullptr && enter(image, arrived) != nullptr;
}

bool is_program(std::uintptr_t note) {
  ModuleImage image;
  return find_image(note, image) && *image.path == '\0';
}

void patch_module(std::uint32_t module) {
  Module& m = g_modules[module];
  ModuleImage image;
  const sys::SignalsBlocked guard;
  if (find_image(m.text_begin, image) && make_trampolines(m) && patch(image, m)) return;
  if (g_said_unpatchable) return;
  g_said_unpatchable = true;
  Message()
      .text(image.path)
      .text(" is not traced: the system does not let its code be changed (a W^X policy, or no memory near it)");
}

void leave_module(std::uintptr_t note) {
  ModuleImage image;
  if (!find_image(note, image)) return;
  if (Module* m = module_of(image)) leave(*m);
}

std::uint32_t module_count() { return g_module_count; }

std::uint64_t sled_count() { return g_sleds; }

std::uint32_t enter_function(std::uintptr_t address, std::uint32_t known, bool* is_new) {
  const Locked lock(g_lock);
  *is_new = false;
  const Module* m = module_at(address);
  // Code made with both kinds of instrumentation is recorded by its sleds.
  if (m == nullptr || m->functions.find(address) != FunctionTable::kNone) return 0;
  ArenaHeader& h = g_arena.header();
  const std::uint32_t module = index_of(*m);
  ArenaFunction* functions = g_arena.functions();
  // The module may have gone and come back since: then its functions have their ids still.
  if (known != 0 && functions[known].module == module && functions[known].address == address) return known;
  if (!g_arena.reserve_functions(1)) return 0;
  const std::uint32_t id = h.function_count + 1;
  functions[id].address = address;
  functions[id].module = module;
  functions[id].flags = kArenaFunctionOn;
  store(h.function_count, id);
  g_arena.remember();
  *is_new = true;
  return id;
}

FunctionHere function_of_region(std::uintptr_t fde_start) {
  const Module* m = module_at(fde_start);
  if (m == nullptr) return {0, false};
  const std::uint32_t index = m->functions.find(fde_start);
  if (index != FunctionTable::kNone) return {m->functions.patched(index) ? m->first_id + index : 0, false};
  if (!m->finstrument) return {0, false};
  return {find_instrument_call(fde_start), m->own_exits};
}

}  // namespace karst::runtime
