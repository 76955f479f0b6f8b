// SPDX-License-Identifier: MIT
// Names of notes and zones (format/note.h): each is a struct karst_name in the program's memory
// (include/karst/karst.h), which gets a function id when it is first used. The id stays in it, as long as the process
// has this arena or, after a fork, a copy of it.
#pragma once
#include <cstdint>

#include "format/note.h"
#include "runtime/recording/arena.h"
#include "runtime/recording/marks.h"
#include "runtime/recording/mode.h"

namespace karst::runtime {

/// As karst.h has it. The program may write to it: its id is compared with those that there are.
struct NoteName {
  const char* name;
  const char* file;  ///< null: not known
  std::uint32_t line;
  std::uint32_t id;  ///< 0: not entered yet
};

/// A log's format, as karst.h has it. What `texts` says is that of all threads that enter it.
struct NoteFormat {
  NoteName name;
  std::uint32_t texts;  ///< a bit for each argument that is text, and from kBoundedTexts on if its end is bounded
};
inline constexpr std::uint32_t kBoundedTexts = 16;

/// As karst_note_id, of a format whose arguments have these types: the style, and a letter for each. Any context.
std::uint32_t note_format_id(NoteFormat* format, const char* types);

/// The id if notes of it are recorded now, else 0. Any context.
__attribute__((always_inline)) inline std::uint32_t wanted_note(std::uint32_t id) {
  if (id == 0 || id > g_arena.function_count()) return 0;
  if (load(karst_marks_slowly) != 0 && !is_switched_on()) return 0;
  const std::uint32_t flags = load(g_arena.functions()[id].flags);
  return (flags & format::kArenaFunctionNote) != 0 && (flags & format::kArenaFunctionSwitchedOn) != 0 ? id : 0;
}

/// Gives the name its id, which others may have done meanwhile. 0: there are too many. Any context.
__attribute__((cold)) std::uint32_t enter_note(NoteName& name, const char* values, std::uint32_t size);

/// Enters a name whose description says all that there is: no note of it will come, so nobody is asked whether those
/// are wanted. Any context.
__attribute__((cold)) void enter_fact(const char* text, const char* file, const char* values, std::uint32_t size);

/// As karst_note_id, of a name whose notes have values: `values` describes them (format/values.h). Any context.
inline std::uint32_t note_id_with_values(NoteName* name, const char* values, std::uint32_t size) {
  const std::uint32_t id = load(name->id);
  return wanted_note(id != 0 ? id : enter_note(*name, values, size));
}

/// The id of fibers' notes if they are recorded now, else 0. Filters do not concern it: without these notes the calls
/// of several stacks would be taken for those of one. Any context.
std::uint32_t fiber_note_id();

/// A text may be a name in several ways: each has an id of its own.
enum class NameUse : std::uint8_t { kNote, kMemoryTaken, kMemoryFreed };
/// The name whose text lies at `text`, for as long as the process runs; null: there are too many. Any context.
NoteName* note_name_of(const char* text, NameUse use = NameUse::kNote);
/// The same of a colour, 0xrrggbb, which is a name without a text.
NoteName* note_name_of_color(std::uint32_t color);

/// `#rrggbb`, as the description of what has that colour.
struct ColorText {
  explicit ColorText(std::uint32_t color);
  char text[1 + format::kColorDigits];
};

extern "C" {
/// The name's id if notes of it are recorded now, else 0. Enters it the first time, for which it may take a lock and
/// ask the session. Null is allowed. Any context.
__attribute__((visibility("hidden"))) std::uint32_t karst_note_id(NoteName* name);
}

}  // namespace karst::runtime
