// SPDX-License-Identifier: MIT
// What the libraries that stand before others' functions tell (interpose/zone.h), and karst_name_lock() of
// include/karst/karst.h.
#include <cstddef>

#include "format/lock.h"
#include "format/memory.h"
#include "format/note.h"
#include "format/values.h"
#include "runtime/modules/note_names.h"
#include "runtime/recording/mode.h"
#include "runtime/recording/note_words.h"
#include "runtime/recording/thread.h"

using namespace karst::runtime;
using namespace karst::format;

namespace {

void record_values(NoteKind kind, std::uint32_t id, const unsigned char* bytes, std::uint32_t size) {
  constexpr unsigned char kEnd = kValuesEnd;
  if (size == 0) return record_note(kind, id, &kEnd, 1);
  if (size > kMostValuesInNote) return;
  const NotePiece all[] = {{bytes, size}, {&kEnd, 1}};
  record_note(kind, id, all, 2, size + 1);
}

__attribute__((noinline)) void record_numbers(std::uint32_t id, const std::uint64_t* numbers, std::uint32_t count) {
  NoteWords words;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t bytes = note_bytes_of(numbers[i]);
    words.add(bytes, 1);
    if (bytes != 0) words.add(numbers[i], bytes);
  }
  words.add(kValuesEnd, 1);
  words.end();
  record_note_words(NoteKind::kRecord, id, words.payloads(), words.count());
}

}  // namespace

#define KARST_API(type, name) extern "C" __attribute__((visibility("default"))) type karst_api_##name

/// Enters a zone's name, whose values are described so.
KARST_API(void, name_with_values)(NoteName* name, const char* values, std::uint32_t size) {
  note_id_with_values(name, values, size);
}

/// The next zone of this name of the calling thread is given these values, without kValuesEnd. Any context; keeps
/// errno.
KARST_API(void, arguments)
(NoteName* name, const char* values, std::uint32_t values_size, const unsigned char* bytes, std::uint32_t size) {
  const std::uint32_t id = note_id_with_values(name, values, values_size);
  if (id != 0) record_values(NoteKind::kArguments, id, bytes, size);
}

/// The zone of this name that the calling thread is in returns these values.
KARST_API(void, returned)
(NoteName* name, const char* values, std::uint32_t values_size, const unsigned char* bytes, std::uint32_t size) {
  const std::uint32_t id = note_id_with_values(name, values, values_size);
  if (id != 0) record_values(NoteKind::kReturned, id, bytes, size);
}

/// Something has happened that has these numbers, NoteWords::kMostBytes / 9 at most. Any context; keeps errno.
KARST_API(void, record)
(NoteName* name, const char* values, std::uint32_t values_size, const std::uint64_t* numbers, std::uint32_t count) {
  const std::uint32_t id = note_id_with_values(name, values, values_size);
  if (id == 0) return;
  ShortNote note;
  std::uint32_t at = 0;
  while (at < count && note.add(numbers[at])) ++at;
  if (at == count && note.end(kValuesEnd)) return record_short_note(NoteKind::kRecord, id, note.bytes(), note.size());
  record_numbers(id, numbers, count);
}

KARST_API(void, name_lock)(const void* lock, const char* text) {
  if (text == nullptr || !is_switched_on()) return;
  constexpr std::uint32_t kLongest = 200;
  char name[2 + 16 + 1 + kLongest + 1] = "0x";
  std::uint32_t used = 2;
  const auto address = reinterpret_cast<std::uintptr_t>(lock);
  for (int shift = 60; shift >= 0; shift -= 4)
    if (address >> shift != 0 || shift == 0) name[used++] = "0123456789abcdef"[address >> shift & 15];
  name[used++] = ' ';
  for (std::uint32_t i = 0; i < kLongest && text[i] != '\0'; ++i) name[used++] = text[i];
  name[used] = '\0';
  NoteName entered{name, nullptr, 0, 0};
  note_id_with_values(&entered, kLockName, sizeof kLockName - 1);
}

/// An allocator of the program's own, by its name.
KARST_API(void, memory_taken)(const char* pool, const void* address, std::size_t size) {
  const std::uint64_t numbers[] = {size, reinterpret_cast<std::uintptr_t>(address)};
  if (NoteName* name = note_name_of(pool, NameUse::kMemoryTaken); name != nullptr)
    karst_api_record(name, kAllocated, sizeof kAllocated - 1, numbers, 2);
}
KARST_API(void, memory_freed)(const char* pool, const void* address) {
  const std::uint64_t numbers[] = {reinterpret_cast<std::uintptr_t>(address)};
  if (NoteName* name = note_name_of(pool, NameUse::kMemoryFreed); name != nullptr)
    karst_api_record(name, kFreed, sizeof kFreed - 1, numbers, 1);
}
