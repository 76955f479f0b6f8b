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
// exit bit set they are *marks*, which say how the exit that is the thread's next event came about (without a mark: by
// an ordinary return). Marks are written off the fast path alone.
//
// This header is also read by the assembler: constants are macros, C++ is fenced.
#ifndef KARST_FORMAT_EVENT_H
#define KARST_FORMAT_EVENT_H

#define KARST_EVENT_TICK_SHIFT 24
#define KARST_EVENT_TICK_BITS 40
#define KARST_EVENT_EXIT_BIT 0x800000
#define KARST_EVENT_ID_MASK 0x7fffff

#ifndef __ASSEMBLER__
#include <cstdint>

namespace karst::format {

/// One enter or exit as it lies in memory and in the file.
using Event = std::uint64_t;

inline constexpr std::uint32_t kMaxFunctionId = KARST_EVENT_ID_MASK - 256;

/// Ids of marks.
enum class Mark : std::uint32_t {
  kUnwound = kMaxFunctionId + 1,  ///< the call ended by an exception or a forced unwind
  kJumped = kMaxFunctionId + 2,   ///< the call ended by a longjmp over it
};
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

static_assert(event_ticks(make_event(0x123456789abcdefULL, true, 7), 0x123450000000000ULL) == 0x123456789abcdefULL);

}  // namespace karst::format
#endif
#endif
