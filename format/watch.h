// SPDX-License-Identifier: MIT
// The watched part of an arena: which calls are to keep themselves (`--slowest`, `--over`), and those that are kept.
//
//   ArenaWatching | rules | watches | slots | moments | candidates | kept blocks
//
// Requesters (`karst run` before the program goes on, `karst on` at any time) enter rules and, for each function that
// one of them means, a watch; the process takes them over when it is told to go on, or by a request (format/control.h).
// So it is with watches that are to end, or to go on.
// From then on a watched function's exits compare the time that the call took with the function's limit. A call over it
// is entered into a *slot* of its watch, by the thread that made it, without a lock:
//
//   slot    duration in ticks << 16 | candidate        0: free
//
// Of a watch for the slowest calls, which has `most` slots, a longer call takes the place of the shortest one by a
// compare-and-exchange, so that the slots are the longest calls at any moment, whatever threads do. Of one for calls
// over a time, slots are handed out until there are `most`. A *candidate* says which call it was; when the maintenance
// thread has copied the blocks of all threads that lie in the call's time and has filled the slot's *moment*, the
// candidate is free again and the slot's lower half 0. A slot that still names a candidate is a call whose events are
// in the ring alone: a reader takes it from there, so a process that is killed between the two loses nothing.
//
// Kept blocks are copies of the ring's, with the same header; `state` kFull: it is in use. A moment is whole if its
// `turn` is even and not 0. Outsiders write rules, watches and the two counts of them; all else is the process's.
#ifndef KARST_FORMAT_WATCH_H
#define KARST_FORMAT_WATCH_H

#include <cstddef>
#include <cstdint>

namespace karst::format {

inline constexpr std::uint32_t kWatchRules = 64;
inline constexpr std::uint32_t kWatches = 1 << 16;
inline constexpr std::uint32_t kWatchSlots = 1 << 17;
inline constexpr std::uint32_t kWatchCandidates = 1 << 14;                    ///< number 0 means none
inline constexpr std::uint32_t kWatchMost = 10'000;                           ///< calls that a watch keeps
inline constexpr std::uint64_t kWatchLongest = (std::uint64_t{1} << 48) - 1;  ///< a longer call counts as so long

struct ArenaWatching {
  // Wanted: written by requesters.
  std::uint32_t rule_count;   ///< taken; a rule is complete when its `kind` is not 0
  std::uint32_t watch_count;  ///< taken; a watch is complete when its `state` is not 0
  // State: written by the process.
  std::uint32_t applied;       ///< watches that the process has looked at
  std::uint32_t slots_used;    ///< handed out
  std::uint64_t rules_offset;  ///< in the arena, as all of these
  std::uint64_t watches_offset;
  std::uint64_t slots_offset;
  std::uint64_t moments_offset;
  std::uint64_t candidates_offset;
  std::uint64_t blocks_offset;
  std::uint32_t block_capacity;     ///< memory for what is kept
  std::uint32_t blocks_used;        ///< that were ever in use
  std::uint64_t without_candidate;  ///< calls over the limit for which there was no candidate, or no slot
  std::uint64_t too_deep;           ///< calls that were not watched, as too many were open in their thread
  std::uint32_t refused;            ///< watches that could not be taken over
  std::uint32_t changes;            ///< wanted: raised by requesters when they have changed the state of a watch
};
static_assert(sizeof(ArenaWatching) == 96);

struct ArenaWatchRule {
  std::uint32_t kind;  ///< MomentKind::kSlowest or kOver; 0: not complete
  std::uint32_t most;  ///< calls of each function
  std::uint64_t over_ns;
  std::uint64_t margin_ns;  ///< kept on both sides of a call
  std::uint64_t every_ns;   ///< kOver: at most one in so much time; 0: any number
  char text[160];           ///< as it was given; NUL-terminated
};
static_assert(sizeof(ArenaWatchRule) == 192);

enum class WatchState : std::uint32_t {
  kNone = 0,
  kWanted = 1,
  kWatching = 2,
  kRefused = 3,   ///< there are too many, or memory is short, or it is a watch of nothing
  kUnwanted = 4,  ///< by a requester: it is to end; what it kept stays
  kEnded = 5,     ///< a requester may make it kWanted again: it goes on with what it has
};

/// It times calls, or is about to.
constexpr bool watch_is_active(std::uint32_t state) {
  return state == static_cast<std::uint32_t>(WatchState::kWanted) ||
         state == static_cast<std::uint32_t>(WatchState::kWatching);
}

struct ArenaWatch {
  std::uint32_t state;  ///< WatchState
  std::uint32_t function;
  std::uint32_t rule;
  std::uint32_t next;        ///< number + 1 of another watch of the same function; 0: none
  std::uint32_t first_slot;  ///< kSlowest: its slots follow each other
  std::uint32_t taken;       ///< kOver: calls that have got a slot
  std::uint64_t given_up;    ///< kOver: calls over the time that were too many, or too soon
  std::uint64_t last_ticks;  ///< kOver: end of the last one
  std::uint64_t over_ticks;
  std::uint64_t every_ticks;
  std::uint64_t margin_ticks;
};
static_assert(sizeof(ArenaWatch) == 64);

struct ArenaCandidate {
  std::uint64_t begin_ticks;
  std::uint64_t end_ticks;
  std::uint32_t watch;
  std::uint32_t slot;
  std::uint32_t thread;  ///< index into the arena's threads
  std::uint32_t tid;
};
static_assert(sizeof(ArenaCandidate) == 32);

struct ArenaMoment {
  std::uint32_t turn;  ///< odd: being changed; 0: there is none
  std::uint32_t watch;
  std::uint32_t thread;
  std::uint32_t tid;
  std::uint64_t begin_ticks;
  std::uint64_t end_ticks;
  std::uint64_t from_ticks;
  std::uint64_t to_ticks;
  std::uint64_t whole_from;   ///< as MomentRecord::whole_from
  std::uint64_t saved_ticks;  ///< when the first copy was done
  std::uint32_t gave_up;      ///< 1: memory for what is kept was too small
  std::uint32_t reserved;
};
static_assert(sizeof(ArenaMoment) == 72);

constexpr std::uint64_t make_slot(std::uint64_t ticks, std::uint32_t candidate) {
  return (ticks < kWatchLongest ? ticks : kWatchLongest) << 16 | candidate;
}
constexpr std::uint32_t slot_candidate(std::uint64_t slot) { return static_cast<std::uint32_t>(slot & 0xffff); }
constexpr std::uint64_t slot_ticks(std::uint64_t slot) { return slot >> 16; }
static_assert(kWatchCandidates <= 1 << 16);

}  // namespace karst::format
#endif
