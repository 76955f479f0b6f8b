// SPDX-License-Identifier: MIT
// What a hook cannot do in its few instructions: the thread's next block, and words that belong together. Lock-free: a
// signal handler that comes in between goes the same way for itself, and a compare-and-exchange shows it.
#include <sys/prctl.h>

#include "arch/cpu.h"
#include "format/note.h"
#include "runtime/clock/clock.h"
#include "runtime/recording/arena.h"
#include "runtime/recording/block_begins.h"
#include "runtime/recording/interruptions.h"
#include "runtime/recording/marks.h"
#include "runtime/recording/mode.h"
#include "runtime/recording/seams.h"
#include "runtime/recording/thread.h"
#include "runtime/recording/thread_parts.h"
#include "runtime/system/assertion.h"
#include "runtime/system/forked.h"
#include "runtime/system/memory.h"
#include "runtime/system/syscalls.h"

namespace karst::runtime {

using namespace format;

namespace {

/// Events of this process are kept. In a forked child that threads find by their ids, nothing is.
bool may_record() {
  if (!g_arena.exists() || recording_has_stopped() || is_counting() || !is_switched_on()) return false;
  return !threads_are_found_by_tid() || !in_forked_child();
}

}  // namespace

namespace {

/// What took less is not told: an event more for each would cost more than it explains.
constexpr std::uint64_t kToldOverhead = std::uint64_t{1} << 15;  // ticks, some 10 us

/// False: such a note is not made. Where short calls are left out it would be something that happened in one.
bool is_told(std::uint64_t ticks) { return ticks >= kToldOverhead && karst_min_duration == 0; }

bool put_overhead(ThreadState& state, Overhead why, std::uint64_t ticks) {
  const std::uint64_t said = overhead_note(why, ticks);
  const std::uint32_t words = note_words(note_bytes_of(said));
  return put_words(state, 2 + words, true, [=](std::uint32_t i) {
    constexpr std::uint32_t kBits = 8 * kNoteBytesInWord;
    if (i == 0) return make_mark(0, Mark::kNote);
    if (i == 1) return make_note_head({NoteKind::kOverhead, 0, words});
    return make_note_word((said >> ((i - 2) * kBits)) & ((std::uint64_t{1} << kBits) - 1));
  });
}

/// Of what the event took that is about to be recorded. Where stacks are found it may be the first one of another
/// fiber: a note in front of it would be the last one's, which may go on in another thread by now.
void put_taken(ThreadState& state, Overhead why, std::uint64_t ticks) {
  if (load(karst_marks_slowly) == 0 && is_told(ticks)) put_overhead(state, why, ticks);
}

}  // namespace

// Side by side, so that they fill 8 bytes: memory of all threads' own is dear.
__attribute__((tls_model("initial-exec"))) __thread Inside t_inside;
__thread std::uint32_t karst_stack;

BlockBegin* g_block_begins;

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
  // Once all memory is there, none is made: two readings of the clock less. Until then a thread may make some, or wait
  // for another one that does.
  const std::uint64_t asked = g_arena.has_all_blocks() ? 0 : arch::time_stamp();
  WaitForTaking wait;
  BlockHeader* next = g_arena.take_block(settled(before), state.spare, wait);
  const std::uint64_t taking = asked != 0 ? arch::time_stamp() - asked - wait.ticks : 0;
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
      // A handler that came in between may have found a block: then the old one is history already, perhaps another's.
      exchange_if(old->state, static_cast<std::uint32_t>(BlockState::kActive),
                  static_cast<std::uint32_t>(BlockState::kFull));
    } else if (nowhere) {
      ++state.sequence;
    }
    return;
  }
  const std::uint64_t ticks = event_time();
  next->thread = state.thread;
  next->sequence = old != nullptr ? old->sequence + 1 : state.sequence;
  next->ticks = ticks;
  arch::increment_locally(t.begun_blocks);
  note_block_begin(static_cast<std::uint32_t>(g_arena.key_of(*next)) - 1, state.thread, ticks);
  Arena::publish(*next);
  const std::uintptr_t first = reinterpret_cast<std::uintptr_t>(next) + kBlockHeaderSize;
  notice_interruptions();  // of whoever will have a slot of this block
  if (!take_block_words(state, before, begin_before, first, ticks << KARST_EVENT_TICK_SHIFT)) {
    notice_none();
    arch::decrement_locally(t.begun_blocks);
    Arena::give_back(*next);  // a handler was faster
    return;
  }
  state.epoch = epoch_of(ticks);
  g_arena.append(state.thread, last, *next);  // at once: the system call below is where signals come in
  if (taking != 0) put_taken(state, Overhead::kMemory, taking);
  if (wait.ticks != 0) put_taken(state, Overhead::kTaking, wait.ticks);
  // Threads are named after they have begun. An orderly end asks for the name once more; in case there will be
  // none, ask now and then.
  const std::uint64_t s = next->sequence;
  if (!g_no_system_calls && s != 0 && (s & (s - 1)) == 0) sys::call(SYS_prctl, PR_GET_NAME, sys::word(t.name));
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

}  // namespace

// A handler may interrupt this anywhere and fork. In the child what was interrupted goes on with what it had in hand,
// which is its parent's: only when that is through does the child become a process of its own.
extern "C" void karst_slow_path() {
  std::uint64_t beginning = 0;  // as a child: ticks that it took, without the first block, which is told by itself
  do {
    if (in_forked_child()) {
      if (t_inside.slow_paths != 0 || !own_arena()) {
        aim_at_sink(*karst_state);
        return;
      }
      beginning = event_time() - g_arena.header().start_ticks;
    }
    ++t_inside.slow_paths;
    asm volatile("" ::: "memory");
    give_slot();
    asm volatile("" ::: "memory");
    KARST_ASSERT(t_inside.slow_paths > 0);
    --t_inside.slow_paths;
  } while (in_forked_child());
  // What came before the process's start is not in the trace.
  if (beginning != 0 && karst_state->live != 0) put_taken(*karst_state, Overhead::kChild, beginning);
}

namespace {

bool put_group(ThreadState& state, const Event* words, std::uint32_t count) {
  if (count == 1) return put_group<1>(state, words);
  return count == 2 ? put_group<2>(state, words) : put_group<3>(state, words);
}

/// `put(state)` puts words that belong together, or says that the thread needs a block first. A state that is not the
/// thread's own any more (in a forked child) reads as zero.
template <typename Put>
__attribute__((always_inline)) inline void record(Put put) {
  if (load(karst_marks_slowly) != 0) find_stack_of_note(reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)));
  if (!threads_are_found_by_tid()) [[likely]] {
    while (!put(*karst_state)) karst_slow_path();
    return;
  }
  const sys::SignalsBlocked guard;
  if (!own_arena()) return;
  ThreadState* state = find_by_tid(static_cast<std::uint32_t>(sys::gettid()));
  if (state == nullptr) return;
  while (!put(*state)) next_block(*state);
}

}  // namespace

bool may_record_notes() { return may_record(); }

bool is_recording() { return may_record() && (threads_are_found_by_tid() || karst_state->live != 0); }

void record_group(const Event* words, std::uint32_t count) {
  if (is_recording()) record([=](ThreadState& state) { return put_group(state, words, count); });
}

void record_overhead(Overhead why, std::uint64_t ticks) {
  if (!is_told(ticks) || !is_recording()) return;
  record([=](ThreadState& state) { return put_overhead(state, why, ticks); });
}

void record_note(NoteKind kind, std::uint32_t name, const unsigned char* bytes, std::uint32_t size) {
  if (!may_record()) return;
  const std::uint32_t words = note_words(size);
  KARST_ASSERT(size <= kMostNoteBytes && name <= kMaxFunctionId);
  const Event head = make_note_head({kind, name, words});
  const auto word = [=](std::uint32_t i) {
    if (i == 0) return make_mark(0, Mark::kNote);
    if (i == 1) return head;
    std::uint64_t payload = 0;
    const std::uint32_t first = (i - 2) * kNoteBytesInWord;
    if (first + sizeof payload <= size)
      return make_note_word(word_at(bytes + first) & ((std::uint64_t{1} << 8 * kNoteBytesInWord) - 1));
    for (std::uint32_t b = 0; b < kNoteBytesInWord && first + b < size; ++b)
      payload |= std::uint64_t{bytes[first + b]} << (8 * b);
    return make_note_word(payload);
  };
  record([=](ThreadState& state) { return put_words(state, 2 + words, true, word); });
}

void record_note_words(NoteKind kind, std::uint32_t name, const std::uint64_t* payloads, std::uint32_t words) {
  if (!may_record()) return;
  KARST_ASSERT(words <= note_words(kMostNoteBytes) && name <= kMaxFunctionId);
  const Event head = make_note_head({kind, name, words});
  const auto word = [=](std::uint32_t i) {
    if (i == 0) return make_mark(0, Mark::kNote);
    return i == 1 ? head : make_note_word(payloads[i - 2]);
  };
  record([=](ThreadState& state) { return put_words(state, 2 + words, true, word); });
}

namespace {

/// `put` as for record(). False: nothing is recorded.
template <typename Put>
__attribute__((always_inline)) inline bool record_fast(Put put) {
  if (load(karst_marks_slowly) == 0) [[likely]] {
    while (!put(*karst_state)) karst_slow_path();
    return true;
  }
  if (!may_record()) return false;
  record(put);
  return true;
}

/// `call` 0: none.
__attribute__((always_inline)) inline bool put_short_note(NoteKind kind, std::uint32_t name, unsigned __int128 bytes,
                                                          std::uint32_t size, Event call) {
  const std::uint32_t words = note_words(size);
  KARST_ASSERT(words >= 1 && size <= sizeof bytes && name <= kMaxFunctionId);
  const Event head = make_note_head({kind, name, words});
  // Each word in a line of its own: in a loop they would not stay in registers.
  const auto put = [=](ThreadState & state) __attribute__((always_inline)) {
    constexpr std::uint32_t kBits = 8 * kNoteBytesInWord;
    constexpr std::uint64_t kMask = (std::uint64_t{1} << kBits) - 1;
    const TakenSlots taken = take_words(state, 2 + words + (call != 0 ? 1 : 0), true);
    if (taken.first == nullptr) return false;
    taken.put(0, make_mark(0, Mark::kNote));
    taken.put(1, head);
    if (call != 0) taken.put(2 + words, call);
    taken.put(2, make_note_word(static_cast<std::uint64_t>(bytes) & kMask));
    if (words > 1) taken.put(3, make_note_word(static_cast<std::uint64_t>(bytes >> kBits) & kMask));
    if (words > 2) taken.put(4, make_note_word(static_cast<std::uint64_t>(bytes >> 2 * kBits) & kMask));
    if (words > 3) taken.put(5, make_note_word(static_cast<std::uint64_t>(bytes >> 3 * kBits)));
    return true;
  };
  return record_fast(put);
}

}  // namespace

void record_short_note(NoteKind kind, std::uint32_t name, unsigned __int128 bytes, std::uint32_t size) {
  put_short_note(kind, name, bytes, size, 0);
}

bool record_short_note_and_call(NoteKind kind, std::uint32_t name, unsigned __int128 bytes, std::uint32_t size,
                                Event call) {
  return put_short_note(kind, name, bytes, size, call);
}

bool record_note_and_call(NoteKind kind, std::uint32_t name, const unsigned char* bytes, std::uint32_t size,
                          Event call) {
  KARST_ASSERT(size <= kMostNoteBytes && name <= kMaxFunctionId && call != 0);
  const std::uint32_t words = note_words(size);
  const Event head = make_note_head({kind, name, words});
  return record_fast([=](ThreadState & state) __attribute__((always_inline)) {
    constexpr std::uint32_t kBits = 8 * kNoteBytesInWord;
    const TakenSlots taken = take_words(state, 2 + words + 1, true);
    if (taken.first == nullptr) return false;
    taken.put(0, make_mark(0, Mark::kNote));
    taken.put(1, head);
    for (std::uint32_t i = 0; i < words; ++i) {
      const std::uint64_t payload = word_at(bytes + std::size_t{i} * kNoteBytesInWord);
      const std::uint32_t left = size - i * kNoteBytesInWord;
      const std::uint32_t bits = left < kNoteBytesInWord ? 8 * left : kBits;
      taken.put(2 + i, make_note_word(payload & ((std::uint64_t{1} << bits) - 1)));
    }
    taken.put(2 + words, call);
    return true;
  });
}

void record_note(NoteKind kind, std::uint32_t name, const NotePiece* pieces, std::uint32_t count, std::uint32_t size) {
  if (!may_record()) return;
  const std::uint32_t words = note_words(size);
  KARST_ASSERT(size <= kMostNoteBytes && name <= kMaxFunctionId);
  const Event head = make_note_head({kind, name, words});
  struct Place {
    std::uint32_t piece, byte;
  } place{};
  // Words are asked for in their order, and from the first one on again.
  const auto word = [=, &place](std::uint32_t i) {
    if (i == 0) return make_mark(0, Mark::kNote);
    if (i == 1) {
      place = {};
      return head;
    }
    std::uint64_t payload = 0;
    for (std::uint32_t b = 0; b < kNoteBytesInWord && place.piece < count; ++b) {
      const NotePiece& piece = pieces[place.piece];
      payload |= std::uint64_t{piece.from[place.byte]} << (8 * b);
      if (++place.byte == piece.size) place = {place.piece + 1, 0};
    }
    return make_note_word(payload);
  };
  record([&](ThreadState& state) { return put_words(state, 2 + words, true, word); });
}

}  // namespace karst::runtime
