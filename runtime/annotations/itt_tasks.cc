// SPDX-License-Identifier: MIT
// ITT's tasks, frames, markers and metadata. Zones are begun and ended as the last thing that a function does, so that
// their events are made at the caller's depth of the stack.
#include "runtime/annotations/itt.h"
#include "runtime/annotations/open_zones.h"
#include "runtime/system/memory.h"

namespace karst::runtime::itt {
namespace {

using format::NoteKind;

/// Where there is no room for a name.
NoteName g_further_tasks{"(further ITT tasks)", nullptr, 0, 0};

NoteName* task_name(const Domain* domain, Said text) {
  if (!is_heard()) return nullptr;
  KeptText* const kept = keep_text(name_of(domain), text);
  return kept != nullptr ? &kept->name : &g_further_tasks;
}

void task_begin(const Domain* domain, Id, Id, const Text* name) {
  karst_api_zone_enter(open_zone(task_name(domain, text_of(name)), domain));
}

void task_begin_ex(const Domain* domain, void*, unsigned long long, Id, Id, const Text* name) {
  karst_api_zone_enter(open_zone(task_name(domain, text_of(name)), domain));
}

Said hexadecimal(const void* address, char (&to)[19]) {
  auto value = reinterpret_cast<std::uintptr_t>(address);
  std::uint32_t at = sizeof to - 1;
  to[at] = '\0';
  do {
    to[--at] = "0123456789abcdef"[value & 15];
    value >>= 4;
  } while (value != 0);
  to[--at] = 'x';
  to[--at] = '0';
  return said(to + at);
}

__attribute__((noinline)) NoteName* task_name_of_function(const Domain* domain, const void* function) {
  char text[19];
  return task_name(domain, hexadecimal(function, text));
}

void task_begin_fn(const Domain* domain, Id, Id, const void* function) {
  karst_api_zone_enter(open_zone(task_name_of_function(domain, function), domain));
}

void task_begin_fn_ex(const Domain* domain, void*, unsigned long long, Id, Id, const void* function) {
  karst_api_zone_enter(open_zone(task_name_of_function(domain, function), domain));
}

void task_end(const Domain* domain) { karst_api_zone_leave(close_zone(domain)); }

void task_end_ex(const Domain* domain, void*, unsigned long long) { karst_api_zone_leave(close_zone(domain)); }

// What may overlap, and end on another thread, is a request. Its number is made of what the program ends it by.

std::uint64_t range_number(const Domain* domain, const Id& id) {
  std::uint64_t hash = reinterpret_cast<std::uintptr_t>(domain);
  const unsigned long long parts[] = {id.d1, id.d2, id.d3};
  for (const unsigned long long part : parts) {
    hash = (hash ^ part) * 0x9e3779b97f4a7c15ULL;
    hash ^= hash >> 29;
  }
  return kFirstRangeNumber | (hash & (kFirstRangeNumber - 1));
}

void begin_range(const Domain* domain, Id id, Id, const Text* name) {
  say(NoteKind::kMessage, name_of(domain), {"::", 2}, text_of(name));
  karst_api_request_begin(range_number(domain, id));
}
void begin_range_ex(const Domain* domain, void*, unsigned long long, Id id, Id parent, const Text* name) {
  begin_range(domain, id, parent, name);
}
void end_range(const Domain* domain, Id id) { karst_api_request_end(range_number(domain, id)); }
void end_range_ex(const Domain* domain, void*, unsigned long long, Id id) { end_range(domain, id); }

// A frame of Karst's ends where the next one begins. The first one of a domain begins where ITT says so.

std::uint8_t g_has_frame[kMostKeptTexts];

void end_frame(const Domain* domain) {
  if (!is_heard()) return;
  if (KeptText* const kept = keep_text({}, name_of(domain))) {
    store(g_has_frame[number_of(*kept)], std::uint8_t{1});
    karst_api_frame(&kept->name);
  }
}
void frame_begin_v3(const Domain* domain, const Id*) {
  if (!is_heard()) return;
  KeptText* const kept = keep_text({}, name_of(domain));
  if (kept != nullptr && exchange_if(g_has_frame[number_of(*kept)], std::uint8_t{0}, std::uint8_t{1}))
    karst_api_frame(&kept->name);
}
void frame_end_v3(const Domain* domain, const Id*) { end_frame(domain); }
void frame_submit_v3(const Domain* domain, const Id*, unsigned long long, unsigned long long) { end_frame(domain); }

void marker(const Domain* domain, Id, const Text* name, int) {
  say(NoteKind::kMessage, name_of(domain), {"::", 2}, text_of(name));
}
void marker_ex(const Domain* domain, void*, unsigned long long, Id id, const Text* name, int scope) {
  marker(domain, id, name, scope);
}

std::uint32_t bytes_of(Type type) {
  switch (type) {
    case Type::kU64:
    case Type::kS64:
    case Type::kDouble:
      return 8;
    case Type::kU32:
    case Type::kS32:
    case Type::kFloat:
      return 4;
    case Type::kU16:
    case Type::kS16:
      return 2;
  }
  return 0;
}

void add_metadata(const Text* key, int type, std::size_t count, const void* data) {
  constexpr std::size_t kMostValues = 16;
  const std::uint32_t bytes = bytes_of(static_cast<Type>(type));
  if (bytes == 0 || data == nullptr || !is_heard()) return;
  KeptText* const kept = keep_text({}, text_of(key));
  if (kept == nullptr) return;
  for (std::size_t i = 0; i < count && i < kMostValues; ++i)
    say_number(&kept->name, static_cast<Type>(type), static_cast<const unsigned char*>(data) + i * bytes);
}
void metadata_add(const Domain*, Id, const Text* key, int type, std::size_t count, const void* data) {
  add_metadata(key, type, count, data);
}
void metadata_add_with_scope(const Domain*, int, const Text* key, int type, std::size_t count, const void* data) {
  add_metadata(key, type, count, data);
}

/// A length of 0 is a text that ends at a NUL.
void add_text(const Text* key, const char* data, std::size_t length) {
  say(NoteKind::kText, text_of(key), {": ", 2}, said(data, length != 0 ? length : format::kMostNoteBytes));
}
void metadata_str_add(const Domain*, Id, const Text* key, const char* data, std::size_t length) {
  add_text(key, data, length);
}
void metadata_str_add_with_scope(const Domain*, int, const Text* key, const char* data, std::size_t length) {
  add_text(key, data, length);
}

}  // namespace

Functions task_functions() {
#define KARST_ITT(name) \
  { #name, reinterpret_cast < void*>(name) }
  static const Known known[] = {
      KARST_ITT(task_begin),
      KARST_ITT(task_begin_ex),
      KARST_ITT(task_begin_fn),
      KARST_ITT(task_begin_fn_ex),
      KARST_ITT(task_end),
      KARST_ITT(task_end_ex),
      {"task_begin_overlapped", reinterpret_cast<void*>(begin_range)},
      {"task_begin_overlapped_ex", reinterpret_cast<void*>(begin_range_ex)},
      {"task_end_overlapped", reinterpret_cast<void*>(end_range)},
      {"task_end_overlapped_ex", reinterpret_cast<void*>(end_range_ex)},
      KARST_ITT(frame_begin_v3),
      KARST_ITT(frame_end_v3),
      KARST_ITT(frame_submit_v3),
      KARST_ITT(marker),
      KARST_ITT(marker_ex),
      KARST_ITT(metadata_add),
      KARST_ITT(metadata_add_with_scope),
      KARST_ITT(metadata_str_add),
      KARST_ITT(metadata_str_add_with_scope),
  };
#undef KARST_ITT
  return {known, sizeof known / sizeof known[0]};
}

}  // namespace karst::runtime::itt
