// SPDX-License-Identifier: MIT
// The slot of a hook that a signal handler has interrupted between its look at the cursor and its taking of a slot
// (arch/x86_64/hooks.S). Called by the hooks alone; async-signal-safe.
#include "runtime/recording/arena.h"
#include "runtime/recording/marks.h"
#include "runtime/recording/state.h"
#include "runtime/system/assertion.h"
#include "runtime/system/forked.h"
#include "runtime/system/memory.h"

namespace karst::runtime {

using namespace format;

namespace {

/// Fills the last empty slot of those in [from, to) with a pad. False if there is none.
bool fill_last(std::uintptr_t from, std::uintptr_t to, const BlockHeader& block) {
  for (; to > from; to -= sizeof(Event)) {
    Event& slot = reinterpret_cast<Event*>(to)[-1];
    if (load(slot) != 0) continue;
    store(slot, block.ticks << KARST_EVENT_TICK_SHIFT | make_mark(0, Mark::kPad));
    return true;
  }
  return false;
}

std::uintptr_t first_slot(const BlockHeader* block) { return reinterpret_cast<std::uintptr_t>(block + 1); }

}  // namespace

// The hook read the cursor `known`, then a handler recorded events, and a slot was taken at wherever the cursor stood
// meanwhile. Which one that is shows by its being empty, as handlers have filled theirs. Mostly it is the last one, and
// is given back. (A slot that a handler has left by a jump, or that another context of this thread has in mind, is
// empty too; it may then get the pad in place of the one that was taken, and who has it in mind writes over that.)
extern "C" void karst_fill_claimed(std::uintptr_t known) {
  ThreadState& state = *karst_state;
  const std::uintptr_t cursor = load(state.cursor);
  const std::uintptr_t last = cursor - sizeof(Event);
  KARST_ASSERT(known % sizeof(Event) == 0 && cursor % sizeof(Event) == 0);
  if (settled(cursor) != cursor) {  // there was none to take, and no event since
    take_slots(state.cursor, cursor, last);
    return;
  }
  if (cursor == 0 || in_forked_child()) return;
  const BlockHeader* now = block_of(cursor);
  BlockHeader* then = g_arena.block_at(known);  // a forked child has another arena
  if (then == now && known < cursor) {
    std::uintptr_t empty = known;
    while (empty < last && load(*reinterpret_cast<Event*>(empty)) != 0) empty += sizeof(Event);
    if (empty == last && load(*reinterpret_cast<Event*>(last)) == 0 && take_slots(state.cursor, cursor, last)) return;
    fill_last(known, cursor, *now);
    return;
  }
  if (fill_last(first_slot(now), cursor, *now) || then == nullptr || then == now) return;
  // A handler went on to another block and left one with an empty slot, which is not recycled so soon.
  if (load(then->thread) == state.thread && load(then->holes_before) != 0 &&
      load(then->state) == static_cast<std::uint32_t>(BlockState::kFull))
    fill_last(known, first_slot(then) + kEventsPerBlock * sizeof(Event), *then);
}

}  // namespace karst::runtime
