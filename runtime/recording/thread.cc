// SPDX-License-Identifier: MIT
// How a thread joins at its first event and leaves at its end, and what a program asks for its own thread.
//
// A state belongs to an entry of the arena's table. A thread has g_nobody until it joins, and again when it has left,
// as handlers and late destructors may still come.
#include "runtime/recording/thread.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "arch/cpu.h"
#include "runtime/clock/clock.h"
#include "runtime/recording/arena.h"
#include "runtime/recording/marks.h"
#include "runtime/recording/mode.h"
#include "runtime/recording/seams.h"
#include "runtime/recording/thread_parts.h"
#include "runtime/system/assertion.h"
#include "runtime/system/memory.h"
#include "runtime/system/syscalls.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

namespace karst::runtime {

using namespace format;

ThreadState g_nobody;
alignas(KARST_BLOCK_SIZE) char g_sink[2 * KARST_BLOCK_SIZE];
ThreadState* g_states;
bool g_no_system_calls;
bool g_switched_on = true;
bool g_counting;

bool in_sink(std::uintptr_t cursor) {
  const auto sink = reinterpret_cast<std::uintptr_t>(g_sink);
  return cursor > sink && cursor < sink + sizeof g_sink;
}

void aim_at_sink(ThreadState& state) {
  state.epoch = epoch_of(event_time());
  store(state.cursor, reinterpret_cast<std::uintptr_t>(g_sink) + kBlockHeaderSize);
}

void remember_last(ThreadState& state, std::uint64_t key) {
  for (std::uint64_t known = load(state.last); known == 0 || static_cast<std::int64_t>(key - known) > 0;
       known = load(state.last))
    if (exchange_if(state.last, known, key)) return;
}

namespace {

bool g_stopped;
std::uint32_t g_floors;  // blocks that threads keep beyond the floor of all, by their own wish

pthread_key_t g_exit_key;
bool g_exit_key_usable;

constexpr std::uint32_t kExitRounds = 3;  // PTHREAD_DESTRUCTOR_ITERATIONS is 4: leave in the last but one at the latest

// The state of a calling thread that has left. Its entry may have gone to another thread since, and this state with it.
__attribute__((tls_model("initial-exec"))) __thread ThreadState* t_left;

[[maybe_unused]] bool is_in_life(const ArenaThread& t, ThreadLife life) {
  return load(t.state) == static_cast<std::uint32_t>(life);
}

void leave(ThreadState& state) {
  ArenaThread& t = g_arena.thread(state.thread);
  if (!g_no_system_calls) sys::call(SYS_prctl, PR_GET_NAME, sys::word(t.name));
  KARST_ASSERT(karst_state == &state && is_in_life(t, ThreadLife::kLive));
  t_left = &state;
  karst_state = &g_nobody;
  const std::uintptr_t cursor = settled(state.cursor);
  if (cursor != 0 && !in_sink(cursor)) {
    state.sequence = block_of(cursor)->sequence + 1;
    remember_last(state, g_arena.key_of(*block_of(cursor)));
    KARST_ASSERT(g_arena.block_at(cursor) == block_of(cursor) && is_active(*block_of(cursor)));
    store(block_of(cursor)->state, static_cast<std::uint32_t>(BlockState::kFull));
  }
  state.cursor = 0;
  thread_leaves(state);
  g_arena.give_back_spare(state.spare);
  __atomic_sub_fetch(&g_floors, t.floor_blocks, __ATOMIC_RELAXED);
  store(t.floor_blocks, 0U);
  t.exited_ticks = event_time();
  __atomic_sub_fetch(&g_arena.header().live_threads, 1, __ATOMIC_RELAXED);
  store(t.state, static_cast<std::uint32_t>(ThreadLife::kExited));
}

// pthread calls this in rounds while the thread ends; other destructors may run traced code, so ours asks for
// another round until the last.
void thread_exits(void* p) {
  auto& state = *static_cast<ThreadState*>(p);
  if (karst_state != &state || state.live == 0) return;  // a forked child, where it is nobody's or another thread's
  if (++state.exit_rounds < kExitRounds) {
    pthread_setspecific(g_exit_key, p);
    return;
  }
  const sys::SignalsBlocked guard;
  leave(state);
}

// A thread that has left comes back when a late destructor or a signal handler calls traced code. False when its entry
// is another thread's by now.
bool come_back(const ThreadState& state, std::uint32_t tid) {
  ArenaThread& t = g_arena.thread(state.thread);
  if (!exchange_if(t.state, static_cast<std::uint32_t>(ThreadLife::kExited),
                   static_cast<std::uint32_t>(ThreadLife::kLive)))
    return false;
  if (t.tid != tid) {  // the other has left as well
    store(t.state, static_cast<std::uint32_t>(ThreadLife::kExited));
    return false;
  }
  t.exited_ticks = 0;
  __atomic_add_fetch(&g_arena.header().live_threads, 1, __ATOMIC_RELAXED);
  return true;
}

}  // namespace

ThreadState* new_thread(std::uint32_t tid) {
  const std::uint32_t index = g_arena.claim_thread();
  if (index == Arena::kNoThread) return nullptr;
  ArenaThread& t = g_arena.thread(index);
  KARST_ASSERT(is_in_life(t, ThreadLife::kClaimed) && history_blocks(t) == 0);
  t.tid = tid;
  t.joined_ticks = event_time();
  t.exited_ticks = 0;
  __atomic_add_fetch(&g_arena.header().overwritten_events, t.overwritten_events, __ATOMIC_RELAXED);
  t.overwritten_events = 0;
  t.lost_events = 0;
  t.begun_blocks = 0;
  t.recycled_blocks = 0;
  t.oldest = 0;
  t.given_name_size = 0;
  t.floor_blocks = 0;
  sys::call(SYS_prctl, PR_GET_NAME, sys::word(t.name));
  store(t.state, static_cast<std::uint32_t>(ThreadLife::kLive));
  __atomic_add_fetch(&g_arena.header().live_threads, 1, __ATOMIC_RELAXED);
  __atomic_add_fetch(&g_arena.header().threads_total, 1, __ATOMIC_RELAXED);

  ThreadState& state = g_states[index];
  state = ThreadState{};
  state.thread = index;
  state.live = 1;
  return &state;
}

void join() {
  const sys::SignalsBlocked guard;
  if (karst_state != &g_nobody) return;  // a handler was here first
  const auto tid = static_cast<std::uint32_t>(sys::gettid());
  ThreadState* state = t_left;
  // A filter of the program's may forbid what a thread needs to join (process/prctl.cc).
  if (sys::is_deadly(SYS_gettid) || sys::is_deadly(SYS_rt_sigprocmask))
    state = nullptr;
  else if (state == nullptr || !is_current(state) || !come_back(*state, tid))
    state = new_thread(tid);
  if (state == nullptr) {
    __atomic_add_fetch(&g_arena.header().lost_events, kEventsPerBlock, __ATOMIC_RELAXED);
    aim_at_sink(g_nobody);
    return;
  }
  karst_state = state;
  thread_has_joined();
  if (g_exit_key_usable) {
    // libc may use vector registers, which hold the program's arguments or results here.
    arch::with_vectors_kept([](void* of_thread) { pthread_setspecific(g_exit_key, of_thread); }, state);
  }
}

extern "C" {
__attribute__((tls_model("initial-exec"), visibility("hidden"))) __thread ThreadState* karst_state = &g_nobody;
__attribute__((visibility("hidden"))) std::uint32_t karst_marks_slowly;
__attribute__((visibility("hidden"))) std::uint64_t karst_min_duration;
}

namespace {

bool make_states() {
  const long states = sys::mmap(0, sizeof(ThreadState) * kArenaThreads, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
  if (sys::failed(states)) return false;
  g_states = reinterpret_cast<ThreadState*>(states);
  return sys::madvise(g_states, sizeof(ThreadState) * kArenaThreads, MADV_WIPEONFORK) == 0;
}

}  // namespace

bool prepare_threads(bool no_system_calls) {
  g_no_system_calls = no_system_calls;
  if (!make_states()) return false;
  // Keys from 32 on make glibc allocate from the program's heap at a thread's first event; then a thread's exit is not
  // announced to us and its floor of history stays.
  if (pthread_key_create(&g_exit_key, thread_exits) == 0) {
    g_exit_key_usable = g_exit_key < 32;
    if (!g_exit_key_usable) pthread_key_delete(g_exit_key);
  }
  return true;
}

void forget_thread() {
  karst_state = &g_nobody;
  t_left = nullptr;
  g_nobody.cursor = 0;
}

bool renew_threads(bool forgotten) {
  g_floors = 0;
  // A hook that was interrupted by the handler that forked goes on with the state that it had: it must stay mapped, and
  // may become the same thread's again.
  if (forgotten || karst_state != &g_nobody) {
    forget_thread();
    return true;
  }
  // The thread that forked is another one, and may hold on to its old state, which must become nobody else's: it reads
  // as zero, so its next event comes by give_slot().
  g_nobody.cursor = 0;
  return make_states();
}

bool recording_has_stopped() { return g_stopped; }

void stop_recording() {
  g_stopped = true;
  choose_marks();
  aim_at_sink(g_nobody);
  choose_hooks();
}

void note_own_name() {
  const ThreadState* state = karst_state;
  if (state != &g_nobody && state->live != 0 && !g_no_system_calls)
    sys::call(SYS_prctl, PR_GET_NAME, sys::word(g_arena.thread(state->thread).name));
}

// ---- what a program asks of its own thread (start/api.cc) ------------------------------------------------

ThreadState* own_state() {
  const sys::SignalsBlocked guard;
  if (g_stopped) return nullptr;
  if (threads_are_found_by_tid()) {
    const auto tid = static_cast<std::uint32_t>(sys::gettid());
    ThreadState* state = find_by_tid(tid);
    return state != nullptr ? state : new_thread(tid);
  }
  // A thread that forked by a raw system call still has its parent's.
  if (karst_state != &g_nobody && !is_current(karst_state)) karst_state = &g_nobody;
  if (karst_state == &g_nobody) join();
  return karst_state != &g_nobody ? karst_state : nullptr;
}

void ignore_thread() {
  const sys::SignalsBlocked guard;
  ThreadState* state = own_state();
  if (state == nullptr || state->ignored != 0) return;
  store(state->ignored, std::uint8_t{1});
  const std::uintptr_t cursor = settled(state->cursor);
  if (cursor != 0 && !in_sink(cursor)) {
    state->sequence = block_of(cursor)->sequence + 1;
    remember_last(*state, g_arena.key_of(*block_of(cursor)));
    aim_at_sink(*state);
    KARST_ASSERT(g_arena.block_at(cursor) == block_of(cursor) && is_active(*block_of(cursor)));
    store(block_of(cursor)->state, static_cast<std::uint32_t>(BlockState::kFull));
  } else {
    aim_at_sink(*state);
  }
  g_arena.give_back_spare(state->spare);
}

bool set_history_floor(ThreadState& state, std::uint32_t blocks) {
  const sys::SignalsBlocked guard;
  ArenaThread& t = g_arena.thread(state.thread);
  const std::uint32_t before = t.floor_blocks;
  const std::uint32_t most = g_arena.block_capacity() / 4;
  std::uint32_t sum = 0;
  do {
    sum = load(g_floors);
    if (blocks > before && (blocks > most || sum - before > most - blocks)) return false;
  } while (!exchange_if(g_floors, sum, sum - before + blocks));
  store(t.floor_blocks, blocks);
  return true;
}

}  // namespace karst::runtime
