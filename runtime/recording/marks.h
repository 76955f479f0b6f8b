// Words that belong together (format/event.h, marks), put into a thread's block at once. thread.h has record_group(),
// which does all that may be needed; this is its common way, for what must be cheap.
#pragma once
#include <cstdint>

#include "arch/cpu.h"
#include "format/event.h"
#include "runtime/clock/clock.h"
#include "runtime/recording/state.h"
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

/// Puts `kCount` words into slots that follow each other. False, and nothing done, when the thread needs a block first.
template <std::uint32_t kCount>
__attribute__((always_inline)) inline bool put_group(ThreadState& state, const format::Event* words) {
  for (;;) {
    const std::uintptr_t cursor = load(state.cursor);
    const std::uintptr_t used = cursor % KARST_BLOCK_SIZE;
    if (!is_slot(cursor)) return false;
    std::uint64_t ticks = 0;
    if (kCount != 1 || format::event_has_time(words[0])) {
      ticks = stamp();
      if (((static_cast<std::uint32_t>(ticks >> 32) ^ state.epoch) & ~0xffU) != 0) return false;
    }
    const bool fits = used + kCount * sizeof(format::Event) <= KARST_BLOCK_SIZE;
    if (!take_slots(state.cursor, cursor, cursor + (fits ? kCount : 1) * sizeof(format::Event))) continue;
    auto* slot = reinterpret_cast<format::Event*>(cursor);
    const std::uint64_t begin = load(state.begin);
    // As in hooks.S: a handler has been round all of memory since the time was read.
    const bool late = ticks << KARST_EVENT_TICK_SHIFT < begin && (kCount != 1 || format::event_has_time(words[0]));
    KARST_ASSERT(are_slots(slot, fits ? kCount : 1));
    if (!fits || late) {
      for (std::uint32_t i = 0; i < (fits ? kCount : 1); ++i)
        store(slot[i], begin | format::make_mark(0, format::Mark::kPad));
      continue;
    }
    for (std::uint32_t i = 0; i < kCount; ++i)
      store(slot[i], format::event_has_time(words[i]) ? words[i] | ticks << KARST_EVENT_TICK_SHIFT : words[i]);
    return true;
  }
}

}  // namespace karst::runtime
