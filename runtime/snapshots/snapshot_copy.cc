// SPDX-License-Identifier: MIT
// Lists the blocks of a range by their headers, sorts them by their start and copies them oldest first. Gaps in a
// thread's numbers show what was recycled meanwhile.
#include "runtime/snapshots/snapshot_copy.h"

#include <sys/mman.h>

#include "runtime/recording/arena.h"
#include "runtime/recording/thread.h"
#include "runtime/snapshots/checksum.h"
#include "runtime/system/memory.h"
#include "runtime/system/syscalls.h"

namespace karst::runtime {

using namespace format;

namespace {

const Event* events_of(const BlockHeader& b) { return reinterpret_cast<const Event*>(&b + 1); }

/// A torn block gives anything.
struct Contents {
  std::uint64_t end;       ///< of the last event with a time; the block's start when there is none
  std::uint32_t in_range;  ///< events that are not certain to be before the range
};

Contents contents_of(const BlockHeader& b, std::uint64_t ticks, std::uint64_t since) {
  const Event* events = events_of(b);
  std::uint32_t count = kEventsPerBlock;
  while (count != 0 && load(events[count - 1]) == 0) --count;
  Contents found{ticks, count};
  bool any = false;
  for (std::uint32_t n = count; n != 0; --n) {
    const Event e = load(events[n - 1]);
    if (e == 0 || !event_has_time(e)) continue;
    const std::uint64_t at = event_ticks(e, ticks);
    if (!any) found.end = at;
    any = true;
    if (ticks >= since) break;
    if (at >= since) continue;
    found.in_range = count - n;
    break;
  }
  return found;
}

/// How many events of a copy, made of a block that its thread may be writing to, will stay.
std::uint32_t settled_events(const BlockHeader& b, const Event* copied) {
  std::uint32_t count = kEventsPerBlock;
  if (karst_min_duration != 0 && load(b.state) == static_cast<std::uint32_t>(BlockState::kActive)) {
    // As collect/arena/view.cc: slots at the end may have been taken back and used again meanwhile.
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    count = 0;
    while (count != kEventsPerBlock && load(events_of(b)[count]) == copied[count]) ++count;
  }
  while (count != 0 && copied[count - 1] == 0) --count;
  return count;
}

/// The beginnings of what will be read side by side; the processor finds the rest.
void prefetch(const BlockHeader& b) {
  constexpr std::size_t kLine = 64;
  const auto* at = reinterpret_cast<const char*>(&b);
  for (std::size_t third = 0; third < 3; ++third)
    for (std::size_t line = 0; line < 4; ++line) __builtin_prefetch(at + third * (kEventsSize / 3) + line * kLine);
  __builtin_prefetch(at + kBlockSize - kLine);
}

bool is_live(std::uint32_t thread) {
  return load(g_arena.thread(thread).state) == static_cast<std::uint32_t>(ThreadLife::kLive);
}

}  // namespace

Copying::Copying(std::uint64_t since, std::uint64_t until, std::uint64_t not_before)
    : since_(since), until_(until), not_before_(not_before) {
  const std::uint32_t most = g_arena.blocks_reserved();
  const std::uint64_t list_size = align_up(std::uint64_t{most} * sizeof(Place) + 1, KARST_BLOCK_SIZE);
  constexpr std::uint64_t kKnownSize = kArenaThreads * sizeof(std::uint64_t);
  size_ = 2 * list_size + kKnownSize;
  // Only what is used becomes real.
  const long got = sys::mmap(0, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
  if (sys::failed(got)) return;
  missing_until(not_before);
  places_ = reinterpret_cast<Place*>(got);
  other_ = reinterpret_cast<Place*>(static_cast<std::uint64_t>(got) + list_size);
  known_ = reinterpret_cast<std::uint64_t*>(static_cast<std::uint64_t>(got) + 2 * list_size);
  list(most);
  judge_absent_threads();
  sort();
}

Copying::~Copying() {
  if (places_ != nullptr) sys::munmap(reinterpret_cast<char*>(places_ < other_ ? places_ : other_), size_);
}

void Copying::list(std::uint32_t most) {
  const std::uint32_t capacity = g_arena.block_capacity();
  const std::uint32_t count = most < capacity ? most : capacity;
  constexpr std::uint32_t kAhead = 8;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (i + kAhead < count) {
      const auto* next = reinterpret_cast<const char*>(g_arena.block(i + kAhead));
      __builtin_prefetch(next);
      __builtin_prefetch(next + kBlockSize - sizeof(Event));
    }
    list_block(i);
  }
}

void Copying::list_block(std::uint32_t index) {
  const BlockHeader& b = *g_arena.block(index);
  const std::uint64_t generation = load(b.generation);
  const std::uint32_t state = load(b.state);
  const bool active = state == static_cast<std::uint32_t>(BlockState::kActive);
  if (generation % 2 != 0 || (!active && state != static_cast<std::uint32_t>(BlockState::kFull))) return;
  const std::uint32_t thread = load(b.thread);
  const std::uint64_t sequence = load(b.sequence);
  const std::uint64_t ticks = load(b.ticks);
  if (thread >= kArenaThreads || ticks > until_) return;
  const Contents contents = contents_of(b, ticks, since_);
  // It may have changed hands meanwhile. Then the numbers of its thread's other blocks show that it is missing.
  __atomic_thread_fence(__ATOMIC_ACQUIRE);
  if (load(b.generation) != generation) return;
  std::uint64_t& known = known_[thread];
  const bool before_range = contents.end < since_;
  const bool cannot_be_read = ticks < not_before_;
  if (before_range || cannot_be_read) {
    const std::uint64_t number = (sequence + 2) & kNumber;
    const std::uint64_t gap = !before_range && contents.end >= not_before_ ? kGap : known & kGap;
    known = kSeen | gap | ((known & kNumber) > number ? known & kNumber : number);
    if (cannot_be_read || !active || !is_live(thread)) return;
  }
  known |= kSeen;
  places_[count_++] = {ticks, index, static_cast<std::uint16_t>(thread),
                       static_cast<std::uint16_t>(before_range ? 0 : contents.in_range)};
}

/// Threads of the range of which nothing is left.
void Copying::judge_absent_threads() {
  const std::uint32_t threads = g_arena.thread_count();
  for (std::uint32_t i = 0; i < threads; ++i) {
    const ArenaThread& t = g_arena.thread(i);
    if ((known_[i] & kSeen) != 0 || load(t.overwritten_events) + load(t.lost_events) == 0 ||
        load(t.joined_ticks) > until_)
      continue;
    const std::uint32_t state = load(t.state);
    if (state == static_cast<std::uint32_t>(ThreadLife::kLive))
      missing_until(until_);
    else if (state == static_cast<std::uint32_t>(ThreadLife::kExited))
      missing_until(load(t.exited_ticks) < until_ ? load(t.exited_ticks) : until_);
  }
}

/// By radix: time in proportion to the number of blocks, which may be millions.
void Copying::sort() {
  std::uint64_t all = 0;
  for (std::uint64_t i = 1; i < count_; ++i) all |= places_[i].ticks ^ places_[0].ticks;
  for (unsigned shift = 0; shift < 64 && all >> shift != 0; shift += 8) {
    if ((all >> shift & 0xff) == 0) continue;
    std::uint32_t begins[256];
    zero(begins, sizeof begins);
    for (std::uint64_t i = 0; i < count_; ++i) ++begins[places_[i].ticks >> shift & 0xff];
    std::uint32_t sum = 0;
    for (std::uint32_t& b : begins) {
      const std::uint32_t n = b;
      b = sum;
      sum += n;
    }
    for (std::uint64_t i = 0; i < count_; ++i) other_[begins[places_[i].ticks >> shift & 0xff]++] = places_[i];
    Place* const swapped = places_;
    places_ = other_;
    other_ = swapped;
  }
}

void Copying::note_lost(const Place& place) {
  lost_events_ += place.events;
  if (place.events != 0) known_[place.thread] |= kGap;
}

/// The number that a thread's first block has in a trace (format/trace.h, kProcessLate).
std::uint64_t first_sequence() { return (load(g_arena.header().began) & kBeganLate) != 0 ? 1 : 0; }

void Copying::note_copied(const BlockRecord& record) {
  std::uint64_t& known = known_[record.thread];
  const std::uint64_t number = (record.sequence + 1 - first_sequence()) & kNumber;
  const std::uint64_t expected = (known & kNumber) != 0 ? known & kNumber : 1;
  if ((known & kGap) != 0 || number > expected) missing_until(record.ticks);
  // A block before the range was met already when it was listed.
  if (number >= expected) known = kSeen | (number + 1);
}

void Copying::note_gaps_at_end() {
  const std::uint32_t threads = g_arena.thread_count();
  for (std::uint32_t i = 0; i < threads; ++i)
    if ((known_[i] & kGap) != 0) missing_until(until_);
}

/// The bytes written; 0: the block has gone, or is empty.
std::size_t Copying::copy_block(const Place& place, char* to, std::uint64_t& events, std::uint32_t* crc) {
  const BlockHeader& b = *g_arena.block(place.block);
  const std::uint64_t generation = load(b.generation);
  BlockRecord record{load(b.thread), kEventsPerBlock, load(b.sequence) + first_sequence(), load(b.ticks)};
  if (generation % 2 != 0 || record.thread != place.thread || record.ticks != place.ticks) {
    note_lost(place);
    return 0;
  }
  char* const copied = to + sizeof record;
  // A block that is behind its thread and has its last event stays as it is.
  const bool settled =
      load(b.state) == static_cast<std::uint32_t>(BlockState::kFull) && load(events_of(b)[kEventsPerBlock - 1]) != 0;
  std::uint32_t sum = 0;
  if (settled && crc != nullptr) {
    sum = copy_events(copied, events_of(b), checksum(&record, sizeof record, *crc));
  } else {
    copy(copied, events_of(b), kEventsSize);
    record.event_count = settled ? kEventsPerBlock : settled_events(b, reinterpret_cast<const Event*>(copied));
  }
  // The copy counts only if the block did not change hands meanwhile.
  __atomic_thread_fence(__ATOMIC_ACQUIRE);
  if (load(b.generation) != generation) {
    note_lost(place);
    return 0;
  }
  note_copied(record);
  if (record.event_count == 0) return 0;
  copy(to, &record, sizeof record);
  const std::size_t size = sizeof record + record.event_count * sizeof(Event);
  if (crc != nullptr) *crc = settled ? sum : checksum(to, size, *crc);
  events += record.event_count;
  return size;
}

bool Copying::fill(char* payload, std::size_t space, std::uint64_t& size, std::uint64_t& events, std::uint32_t* crc) {
  BlocksHeader header{};
  size = sizeof header;
  events = 0;
  std::uint32_t sum = 0;
  while (next_ < count_ && space - size >= kCopiedBlockMost) {
    if (next_ + 1 < count_) prefetch(*g_arena.block(places_[next_ + 1].block));
    const std::size_t n = copy_block(places_[next_++], payload + size, events, crc != nullptr ? &sum : nullptr);
    if (n != 0) ++header.count;
    size += n;
  }
  if (next_ == count_ && !ended_) {
    ended_ = true;
    note_gaps_at_end();
  }
  if (header.count == 0) return false;
  copy(payload, &header, sizeof header);
  if (crc != nullptr) *crc = joined_checksum(checksum(&header, sizeof header), sum, size - sizeof header);
  return true;
}

}  // namespace karst::runtime
