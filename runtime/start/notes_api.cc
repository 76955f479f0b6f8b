// SPDX-License-Identifier: MIT
// Zones are in arch/x86_64/zones.S.
#include "runtime/start/notes_api.h"

#include <errno.h>
#include <stddef.h>

#include "format/note.h"
#include "runtime/modules/note_names.h"
#include "runtime/recording/arena.h"
#include "runtime/recording/mode.h"
#include "runtime/recording/thread.h"

namespace karst::runtime {
namespace {

using format::NoteKind;

void record_text(NoteKind kind, const char* text, std::size_t most = format::kMostNoteBytes, std::uint32_t name = 0) {
  if (text == nullptr || !is_switched_on()) return;
  std::uint32_t size = 0;
  while (size < format::kMostNoteBytes && size < most && text[size] != '\0') ++size;
  record_note(kind, name, reinterpret_cast<const unsigned char*>(text), size);
}

void record_number(NoteKind kind, std::uint32_t name, std::uint64_t bits) {
  constexpr std::uint32_t kBits = 8 * format::kNoteBytesInWord;
  const std::uint64_t payloads[2] = {bits & ((std::uint64_t{1} << kBits) - 1), bits >> kBits};
  record_note_words(kind, name, payloads, format::note_words(format::note_bytes_of(bits)));
}

}  // namespace
}  // namespace karst::runtime

using namespace karst::runtime;
using karst::format::NoteKind;

#define KARST_API(type, name) extern "C" __attribute__((visibility("default"))) type karst_api_##name

KARST_API(void, message)(const char* text) { record_text(NoteKind::kMessage, text); }

KARST_API(void, text)(const char* text) { record_text(NoteKind::kText, text); }

KARST_API(void, sized_message)(const char* text, std::size_t size) { record_text(NoteKind::kMessage, text, size); }

KARST_API(void, sized_text)(const char* text, std::size_t size) { record_text(NoteKind::kText, text, size); }

KARST_API(void, named_message)(NoteName* name) {
  if (const std::uint32_t id = karst_note_id(name); id != 0) record_note(NoteKind::kMessage, id, nullptr, 0);
}

KARST_API(void, integer)(NoteName* name, std::int64_t value) {
  const std::uint32_t id = karst_note_id(name);
  if (id != 0) record_number(NoteKind::kInteger, id, static_cast<std::uint64_t>(value));
}

/// The bits of a double: libkarst uses no vector register.
KARST_API(void, number)(NoteName* name, std::uint64_t bits) {
  if (const std::uint32_t id = karst_note_id(name); id != 0) record_number(NoteKind::kNumber, id, bits);
}

KARST_API(void, frame)(NoteName* name) {
  if (const std::uint32_t id = karst_note_id(name); id != 0) record_note(NoteKind::kFrame, id, nullptr, 0);
}

/// A frame that nobody ends is none.
KARST_API(void, frame_begin)(const char* name) {
  const std::uint32_t id = karst_note_id(note_name_of(name));
  if (id != 0) record_note(NoteKind::kFrameBegin, id, nullptr, 0);
}

KARST_API(void, integer_of)(const char* name, std::int64_t value) { karst_api_integer(note_name_of(name), value); }

KARST_API(void, number_of)(const char* name, std::uint64_t bits) { karst_api_number(note_name_of(name), bits); }

KARST_API(void, frame_of)(const char* name) { karst_api_frame(note_name_of(name)); }

KARST_API(void, request_begin)(std::uint64_t id) { record_number(NoteKind::kRequestBegin, 0, id); }
KARST_API(void, request_end)(std::uint64_t id) { record_number(NoteKind::kRequestEnd, 0, id); }
KARST_API(void, request)(std::uint64_t id) { record_number(NoteKind::kRequest, 0, id); }

KARST_API(void, flow)(std::uint64_t id) { record_number(NoteKind::kFlow, 0, id); }
KARST_API(void, flow_end)(std::uint64_t id) { record_number(NoteKind::kFlowEnd, 0, id); }

KARST_API(void, color)(std::uint32_t color) {
  if (color != 0 && is_switched_on()) record_number(NoteKind::kColor, 0, color & 0xffffff);
}

/// The name's first colour counts, as it is part of its entry.
KARST_API(void, name_color)(NoteName* name, std::uint32_t color) {
  const ColorText text(color);
  note_id_with_values(name, text.text, color != 0 ? sizeof text.text : 0);
}

/// Of too many colours the later ones are none.
KARST_API(void, colored_message)(const char* text, std::size_t size, std::uint32_t color) {
  const ColorText values(color);
  NoteName* name = color != 0 ? note_name_of_color(color & 0xffffff) : nullptr;
  record_text(NoteKind::kMessage, text, size,
              name != nullptr ? note_id_with_values(name, values.text, sizeof values.text) : 0);
}
