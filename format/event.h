// SPDX-License-Identifier: MIT
// Events: what one call or return leaves behind, 8 bytes each.
//
//   63                            24 23 22                         0
//   +-------------------------------+--+---------------------------+
//   |   low 40 bits of the clock    |x |        function id        |
//   +-------------------------------+--+---------------------------+
//
// x is 0 for an enter and 1 for an exit. The clock is the TSC; its upper 24 bits (the
// *epoch*) are those of the block's start time: a hook that finds the epoch changed starts
// a new block, so the 40 bits are never ambiguous, however long a thread was idle.
// Function ids are dense from 1; an all-zero slot holds no event (yet). The uppermost ids name no function: with the
// exit bit set they are *marks*, which say what the events alone do not: how a call came to its end. Marks are written
// off the fast path alone. What belongs to a mark lies in the slots right behind it, in the same block:
//
//   kUnwound   exit            the exit is an exception's: the unwinder left the call, or a forced unwind did
//   kSetPlace                  setjmp (or its like) was called at the place that the mark itself names
//   kJumped    kPlace          longjmp: all calls begun since that place was set have ended
//   kSwitched  kPlace kPlace   swapcontext: the thread left the stack at the first place for the one at the second
//   kPad                       nothing; fills a slot where what follows did not fit into the block
//   kNote      kNoteHead kNoteWord...   something that the program said of itself (format/note.h)
//
// kSetPlace and kPlace have a place in the clock's stead: bits 4 to 43 of a stack pointer. kNoteHead and
// kNoteWord have 5 bytes there.
//
// This header is also read by the assembler: constants are macros, C++ is fenced.
#ifndef KARST_FORMAT_EVENT_H
#define KARST_FORMAT_EVENT_H

#define KARST_EVENT_TICK_SHIFT 24
#define KARST_EVENT_TICK_BITS 40
#define KARST_EVENT_EXIT_BIT 0x800000
#define KARST_EVENT_ID_MASK 0x7fffff
#define KARST_MARK_SET_PLACE 0x7fff02

#ifndef __ASSEMBLER__
#include <cstdint>

namespace karst::format {

/// One enter or exit as it lies in memory and in the file.
using Event = std::uint64_t;

inline constexpr std::uint32_t kMaxFunctionId = KARST_EVENT_ID_MASK - 256;

/// Ids of marks.
enum class Mark : std::uint32_t {
  kUnwound = kMaxFunctionId + 1,
  kJumped = kMaxFunctionId + 2,
  kSetPlace = kMaxFunctionId + 3,
  kSwitched = kMaxFunctionId + 4,
  kPlace = kMaxFunctionId + 5,
  kPad = kMaxFunctionId + 6,
  kNote = kMaxFunctionId + 7,
  kNoteHead = kMaxFunctionId + 8,
  kNoteWord = kMaxFunctionId + 9,
};
static_assert(static_cast<std::uint32_t>(Mark::kSetPlace) == KARST_MARK_SET_PLACE);
inline constexpr std::uint64_t kEventTickMask = (std::uint64_t{1} << KARST_EVENT_TICK_BITS) - 1;

constexpr std::uint32_t event_function(Event e) { return static_cast<std::uint32_t>(e) & KARST_EVENT_ID_MASK; }
constexpr bool event_is_mark(Event e) { return event_function(e) > kMaxFunctionId; }
constexpr bool event_is_exit(Event e) { return (e & KARST_EVENT_EXIT_BIT) != 0; }

/// Full clock value (ticks) of an event in a block that started at `block_ticks`.
constexpr std::uint64_t event_ticks(Event e, std::uint64_t block_ticks) {
  return (block_ticks & ~kEventTickMask) | (e >> KARST_EVENT_TICK_SHIFT);
}

constexpr Event make_event(std::uint64_t ticks, bool exit, std::uint32_t function) {
  return (ticks << KARST_EVENT_TICK_SHIFT) | (exit ? Event{KARST_EVENT_EXIT_BIT} : 0) | function;
}

constexpr Event make_mark(std::uint64_t ticks, Mark mark) {
  return make_event(ticks, true, static_cast<std::uint32_t>(mark));
}
constexpr bool event_is(Event e, Mark mark) {
  return (e & (KARST_EVENT_EXIT_BIT | KARST_EVENT_ID_MASK)) == make_mark(0, mark);
}
constexpr Event make_place(std::uint64_t stack_pointer, Mark mark = Mark::kPlace) {
  return make_mark(stack_pointer >> 4, mark);
}
constexpr bool event_has_time(Event e) {
  return !event_is(e, Mark::kPlace) && !event_is(e, Mark::kSetPlace) && !event_is(e, Mark::kNoteHead) &&
         !event_is(e, Mark::kNoteWord);
}
constexpr std::uint64_t event_place(Event e) { return e >> KARST_EVENT_TICK_SHIFT; }

static_assert(event_ticks(make_event(0x123456789abcdefULL, true, 7), 0x123450000000000ULL) == 0x123456789abcdefULL);

}  // namespace karst::format
#endif
#endif
