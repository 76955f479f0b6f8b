// SPDX-License-Identifier: MIT
// What other tools' interfaces become: the notes that karst.h has, too (start/notes_api.h).
#pragma once
#include <cstdint>

#include "format/note.h"
#include "runtime/modules/note_names.h"
#include "runtime/recording/arena.h"
#include "runtime/recording/mode.h"
#include "runtime/recording/seams.h"
#include "runtime/recording/thread.h"
#include "runtime/start/notes_api.h"

namespace karst::runtime {

inline bool has_trace() { return g_arena.exists() && own_arena(); }
/// What is said now would be kept.
inline bool is_heard() { return has_trace() && is_switched_on(); }

/// Text that its owner may change or free once the call is over.
struct Said {
  const char* data = "";
  std::uint32_t size = 0;
};
/// Up to a NUL. Null is empty.
inline Said said(const char* text, std::uint64_t most = format::kMostNoteBytes) {
  Said s;
  if (text == nullptr) return s;
  s.data = text;
  while (s.size < format::kMostNoteBytes && s.size < most && text[s.size] != '\0') ++s.size;
  return s;
}

/// A message, or a text of the innermost call: `before`, `between` and `text` in one, unless `before` is empty.
inline void say(format::NoteKind kind, Said before, Said between, Said text) {
  if (!is_heard()) return;
  NotePiece pieces[3];
  std::uint32_t count = 0;
  std::uint32_t total = 0;
  const auto add = [&](Said s) {
    const std::uint32_t room = format::kMostNoteBytes - total;
    const std::uint32_t size = s.size < room ? s.size : room;
    if (size == 0) return;
    pieces[count++] = {reinterpret_cast<const unsigned char*>(s.data), size};
    total += size;
  };
  if (before.size != 0) {
    add(before);
    add(between);
  }
  add(text);
  record_note(kind, 0, pieces, count, total);
}

/// Requests whose number the program did not choose: ranges that may begin and end on different threads.
inline constexpr std::uint64_t kFirstRangeNumber = std::uint64_t{1} << 40;

/// The same number as a double.
constexpr std::uint64_t double_of_float(std::uint32_t bits) {
  const std::uint64_t sign = std::uint64_t{bits >> 31} << 63;
  std::uint32_t exponent = bits >> 23 & 0xff;
  std::uint64_t fraction = bits & 0x7fffff;
  if (exponent == 0xff) return sign | std::uint64_t{0x7ff} << 52 | fraction << 29;
  if (exponent == 0 && fraction == 0) return sign;
  std::uint64_t shifted = 0;
  if (exponent == 0) {
    for (; (fraction & 0x800000) == 0; fraction <<= 1) ++shifted;
    fraction &= 0x7fffff;
    exponent = 1;
  }
  return sign | (std::uint64_t{exponent} + 1023 - 127 - shifted) << 52 | fraction << 29;
}
static_assert(double_of_float(0x3fc00000) == 0x3ff8000000000000 && double_of_float(1) == 0x36a0000000000000);

}  // namespace karst::runtime
