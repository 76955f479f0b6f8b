// SPDX-License-Identifier: MIT
#include "runtime/modules/enter.h"

#include "format/trace.h"
#include "runtime/clock/clock.h"
#include "runtime/modules/function_names.h"
#include "runtime/modules/ids.h"
#include "runtime/modules/instrument.h"
#include "runtime/modules/named_functions.h"
#include "runtime/recording/arena.h"
#include "runtime/system/memory.h"
#include "runtime/system/message.h"
#include "runtime/system/own_program.h"

namespace karst::runtime {

using namespace format;

namespace {

std::uint64_t g_sleds;
WipedLock g_entering;  // modules of which inlined functions are

// Hashes of the paths of modules of which something was said, which is done once however often one comes back.
constexpr std::uint32_t kMostSaid = 64;
std::uint64_t g_said[kMostSaid];
std::uint32_t g_said_count;
bool g_keeps_functions_with_sleds;

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
                                                      : flags_of_new_functions()) |
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
  const Locked lock(lock_of_ids());
  const std::uint32_t module = g_module_count;
  if (module == kArenaModules) return "came when there were too many modules";
  if (!g_arena.reserve_modules(1) || !enter_functions(m, module)) return kNoMemory;
  g_modules[module] = m;
  ArenaModule& entry = g_arena.modules()[module];
  entry.bias = image.bias;
  entry.text_begin = image.text_begin;
  entry.text_end = image.text_end;
  entry.loaded_ticks = event_time();
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

}  // namespace

bool prepare_entering() { return lock_of_ids().create() && g_entering.create() && prepare_named_functions(); }

void keep_functions_with_sleds() { g_keeps_functions_with_sleds = true; }

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
    if (has_generated_code()) forget_instrument_calls(m.text_begin, m.text_end);  // it may have been there before
  }
  arrived = {entered, m.first_id, m.functions.count() + m.functions.alias_count()};
  return &m;
}

bool enter_plain_module(std::uintptr_t function) {
  ModuleImage image;
  if (find_image(function, image) || image.has_note || image.text_end <= image.text_begin) return false;
  image.finstrument = true;
  char buffer[4096];
  std::uint32_t path_size = 0;
  const char* path = shown_path(image.path, buffer, path_size);
  const Locked lock(g_entering);
  if (module_at(function) != nullptr) return true;
  FileIdentity file;
  const bool is_told = image.build_id_size == 0 && identify_file(image.path, image.text_begin, Look::kAtMapping, file);
  std::uint32_t entered = 0;
  if (const char* wrong = enter_new(image, path, path_size, is_told ? &file : nullptr, entered))
    return refuse(path, path_size, wrong), true;
  g_modules[entered].is_plain = true;
  g_modules[entered].chosen = true;  // it has no sleds; switches apply to its ids
  return true;
}

}  // namespace karst::runtime
