// SPDX-License-Identifier: MIT
// Notes: what a program says of itself beside its calls (include/karst/karst.h), as it lies among a thread's events.
//
//   kNote mark, with the time
//   kNoteHead   kind (8 bits; format/note_kinds.h), name (23 bits), number of words that follow (9 bits)
//   kNoteWord   5 bytes each, the first in the lowest bits; the last word is filled up with zeros
//
// They follow each other in one block, so a note is whole or is none: a reader leaves out what is short of words. A
// name is the id of a function of the module kNotesModule, which every trace has with the others. Such functions have
// calls, too, where they name zones. Notes of values name the function whose call they belong to.
#pragma once
#include <cstddef>
#include <cstdint>

#include "format/event.h"
#include "format/note_kinds.h"

namespace karst::format {

/// What it was that took so much longer than an event does.
enum class Overhead : std::uint8_t {
  kMemory = 1,   ///< the kernel made memory for the thread's next events
  kLibrary = 2,  ///< a library came, whose functions were found and patched
  kName = 3,     ///< a name or a function came up for the first time, and karst was asked about it
  kChild = 4,    ///< a forked child got memory of its own, and karst was told of it
  kTaking = 5,   ///< karst had not taken yet what would have been overwritten (`karst run --all --blocking`)
};
/// Of a kOverhead note: ticks stand behind a byte that says why.
constexpr std::uint64_t overhead_note(Overhead why, std::uint64_t ticks) {
  return ticks << 8 | static_cast<std::uint64_t>(why);
}
constexpr std::uint64_t overhead_ticks(std::uint64_t note) { return note >> 8; }

// In the place of a description (Function::values): what a name says beside notes. Such a name has none.
inline constexpr char kAppInfo[] = "app info:";     ///< a line about the process
inline constexpr char kPlotLook[] = "plot:";        ///< how values of this name are drawn: `plot:line #ff8000 ms`
inline constexpr char kThreadGroup[] = "group of";  ///< and a number: of the arena's thread of this number
/// And of a zone's or a message's name: its colour, `#ff8000`.
inline constexpr char kColorMark = '#';
inline constexpr std::uint32_t kColorDigits = 6;

/// The module whose functions are the names of notes; it has no code. An address is where its text lies in the arena.
inline constexpr char kNotesModule[] = "[notes]";
/// The same for the name of fibers' notes. It is of this module alone, so that readers know at once who has fibers. In
/// a fiber's lane its calls are the times when the fiber waited.
inline constexpr char kFibersModule[] = "[fibers]";
inline constexpr char kSuspended[] = "[suspended]";
/// Modules of functions that have a name and no code of their own: those that the program itself tells of
/// (include/karst/function.h), and those of an interpreter. An address is where its text lies, as of notes.
inline constexpr char kNamedModule[] = "[named]";
inline constexpr char kPythonModule[] = "[python]";

inline constexpr std::uint32_t kNoteBytesInWord = 5;
/// What is longer is cut.
inline constexpr std::uint32_t kMostNoteBytes = 2000;

struct NoteHead {
  NoteKind kind;
  std::uint32_t name;   ///< FunctionRecord::id; 0: none
  std::uint32_t words;  ///< that follow the head
};

constexpr Event make_note_word(std::uint64_t payload) { return make_mark(payload, Mark::kNoteWord); }
constexpr std::uint64_t note_payload(Event word) { return word >> KARST_EVENT_TICK_SHIFT; }

constexpr Event make_note_head(NoteHead h) {
  return make_mark(static_cast<std::uint64_t>(h.kind) | std::uint64_t{h.name} << 8 | std::uint64_t{h.words} << 31,
                   Mark::kNoteHead);
}
constexpr NoteHead note_head(Event word) {
  const std::uint64_t p = note_payload(word);
  return {static_cast<NoteKind>(p & 0xff), static_cast<std::uint32_t>(p >> 8) & KARST_EVENT_ID_MASK,
          static_cast<std::uint32_t>(p >> 31)};
}
static_assert(note_head(make_note_head({NoteKind::kText, KARST_EVENT_ID_MASK, 511})).words == 511);
static_assert(note_head(make_note_head({NoteKind::kText, KARST_EVENT_ID_MASK, 511})).name == KARST_EVENT_ID_MASK);

/// The numbers of a kFiber note: two words each, the lower 40 bits first. Words that follow are the name of the fiber
/// that is entered; words 2 and 3 are left out where there is none. Number 0 is the thread's own stack.
struct FiberNote {
  std::uint64_t left;     ///< what the thread worked on before
  std::uint64_t entered;  ///< what it works on from here on
  bool left_known;
};
inline constexpr std::uint32_t kFiberNameWord = 4;
/// What is longer is cut.
inline constexpr std::uint32_t kMostFiberNameBytes = 120;
inline constexpr std::uint64_t kFiberLeftUnknown = std::uint64_t{1} << 32;  ///< in word 1

/// `word(i)` is the payload of word i, 0 behind the last one.
template <typename Word>
constexpr FiberNote fiber_note(Word word) {
  constexpr std::uint32_t kBits = 8 * kNoteBytesInWord;
  const std::uint64_t upper = word(1);
  return {word(0) | upper << kBits, word(2) | word(3) << kBits, (upper & kFiberLeftUnknown) == 0};
}

constexpr std::uint32_t note_words(std::uint32_t bytes) { return (bytes + kNoteBytesInWord - 1) / kNoteBytesInWord; }

/// The function that a word names: of a call, or of a note. 0 or above kMaxFunctionId: none.
constexpr std::uint32_t named_function(Event e) {
  return event_is(e, Mark::kNoteHead) ? note_head(e).name : event_function(e);
}
/// The same word with another function in its place.
constexpr Event with_function(Event e, std::uint32_t id) {
  if (!event_is(e, Mark::kNoteHead)) return (e & ~Event{KARST_EVENT_ID_MASK}) | id;
  NoteHead head = note_head(e);
  head.name = id;
  return make_note_head(head);
}

/// The bytes of an integer that are not left out.
constexpr std::uint32_t note_bytes_of(std::uint64_t value) {
  return value == 0 ? 0 : (71U - static_cast<std::uint32_t>(__builtin_clzll(value))) / 8;
}

/// An arena's text as an address that no code has: a name, a source file, a line, and of formats their `values`
/// (format/log.h), with a NUL between each two.
constexpr std::uint64_t make_text_address(std::uint32_t offset, std::uint32_t size) {
  return std::uint64_t{1} << 63 | std::uint64_t{size} << 32 | offset;
}
constexpr bool is_text_address(std::uint64_t address) { return address >> 63 != 0; }
constexpr std::uint32_t text_address_offset(std::uint64_t address) { return static_cast<std::uint32_t>(address); }
constexpr std::uint32_t text_address_size(std::uint64_t address) {
  return static_cast<std::uint32_t>(address >> 32) & 0x7fffffffU;
}

}  // namespace karst::format
