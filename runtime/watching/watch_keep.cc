// SPDX-License-Identifier: MIT
// The maintenance process's task: takes the candidates of calls that have ended, finds the blocks of their time by the
// index, copies them, and looks once more when hooks have stored what they had in hand.
#include "runtime/watching/watch_keep.h"

#include <sys/mman.h>

#include "arch/cpu.h"
#include "format/watch.h"
#include "runtime/recording/arena.h"
#include "runtime/recording/block_begins.h"
#include "runtime/recording/thread.h"
#include "runtime/system/memory.h"
#include "runtime/system/own_process.h"
#include "runtime/system/syscalls.h"
#include "runtime/watching/kept_blocks.h"
#include "runtime/watching/watch.h"

namespace karst::runtime {

using namespace format;

namespace {

// What had not been stored yet when a block was copied, by hooks that were under way in other threads, is fetched once
// more so much later.
constexpr std::uint64_t kSecondLookNs = 3'000'000;
constexpr std::uint64_t kNone = ~std::uint64_t{0};

/// A block of the range, as the index has it.
struct Place {
  std::uint64_t ticks;
  std::uint32_t block;
  std::uint32_t thread;
  std::uint64_t end;
};

struct Tables {
  Place* places;  // of the range at hand
  std::uint32_t place_count;
  std::uint32_t* before;         // by thread: number + 1 of its last block that begins before the range
  std::uint32_t* touched;        // threads that have one
  std::uint8_t* after;           // by thread: it has blocks that begin behind the range
  std::uint32_t* touched_after;  // threads that have such
  std::uint64_t* next;           // by thread: begin of its block that follows in the range
  std::uint32_t* first_node;     // by slot: its moment's list of kept blocks
  std::uint32_t* waiting;        // slots whose moments are to be completed
  std::uint32_t waiting_count;
};
Tables g;

ArenaMoment& moment(std::uint32_t slot) {
  return g_arena.table<ArenaMoment>(g_arena.watching_layout().moments_offset)[slot];
}
std::uint64_t& slot_word(std::uint32_t slot) {
  return g_arena.table<std::uint64_t>(g_arena.watching_layout().slots_offset)[slot];
}
ArenaCandidate& candidate_at(std::uint32_t candidate) {
  return g_arena.table<ArenaCandidate>(g_arena.watching_layout().candidates_offset)[candidate];
}

template <typename T>
bool map(T*& table, std::uint64_t count) {
  const long got = sys::mmap(0, align_up(count * sizeof(T), KARST_BLOCK_SIZE), PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
  if (sys::failed(got)) return false;
  store(table, reinterpret_cast<T*>(got));
  return true;
}

/// Blocks that were taken before the index was there.
void fill_begins(BlockBegin* begins) {
  const std::uint32_t count = g_arena.blocks_reserved();
  for (std::uint32_t i = 0; i < count; ++i) {
    const BlockHeader& b = *g_arena.block(i);
    const std::uint64_t ticks = load(b.ticks);
    if (load(b.generation) % 2 == 0 && load(begins[i].ticks) == 0 && load(b.thread) < kArenaThreads) {
      begins[i].thread = load(b.thread);
      exchange_if(begins[i].ticks, std::uint64_t{0}, ticks);
    }
  }
}

// ---- the blocks of a range ----------------------------------------------------------------------

/// The older first, in place.
void sort(Place* places, std::uint32_t count) {
  const auto sift = [places](std::uint32_t at, std::uint32_t end) {
    for (std::uint32_t child = 2 * at + 1; child < end; child = 2 * at + 1) {
      if (child + 1 < end && places[child].ticks < places[child + 1].ticks) ++child;
      if (places[at].ticks >= places[child].ticks) return;
      const Place swapped = places[at];
      places[at] = places[child];
      places[child] = swapped;
      at = child;
    }
  };
  for (std::uint32_t i = count / 2; i-- != 0;) sift(i, count);
  for (std::uint32_t end = count; end > 1;) {
    const Place last = places[--end];
    places[end] = places[0];
    places[0] = last;
    sift(0, end);
  }
}

/// All blocks that may have events from `from` to `to`: those that begin there, and of each thread the last one before,
/// which also says what the thread is inside of. False if a thread has later blocks alone, and lacks all of the range.
bool list(std::uint64_t from, std::uint64_t to) {
  const std::uint32_t reserved = g_arena.blocks_reserved();
  std::uint32_t touched = 0;
  std::uint32_t later = 0;
  g.place_count = 0;
  for (std::uint32_t i = 0; i < reserved; ++i) {
    const std::uint64_t ticks = load(g_block_begins[i].ticks);
    const std::uint32_t thread = load(g_block_begins[i].thread);
    if (ticks == 0 || thread >= kArenaThreads) continue;
    if (ticks > to) {
      // One block of the thread is enough; which one does not matter, as it joined before all of them.
      if (g.after[thread] == 0) g.touched_after[later++] = thread;
      g.after[thread] = 1;
      continue;
    }
    if (ticks >= from) {
      g.places[g.place_count++] = {ticks, i, thread, 0};
      continue;
    }
    std::uint32_t& last = g.before[thread];
    if (last == 0) g.touched[touched++] = thread;
    if (last == 0 || load(g_block_begins[last - 1].ticks) < ticks) last = i + 1;
  }
  for (std::uint32_t i = 0; i < touched; ++i) {
    const std::uint32_t thread = g.touched[i];
    const std::uint32_t block = g.before[thread] - 1;
    g.before[thread] = 0;
    const std::uint64_t exited = load(g_arena.thread(thread).exited_ticks);
    if (exited == 0 || exited >= from)
      g.places[g.place_count++] = {load(g_block_begins[block].ticks), block, thread, 0};
  }
  sort(g.places, g.place_count);
  for (std::uint32_t i = 0; i < g.place_count; ++i) g.after[g.places[i].thread] = 0;
  bool all = true;
  for (std::uint32_t i = 0; i < later; ++i) {
    const std::uint32_t thread = g.touched_after[i];
    all = all && (g.after[thread] == 0 || load(g_arena.thread(thread).joined_ticks) > to);
    g.after[thread] = 0;
  }
  return all;
}

/// A thread of which something of the range was overwritten before anybody looked: it ended within, and has nothing
/// left.
std::uint64_t end_of_vanished_threads(std::uint64_t from) {
  const ArenaHeader& h = g_arena.header();
  if (load(h.hand) <= g_arena.block_capacity()) return 0;
  std::uint64_t latest = 0;
  const std::uint32_t threads = g_arena.thread_count();
  for (std::uint32_t i = 0; i < threads; ++i) {
    const ArenaThread& t = g_arena.thread(i);
    const std::uint64_t exited = load(t.exited_ticks);
    if (exited >= from && exited > latest && history_blocks(t) == 0 && load(t.overwritten_events) != 0) latest = exited;
  }
  return latest;
}

/// Keeps the blocks of the range for this slot; returns from when on nothing of it is missing.
std::uint64_t copy_range(std::uint32_t slot, std::uint64_t from, std::uint64_t to, std::uint32_t& gave_up) {
  std::uint64_t whole_from = list(from, to) ? from : to;
  const auto missing_until = [&](std::uint64_t ticks) { whole_from = ticks > whole_from ? ticks : whole_from; };
  for (std::uint32_t i = 0; i < g.place_count; ++i) g.next[g.places[i].thread] = kNone;
  for (std::uint32_t i = g.place_count; i-- != 0;) {
    Place& p = g.places[i];
    p.end = g.next[p.thread] == kNone ? to : g.next[p.thread];  // a block ends where its thread's next one begins
    g.next[p.thread] = p.ticks;
  }
  // The oldest first, as they are the next to go; if memory may be too small for all the latest, so that what is kept
  // has no gaps behind its begin.
  const bool latest_first = g.place_count > kept_blocks_free();
  for (std::uint32_t n = 0; n < g.place_count; ++n) {
    const Place& p = g.places[latest_first ? g.place_count - 1 - n : n];
    std::uint64_t sequence = 0;
    const KeptCopy result = keep_block(g.first_node[slot], p.block, p.thread, p.ticks, sequence);
    const bool oldest = g.next[p.thread] == p.ticks;  // of its thread, in the range
    if (result == KeptCopy::kKept && oldest && sequence != 0 && p.ticks > from) missing_until(p.ticks);
    if (result != KeptCopy::kKept) missing_until(p.end);
    if (result == KeptCopy::kNoMemory) gave_up = 1;
  }
  missing_until(end_of_vanished_threads(from));
  return whole_from < to ? whole_from : to;
}

// ---- moments ------------------------------------------------------------------------------------

std::uint64_t ticks_in(std::uint64_t ns) { return ns * ticks_per_us(g_arena.header()) / 1000; }

void wait_for(std::uint32_t slot) {
  for (std::uint32_t i = 0; i < g.waiting_count; ++i)
    if (g.waiting[i] == slot) return;
  g.waiting[g.waiting_count++] = slot;
}

void save(std::uint32_t candidate) {
  const ArenaCandidate call = candidate_at(candidate);
  if (call.slot >= kWatchSlots || call.watch >= kWatches) return;
  const std::uint64_t word = load(slot_word(call.slot));
  if (slot_candidate(word) != candidate) return;  // not published yet, or replaced
  const std::uint64_t margin =
      g_arena.table<ArenaWatch>(g_arena.watching_layout().watches_offset)[call.watch].margin_ticks;
  ArenaMoment& m = moment(call.slot);
  const std::uint32_t turn = m.turn | 1;
  store(m.turn, turn);
  release_blocks(g.first_node[call.slot]);
  m.watch = call.watch;
  m.thread = call.thread;
  m.tid = call.tid;
  m.begin_ticks = call.begin_ticks;
  m.end_ticks = call.end_ticks;
  m.from_ticks = call.begin_ticks > margin ? call.begin_ticks - margin : 0;
  if (m.from_ticks < g_arena.header().start_ticks) m.from_ticks = g_arena.header().start_ticks;
  m.to_ticks = call.end_ticks + margin;
  m.gave_up = 0;
  m.whole_from = copy_range(call.slot, m.from_ticks, m.to_ticks, m.gave_up);
  m.saved_ticks = arch::time_stamp();
  if (!exchange_if(slot_word(call.slot), word, make_slot(slot_ticks(word), 0))) {
    // A longer call has come, and has freed the candidate; its own is still to be seen.
    release_blocks(g.first_node[call.slot]);
    m.begin_ticks = m.end_ticks = 0;
    store(m.turn, turn + 1 == 0 ? 2 : turn + 1);
    return;
  }
  store(m.turn, turn + 1 == 0 ? 2 : turn + 1);
  free_candidate(candidate);
  if (m.gave_up == 0) wait_for(call.slot);
}

/// The margins behind calls, and what was under way, when their time has come. Returns when that is for the next one.
std::uint64_t complete(std::uint64_t now) {
  const std::uint64_t second = ticks_in(kSecondLookNs);
  std::uint64_t earliest = kNone;
  for (std::uint32_t i = 0; i < g.waiting_count;) {
    const std::uint32_t slot = g.waiting[i];
    ArenaMoment& m = moment(slot);
    if (m.begin_ticks == 0) {
      g.waiting[i] = g.waiting[--g.waiting_count];
      continue;
    }
    const std::uint64_t due = (m.to_ticks > m.saved_ticks ? m.to_ticks : m.saved_ticks) + second;
    if (now < due) {
      earliest = due < earliest ? due : earliest;
      ++i;
      continue;
    }
    g.waiting[i] = g.waiting[--g.waiting_count];
    const std::uint32_t turn = m.turn | 1;
    store(m.turn, turn);
    // What begins in the margin behind the call, and the blocks that were being written to.
    const std::uint64_t whole = copy_range(slot, m.end_ticks, m.to_ticks, m.gave_up);
    if ((m.gave_up != 0 || m.to_ticks > m.saved_ticks) && whole > m.end_ticks && whole > m.whole_from)
      m.whole_from = whole;
    store(m.turn, turn + 1 == 0 ? 2 : turn + 1);
  }
  return earliest;
}

}  // namespace

bool reserve_slots(std::uint32_t first, std::uint32_t count) {
  const ArenaWatching& w = g_arena.watching_layout();
  return g_arena.reserve_part(w.slots_offset + first * sizeof(std::uint64_t), count * sizeof(std::uint64_t)) &&
         g_arena.reserve_part(w.moments_offset + first * sizeof(ArenaMoment), count * sizeof(ArenaMoment));
}

bool prepare_keeping() {
  const std::uint32_t blocks = g_arena.most_blocks();
  if (g.places == nullptr &&
      !(map(g.places, blocks + std::uint64_t{kArenaThreads}) && map(g.before, kArenaThreads) &&
        map(g.touched, kArenaThreads) && map(g.after, kArenaThreads) && map(g.touched_after, kArenaThreads) &&
        map(g.next, kArenaThreads) && map(g.first_node, kWatchSlots) && map(g.waiting, kWatchSlots)))
    return false;
  BlockBegin* begins = nullptr;
  if (!prepare_kept_blocks() || !map(begins, blocks)) return false;
  store(g_block_begins, begins);
  fill_begins(begins);
  return true;
}

bool renew_keeping() {
  // Private memory, with what the parent had in it.
  sys::madvise(g_block_begins, align_up(g_arena.most_blocks() * sizeof(BlockBegin), KARST_BLOCK_SIZE), MADV_DONTNEED);
  sys::madvise(g.before, kArenaThreads * sizeof(std::uint32_t), MADV_DONTNEED);
  sys::madvise(g.after, kArenaThreads, MADV_DONTNEED);
  sys::madvise(g.first_node, kWatchSlots * sizeof(std::uint32_t), MADV_DONTNEED);
  g.waiting_count = 0;
  return renew_kept_blocks();
}

std::uint64_t keep_moments(const Moment& now) {
  apply_watches();
  if (!is_watching()) return kOnWake;
  static std::uint32_t s_polite;  // the maintenance process that is; it may go and be made again
  if (const auto self = static_cast<std::uint32_t>(sys::gettid()); self != s_polite) {
    make_own_process_polite();
    s_polite = self;
  }
  if (take_pending())
    for (std::uint32_t candidate = next_candidate(1); candidate != 0; candidate = next_candidate(candidate + 1))
      save(candidate);
  const std::uint64_t earliest = complete(now.ticks);
  const std::uint64_t rate = ticks_per_us(g_arena.header());
  if (earliest == kNone) return kOnWake;
  const std::uint64_t ticks = arch::time_stamp();
  return earliest <= ticks || rate == 0 ? 1'000'000 : (earliest - ticks) / rate * 1000 + 50'000;
}

}  // namespace karst::runtime
