// SPDX-License-Identifier: MIT
// Threads that cannot be found by a thread-local pointer (process/clone.cc): their hooks ask the kernel for the
// thread's number at each event, and record with signals blocked.
#include "runtime/clock/clock.h"
#include "runtime/recording/arena.h"
#include "runtime/recording/seams.h"
#include "runtime/recording/thread.h"
#include "runtime/recording/thread_parts.h"
#include "runtime/system/assertion.h"
#include "runtime/system/memory.h"
#include "runtime/system/syscalls.h"

namespace karst::runtime {

using namespace format;

namespace {

bool g_by_tid;

constexpr std::uint32_t kTidSlots = 4096;
std::uint32_t g_index_of_tid[kTidSlots];  // by tid modulo kTidSlots: where the thread was last found

bool is_at(std::uint32_t index, std::uint32_t tid) {
  const ArenaThread& t = g_arena.thread(index);
  return t.tid == tid && load(t.state) == static_cast<std::uint32_t>(ThreadLife::kLive);
}

}  // namespace

ThreadState* find_by_tid(std::uint32_t tid) {
  const std::uint32_t count = g_arena.thread_count();
  std::uint32_t& hint = g_index_of_tid[tid % kTidSlots];
  const std::uint32_t guess = load(hint);
  if (guess < count && is_at(guess, tid)) return &g_states[guess];
  for (std::uint32_t i = count; i-- != 0;) {
    if (!is_at(i, tid)) continue;
    store(hint, i);
    return &g_states[i];
  }
  return nullptr;
}

bool threads_are_found_by_tid() { return load(g_by_tid); }

void find_threads_by_tid() {
  if (recording_has_stopped()) return;
  store(g_by_tid, true);
  choose_hooks();
}

namespace {

/// As karst_hook_trim: true if the exit's call was short and had nothing in it, and its enter is taken back.
bool take_back(ThreadState& state, std::uint64_t ticks, std::uint32_t id) {
  const std::uintptr_t used = state.cursor % KARST_BLOCK_SIZE;
  if (used != 0 && used <= kBlockHeaderSize) return false;
  auto* slot = reinterpret_cast<Event*>(state.cursor) - 1;
  const Event enter = *slot;
  const ArenaFunction* functions = g_arena.functions();
  if (enter == 0 || event_is_exit(enter) ||
      ((ticks - (enter >> KARST_EVENT_TICK_SHIFT)) & kEventTickMask) >= karst_min_duration ||
      (event_function(enter) != id && functions[event_function(enter)].address != functions[id].address))
    return false;
  store(*slot, Event{0});
  state.cursor -= sizeof(Event);
  return true;
}

}  // namespace

extern "C" void karst_record_by_tid(std::uint64_t event_low_bits) {
  const sys::SignalsBlocked guard;
  if (!own_arena()) return;
  const auto tid = static_cast<std::uint32_t>(sys::gettid());
  ThreadState* state = find_by_tid(tid);
  if (state == nullptr) state = new_thread(tid);
  if (state == nullptr) return;
  std::uint64_t ticks = event_time();
  if (!is_slot(state->cursor) || state->epoch != epoch_of(ticks)) {
    next_block(*state);
    ticks = event_time();
  }
  if (karst_min_duration != 0 && event_is_exit(event_low_bits) &&
      take_back(*state, ticks, event_function(event_low_bits)))
    return;
  auto* slot = reinterpret_cast<Event*>(state->cursor);
  KARST_ASSERT(is_slot(state->cursor) && (in_sink(state->cursor) || load(*slot) == 0));
  state->cursor += sizeof(Event);
  __atomic_store_n(slot, ticks << KARST_EVENT_TICK_SHIFT | event_low_bits, __ATOMIC_RELEASE);
}

}  // namespace karst::runtime
