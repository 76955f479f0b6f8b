#include "runtime/recording/thread.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "arch/cpu.h"
#include "runtime/clock/clock.h"
#include "runtime/counting/count.h"
#include "runtime/maintenance/switches.h"
#include "runtime/process/fork.h"
#include "runtime/recording/arena.h"
#include "runtime/recording/marks.h"
#include "runtime/system/assertion.h"
#include "runtime/system/memory.h"
#include "runtime/system/message.h"
#include "runtime/system/syscalls.h"
#include "runtime/watching/watch.h"
#include "runtime/watching/watch_keep.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

namespace karst::runtime {

using namespace format;

namespace {

// Before a thread's first event. Its cursor says "no slot", so nothing else of it is ever read by a hook; in a forked
// child it may point into the sink.
ThreadState g_nobody;

// Where events go that nobody will read: of threads for which there is no memory, and of forked children. These threads
// share one cursor, so what hooks add beyond the end adds up.
alignas(KARST_BLOCK_SIZE) char g_sink[2 * KARST_BLOCK_SIZE];

// One state per entry of the arena's thread table; wiped in forked children.
ThreadState* g_states;

bool g_stopped;
bool g_by_tid;
std::uint32_t g_floors;  // blocks that threads keep beyond the floor of all, by their own wish

// How many slow paths the thread is in: one, and those of the handlers that interrupted them.
__attribute__((tls_model("initial-exec"))) __thread int t_in_slow_path;

bool is_current(const ThreadState* state) { return state >= g_states && state < g_states + kArenaThreads; }
bool g_no_system_calls;

pthread_key_t g_exit_key;
bool g_exit_key_usable;

constexpr std::uint32_t kExitRounds = 3;  // PTHREAD_DESTRUCTOR_ITERATIONS is 4: leave in the last but one at the latest

std::uint32_t epoch_of(std::uint64_t ticks) { return static_cast<std::uint32_t>(ticks >> 32) & ~0xffU; }

bool in_sink(std::uintptr_t cursor) {
  const auto sink = reinterpret_cast<std::uintptr_t>(g_sink);
  return cursor > sink && cursor < sink + sizeof g_sink;
}

void aim_at_sink(ThreadState& state) {
  state.epoch = epoch_of(event_time());
  store(state.cursor, reinterpret_cast<std::uintptr_t>(g_sink) + kBlockHeaderSize);
}

// The state of a calling thread that has left. Its entry may have gone to another thread since, and this state with it.
__attribute__((tls_model("initial-exec"))) __thread ThreadState* t_left;

[[maybe_unused]] bool is_active(const BlockHeader& b) {
  return load(b.state) == static_cast<std::uint32_t>(BlockState::kActive);
}

[[maybe_unused]] bool is_in_life(const ArenaThread& t, ThreadLife life) {
  return load(t.state) == static_cast<std::uint32_t>(life);
}

// Before a thread gives up its block with no next one. A handler may have been here with a later block.
void remember_last(ThreadState& state, std::uint64_t key) {
  for (std::uint64_t known = load(state.last); known == 0 || static_cast<std::int64_t>(key - known) > 0;
       known = load(state.last))
    if (exchange_if(state.last, known, key)) return;
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
  g_arena.give_back_spare(state.spare);
  if (is_counting())
    leave_counts(state);
  else
    leave_watch(state);
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

// A new entry for the calling thread; null when the table is full.
ThreadState* new_thread(std::uint32_t tid) {
  const std::uint32_t index = g_arena.claim_thread();
  if (index == Arena::kNoThread) return nullptr;
  ArenaThread& t = g_arena.thread(index);
  KARST_ASSERT(is_in_life(t, ThreadLife::kClaimed) && load(t.block_count) == 0);
  t.tid = tid;
  t.joined_ticks = event_time();
  t.exited_ticks = 0;
  __atomic_add_fetch(&g_arena.header().overwritten_events, t.overwritten_events, __ATOMIC_RELAXED);
  t.overwritten_events = 0;
  t.lost_events = 0;
  t.block_count = 0;
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
  if (state == nullptr || !is_current(state) || !come_back(*state, tid)) state = new_thread(tid);
  if (state == nullptr) {
    __atomic_add_fetch(&g_arena.header().lost_events, kEventsPerBlock, __ATOMIC_RELAXED);
    aim_at_sink(g_nobody);
    return;
  }
  karst_state = state;
  if (g_exit_key_usable) {
    // libc may use vector registers, which hold the program's arguments or results here.
    arch::with_vectors_kept([](void* of_thread) { pthread_setspecific(g_exit_key, of_thread); }, state);
  }
}

// Gives the thread its next block. Lock-free: a signal handler that comes between does the same for itself, and
// the cmpxchg on the cursor shows it.
void next_block(ThreadState& state) {
  if (load(state.ignored) != 0) return aim_at_sink(state);
  const std::uint64_t begin_before = load(state.begin);  // first: the cursor that belongs to it, or a later one
  const std::uintptr_t before = load(state.cursor);
  ArenaThread& t = g_arena.thread(state.thread);
  const bool nowhere = settled(before) == 0;
  BlockHeader* old = nowhere || in_sink(before) ? nullptr : block_of(before);
  const std::uint64_t last = old != nullptr ? g_arena.key_of(*old) : load(state.last);
  KARST_ASSERT(before % sizeof(Event) == 0);
  // A hook that was interrupted by a fork goes on with its parent's block.
  KARST_ASSERT(old == nullptr || in_forked_child() || (g_arena.block_at(settled(before)) == old && is_active(*old)));
  BlockHeader* next = g_arena.take_block(settled(before), state.spare);
  if (next == nullptr) {
    __atomic_add_fetch(&t.lost_events, kEventsPerBlock, __ATOMIC_RELAXED);
    __atomic_add_fetch(&g_arena.header().lost_events, kEventsPerBlock, __ATOMIC_RELAXED);
    const std::uintptr_t sink = reinterpret_cast<std::uintptr_t>(g_sink) + kBlockHeaderSize;
    if (old != nullptr) remember_last(state, last);
    if (!exchange_if(state.cursor, before, sink)) return;  // a handler found one
    state.epoch = epoch_of(event_time());
    // A gap in the numbers tells the reader.
    if (old != nullptr) {
      state.sequence = old->sequence + 2;
      store(old->state, static_cast<std::uint32_t>(BlockState::kFull));
    } else if (nowhere) {
      ++state.sequence;
    }
    return;
  }
  const std::uint64_t ticks = event_time();
  next->thread = state.thread;
  next->sequence = old != nullptr ? old->sequence + 1 : state.sequence;
  next->ticks = ticks;
  __atomic_add_fetch(&t.block_count, 1, __ATOMIC_ACQ_REL);
  note_block_begin(static_cast<std::uint32_t>(g_arena.key_of(*next)) - 1, state.thread, ticks);
  Arena::publish(*next);
  const std::uintptr_t first = reinterpret_cast<std::uintptr_t>(next) + kBlockHeaderSize;
  if (!take_block_words(state, before, begin_before, first, ticks << KARST_EVENT_TICK_SHIFT)) {
    __atomic_sub_fetch(&t.block_count, 1, __ATOMIC_ACQ_REL);
    Arena::give_back(*next);  // a handler was faster
    return;
  }
  state.epoch = epoch_of(ticks);
  g_arena.append(state.thread, last, *next);  // at once: the system call below is where signals come in
  // Threads are named after they have begun. An orderly end asks for the name once more; in case there will be
  // none, ask now and then.
  const std::uint64_t s = next->sequence;
  if (!g_no_system_calls && s != 0 && (s & (s - 1)) == 0) sys::call(SYS_prctl, PR_GET_NAME, sys::word(t.name));
}

}  // namespace

extern "C" {
__attribute__((tls_model("initial-exec"), visibility("hidden"))) __thread ThreadState* karst_state = &g_nobody;
__attribute__((visibility("hidden"))) std::uint32_t karst_marks_slowly;
__attribute__((visibility("hidden"))) std::uint64_t karst_min_duration;
}

namespace {

void give_slot() {
  ThreadState* state = karst_state;
  // A thread that forked by a raw system call, while another one found that this is a child.
  if (state != &g_nobody && !is_current(state)) state = karst_state = &g_nobody;
  if (state == &g_nobody) {
    join();
    state = karst_state;
    if (state == &g_nobody) return;
  }
  // The clock thread slept, and that was all.
  if (is_slot(state->cursor) && state->epoch == epoch_of(event_time())) return;
  next_block(*state);
}

bool make_states() {
  const long states = sys::mmap(0, sizeof(ThreadState) * kArenaThreads, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
  if (sys::failed(states)) return false;
  g_states = reinterpret_cast<ThreadState*>(states);
  return sys::madvise(g_states, sizeof(ThreadState) * kArenaThreads, MADV_WIPEONFORK) == 0;
}

}  // namespace

// A handler may interrupt this anywhere and fork. In the child what was interrupted goes on with what it had in hand,
// which is its parent's: only when that is through does the child become a process of its own.
extern "C" void karst_slow_path() {
  do {
    if (in_forked_child() && (t_in_slow_path != 0 || !own_arena())) {
      aim_at_sink(*karst_state);
      return;
    }
    t_in_slow_path = t_in_slow_path + 1;
    asm volatile("" ::: "memory");
    give_slot();
    asm volatile("" ::: "memory");
    KARST_ASSERT(t_in_slow_path > 0);
    t_in_slow_path = t_in_slow_path - 1;
  } while (in_forked_child());
}

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

void note_thread_names() {
  if (g_no_system_calls) return;
  const std::uint32_t count = g_arena.thread_count();
  for (std::uint32_t i = 0; i < count; ++i) {
    ArenaThread& t = g_arena.thread(i);
    if (load(t.state) != static_cast<std::uint32_t>(ThreadLife::kLive)) continue;
    char path[64];
    unsigned size = 0;
    const auto text = [&](const char* s) {
      while (*s != '\0') path[size++] = *s++;
    };
    text("/proc/self/task/");
    char digits[10];
    unsigned n = 0;
    for (std::uint32_t v = t.tid; v != 0 || n == 0; v /= 10) digits[n++] = static_cast<char>('0' + v % 10);
    while (n != 0) path[size++] = digits[--n];
    text("/comm");
    path[size] = '\0';
    const long fd = sys::open(path, 0 /* O_RDONLY */);
    if (fd < 0) continue;
    char name[sizeof t.name] = {};
    const long got = sys::read(static_cast<int>(fd), name, sizeof name);
    sys::close(static_cast<int>(fd));
    if (got > 0) {
      name[got - 1] = '\0';  // the newline
      copy(t.name, name, sizeof name);
    }
  }
}

ThreadProgress progress_of(std::uint32_t thread) {
  const ThreadState& state = g_states[thread];
  const std::uint64_t lost = load(g_arena.thread(thread).lost_events);
  const std::uintptr_t cursor = settled(load(state.cursor));
  if (cursor == 0) return {load(state.sequence) * kEventsPerBlock + lost, nullptr, 0};
  const BlockHeader* block = block_of(cursor);
  const auto used =
      static_cast<std::uint32_t>((cursor - reinterpret_cast<std::uintptr_t>(block) - kBlockHeaderSize) / sizeof(Event));
  if (in_sink(cursor)) return {load(state.sequence) * kEventsPerBlock + lost + used, nullptr, 0};
  return {load(block->sequence) * kEventsPerBlock + lost + used, block, used};
}

void stop_recording() {
  g_stopped = true;
  choose_marks();
  aim_at_sink(g_nobody);
  choose_hooks();
}

std::uint64_t recording_progress() {
  std::uint64_t sum = 0;
  const std::uint32_t count = g_arena.thread_count();
  for (std::uint32_t i = 0; i < count; ++i) sum = sum * 31 + load(g_states[i].cursor);
  return sum;
}

// ---- threads that cannot be found by a thread-local pointer (see clone.cc) ----------------------

namespace {

constexpr std::uint32_t kTidSlots = 4096;
std::uint32_t g_index_of_tid[kTidSlots];  // by tid modulo kTidSlots: where the thread was last found

bool is_at(std::uint32_t index, std::uint32_t tid) {
  const ArenaThread& t = g_arena.thread(index);
  return t.tid == tid && load(t.state) == static_cast<std::uint32_t>(ThreadLife::kLive);
}

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

}  // namespace

void find_threads_by_tid() {
  if (g_stopped) return;
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

// ---- what a program asks of its own thread (api.cc) ------------------------------------------------

ThreadState* own_state() {
  const sys::SignalsBlocked guard;
  if (g_stopped) return nullptr;
  if (load(g_by_tid)) {
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

// ---- words that belong together (hooks/unwind.cc, hooks/jumps.cc) -------------------------------

namespace {

bool put_group(ThreadState& state, const Event* words, std::uint32_t count) {
  if (count == 1) return put_group<1>(state, words);
  return count == 2 ? put_group<2>(state, words) : put_group<3>(state, words);
}

}  // namespace

bool recording_has_stopped() { return g_stopped; }
bool threads_are_found_by_tid() { return load(g_by_tid); }

bool is_recording() {
  if (!g_arena.exists() || g_stopped || is_counting() || !is_switched_on()) return false;
  if (load(g_by_tid)) return !in_forked_child();
  return karst_state->live != 0;
}

// A state that is not the thread's own any more (in a forked child) reads as zero.
void record_group(const Event* words, std::uint32_t count) {
  if (!is_recording()) return;
  if (!load(g_by_tid)) [[likely]] {
    while (!put_group(*karst_state, words, count)) karst_slow_path();
    return;
  }
  const sys::SignalsBlocked guard;
  if (!own_arena()) return;
  ThreadState* state = find_by_tid(static_cast<std::uint32_t>(sys::gettid()));
  if (state == nullptr) return;
  while (!put_group(*state, words, count)) next_block(*state);
}

}  // namespace karst::runtime
