// SPDX-License-Identifier: MIT
// The kinds of notes (format/note.h), a line for each: its number and meaning, the words that people read, and what
// code asks of it. Code that handles one kind alone names it; all other code asks kind_of_note().
//
// A note has a name, bytes, or both. "Number" below: 64 bits, the lowest byte first, upper bytes that are 0 left out.
#pragma once
#include <cstddef>
#include <cstdint>

namespace karst::format {

/// What people choose among in a list of notes, with its word: X(name, word).
#define KARST_NOTE_GROUPS(X) \
  X(kMessage, "message")     \
  X(kValue, "value")         \
  X(kFrame, "frame")         \
  X(kRequest, "request")     \
  X(kText, "text")           \
  X(kRecord, "record")       \
  X(kPicture, "picture")     \
  X(kOther, "other")         \
  X(kCall, "call")           \
  X(kColor, "color")

enum class NoteGroup : std::uint8_t {
#define KARST_NOTE_GROUP(name, word) name,
  KARST_NOTE_GROUPS(KARST_NOTE_GROUP)
#undef KARST_NOTE_GROUP
};
inline constexpr const char* kNoteGroupWords[] = {
#define KARST_NOTE_GROUP(name, word) word,
    KARST_NOTE_GROUPS(KARST_NOTE_GROUP)
#undef KARST_NOTE_GROUP
};
inline constexpr std::size_t kNoteGroups = sizeof kNoteGroupWords / sizeof kNoteGroupWords[0];

/// What a note's bytes are.
enum class NoteBytes : std::uint8_t {
  kNone,
  kText,      ///< the program's, shown in quotation marks
  kInteger,   ///< a number, signed
  kDouble,    ///< the bits of an IEEE 754 double
  kId,        ///< a number that names something: a request, a flow
  kValues,    ///< of a call (format/values.h)
  kRecord,    ///< of no call: the values of both halves of the name's description (format/values.h)
  kLog,       ///< a level and the arguments of the format that is the name (format/log.h)
  kFiber,     ///< FiberNote
  kColor,     ///< a byte each of blue, green and red
  kPicture,   ///< format/picture.h
  kOverhead,  ///< an Overhead, and ticks (overhead_note())
};

/// Where a note is shown.
enum class NotePlace : std::uint8_t {
  kListed,  ///< among calls, and in lists of notes
  kOfCall,  ///< with the call whose values it has; the page lists it on request
  kLook,    ///< as the look of its call; the page lists it on request
  kPart,    ///< with the note that it goes on from
  kCost,    ///< nowhere: tracing says it, not the program; its time is taken out of calls
};

/// What of a note's bytes may tell more than how long things took.
enum class NoteReveals : std::uint8_t {
  kAll,
  kName,     ///< a name, from word kFiberNameWord on
  kNothing,  ///< so that it stays in stripped traces
};

/// X(name, number, word, group, bytes, place, reveals, line, bare line): the line is how people read the note, with
/// {name} and {value}. The bare line stands for it where there is no value, or, of an id, where it is 0.
#define KARST_NOTE_KINDS(X)                                                                                      \
  /* without a text the name is the message */                                                                   \
  X(kMessage, 1, "message", kMessage, kText, kListed, kAll, "{value}", "{name}")                                 \
  /* a value of what is named */                                                                                 \
  X(kInteger, 2, "integer", kValue, kInteger, kListed, kAll, "{name} = {value}", nullptr)                        \
  X(kNumber, 3, "number", kValue, kDouble, kListed, kAll, "{name} = {value}", nullptr)                           \
  /* one of what is named ends here and the next one begins */                                                   \
  X(kFrame, 4, "frame", kFrame, kNone, kListed, kAll, "frame of {name}", nullptr)                                \
  X(kRequestBegin, 5, "request begins", kRequest, kId, kListed, kAll, "request {value} begins", nullptr)         \
  X(kRequestEnd, 6, "request ends", kRequest, kId, kListed, kAll, "request {value} ends", nullptr)               \
  /* the thread works on this request from here on; 0: on none */                                                \
  X(kRequest, 7, "works on", kRequest, kId, kListed, kAll, "works on request {value}", "works on no request")    \
  /* belongs to the call that the thread is in */                                                                \
  X(kText, 8, "text", kText, kText, kListed, kAll, "{value}", nullptr)                                           \
  /* of the next call of the function that is named */                                                           \
  X(kArguments, 9, "arguments", kCall, kValues, kOfCall, kAll, "{name} is called with {value}", nullptr)         \
  /* what the call of the named function that the thread is in returns */                                        \
  X(kReturned, 10, "returned", kCall, kValues, kOfCall, kAll, "{name} returns {value}", nullptr)                 \
  /* before the line stands its level; without one the name is the line */                                       \
  X(kLog, 11, "log", kMessage, kLog, kListed, kAll, "{value}", nullptr)                                          \
  /* the thread goes on with another fiber, or on its own stack */                                               \
  X(kFiber, 12, "fiber", kOther, kFiber, kListed, kName, "goes on with fiber {value}", "leaves its fiber")       \
  /* what is named has happened here: `malloc(size=24) = 0x5555` */                                              \
  X(kRecord, 13, "record", kRecord, kRecord, kListed, kAll, "{name}{value}", nullptr)                            \
  /* of the call that the thread is in */                                                                        \
  X(kColor, 14, "color", kColor, kColor, kLook, kAll, "color {value}", nullptr)                                  \
  /* one of what is named begins here; the next kFrame of this name ends it */                                   \
  X(kFrameBegin, 15, "frame begins", kFrame, kNone, kListed, kAll, "frame of {name} begins", nullptr)            \
  /* of what is named, or its first part */                                                                      \
  X(kPicture, 16, "picture", kPicture, kPicture, kListed, kAll, "picture of {name}, {value}",                    \
    "picture of {name}, which is damaged")                                                                       \
  /* a further part of it */                                                                                     \
  X(kPicturePart, 17, "part of a picture", kPicture, kNone, kPart, kAll, "more of a picture of {name}", nullptr) \
  /* the call that the thread is in is a step of the flow of this number */                                      \
  X(kFlow, 18, "flow", kRequest, kId, kListed, kAll, "step of flow {value}", nullptr)                            \
  /* the same, and the last one: the number may be used again */                                                 \
  X(kFlowEnd, 19, "flow ends", kRequest, kId, kListed, kAll, "last step of flow {value}", nullptr)               \
  /* up to here tracing kept the thread busy or waiting */                                                       \
  X(kOverhead, 20, "overhead", kOther, kOverhead, kCost, kNothing, "tracing {value}", nullptr)

enum class NoteKind : std::uint8_t {
#define KARST_NOTE_KIND(name, number, ...) name = number,
  KARST_NOTE_KINDS(KARST_NOTE_KIND)
#undef KARST_NOTE_KIND
};

/// A line of the table.
struct KindOfNote {
  NoteKind kind;
  const char* word;
  NoteGroup group;
  NoteBytes bytes;
  NotePlace place;
  NoteReveals reveals;
  const char* line;
  const char* bare_line;  ///< null: none

  /// Whether it stands among calls and in lists.
  constexpr bool is_listed() const { return place == NotePlace::kListed; }
  /// Whether it belongs to a call.
  constexpr bool is_of_call() const { return place == NotePlace::kOfCall || place == NotePlace::kLook; }
};

/// In the order of their numbers, from 1 on.
inline constexpr KindOfNote kNoteKinds[] = {
#define KARST_NOTE_KIND(name, number, word, group, bytes, place, reveals, line, bare_line) \
  {NoteKind::name, word, NoteGroup::group, NoteBytes::bytes, NotePlace::place, NoteReveals::reveals, line, bare_line},
    KARST_NOTE_KINDS(KARST_NOTE_KIND)
#undef KARST_NOTE_KIND
};
inline constexpr std::uint32_t kLastNoteKind = sizeof kNoteKinds / sizeof kNoteKinds[0];

/// Of kinds of a later version.
inline constexpr KindOfNote kUnknownNote = {
    NoteKind{0}, "unknown", NoteGroup::kOther, NoteBytes::kNone, NotePlace::kListed, NoteReveals::kAll, "", nullptr};

/// Never fails: what no line has is kUnknownNote.
constexpr const KindOfNote& kind_of_note(std::uint32_t number) {
  return number != 0 && number <= kLastNoteKind ? kNoteKinds[number - 1] : kUnknownNote;
}
constexpr const KindOfNote& kind_of_note(NoteKind kind) { return kind_of_note(static_cast<std::uint32_t>(kind)); }

static_assert([] {
  for (std::uint32_t i = 0; i < kLastNoteKind; ++i)
    if (static_cast<std::uint32_t>(kNoteKinds[i].kind) != i + 1) return false;
  return true;
}());

}  // namespace karst::format
