// SPDX-License-Identifier: MIT
// Words that belong together (format/event.h, marks), put into a thread's block at once. thread.h has record_group(),
// which does all that may be needed; this is its common way, for what must be cheap.
#pragma once
#include <cstdint>

#include "arch/cpu.h"
#include "format/event.h"
#include "runtime/clock/clock.h"
#include "runtime/recording/state.h"
#include "runtime/recording/thread_parts.h"
#include "runtime/system/assertion.h"
#include "runtime/system/memory.h"

namespace karst::runtime {

/// Not 0: the calling thread's state is not found by its thread-local pointer, or nothing is recorded any more.
extern "C" __attribute__((visibility("hidden"))) std::uint32_t karst_marks_slowly;

/// The block that a cursor is in, or at whose end it stands.
inline format::BlockHeader* block_of(std::uintptr_t cursor) {
  return reinterpret_cast<format::BlockHeader*>(align_down(settled(cursor) - 1, KARST_BLOCK_SIZE));
}

/// Compare-and-exchange among one thread and its own handlers: without the lock that makes it dear.
inline bool take_slots(std::uintptr_t& cursor, std::uintptr_t from, std::uintptr_t to) {
  return arch::exchange_locally(cursor, from, to);
}

/// The same for two words at once, the first two of a state: true if both were as expected, and are as desired now.
inline bool take_block_words(ThreadState& state, std::uintptr_t cursor, std::uint64_t begin, std::uintptr_t new_cursor,
                             std::uint64_t new_begin) {
  return arch::exchange_two_locally(&state.cursor, cursor, begin, new_cursor, new_begin);
}

/// Taken slots are empty, but for the pad that a handler puts where it finds none that a hook has taken
/// (claimed_slot.cc).
inline bool are_slots(const format::Event* slot, std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; ++i)
    if (load(slot[i]) != 0 && format::event_function(load(slot[i])) != KARST_MARK_PAD) return false;
  return true;
}

/// Slots that were taken, and the time that belongs into them.
struct TakenSlots {
  format::Event* first;  ///< null: the thread needs a block first
  std::uint64_t time;    ///< as events have it; 0 if it was not asked for

  void put(std::uint32_t i, format::Event word) const {
    store(first[i], format::event_has_time(word) ? word | time : word);
  }
};

/// Takes `count` slots that follow each other: 504 at most, or there is no block for them. `timed`: with the time.
__attribute__((always_inline)) inline TakenSlots take_words(ThreadState& state, std::uint32_t count, bool timed) {
  for (;;) {
    const std::uintptr_t cursor = load(state.cursor);
    const std::uintptr_t used = cursor % KARST_BLOCK_SIZE;
    if (!is_slot(cursor)) return {nullptr, 0};
    std::uint64_t ticks = 0;
    if (timed) {
      ticks = stamp();
      if (((static_cast<std::uint32_t>(ticks >> 32) ^ state.epoch) & ~0xffU) != 0) return {nullptr, 0};
    }
    const bool fits = used + count * sizeof(format::Event) <= KARST_BLOCK_SIZE;
    const auto slots = fits ? count : static_cast<std::uint32_t>((KARST_BLOCK_SIZE - used) / sizeof(format::Event));
    if (!take_slots(state.cursor, cursor, cursor + slots * sizeof(format::Event))) continue;
    auto* slot = reinterpret_cast<format::Event*>(cursor);
    const std::uint64_t begin = load(state.begin);
    // As in hooks.S: a handler has been round all of memory since the time was read.
    const bool late = timed && ticks << KARST_EVENT_TICK_SHIFT < begin;
    KARST_ASSERT(in_sink(cursor) || are_slots(slot, slots));
    if (fits && !late) return {slot, ticks << KARST_EVENT_TICK_SHIFT};
    for (std::uint32_t i = 0; i < slots; ++i) store(slot[i], begin | format::make_mark(0, format::Mark::kPad));
  }
}

/// Puts `count` words, `word(0)` and so on, into slots that follow each other. False, and nothing done, when the thread
/// needs a block first.
template <typename Word>
__attribute__((always_inline)) inline bool put_words(ThreadState& state, std::uint32_t count, bool timed, Word word) {
  const TakenSlots taken = take_words(state, count, timed);
  if (taken.first == nullptr) return false;
  for (std::uint32_t i = 0; i < count; ++i) taken.put(i, word(i));
  return true;
}

template <std::uint32_t kCount>
__attribute__((always_inline)) inline bool put_group(ThreadState& state, const format::Event* words) {
  return put_words(state, kCount, kCount != 1 || format::event_has_time(words[0]),
                   [words](std::uint32_t i) { return words[i]; });
}

}  // namespace karst::runtime
