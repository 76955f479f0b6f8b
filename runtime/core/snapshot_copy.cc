#include "runtime/core/snapshot_copy.h"

#include <sys/mman.h>

#include "runtime/core/arena.h"
#include "runtime/core/memory.h"
#include "runtime/core/syscalls.h"
#include "runtime/core/thread.h"

namespace karst::runtime {

using namespace format;

namespace {

const Event* events_of(const BlockHeader& b) { return reinterpret_cast<const Event*>(&b + 1); }

/// Of the last event with a time; the block's start when there is none. A torn block gives anything, and is found out
/// when it is copied.
std::uint64_t end_of(const BlockHeader& b, std::uint64_t ticks) {
  const Event* events = events_of(b);
  for (std::uint32_t n = kEventsPerBlock; n != 0; --n) {
    const Event e = load(events[n - 1]);
    if (e != 0 && event_has_time(e)) return event_ticks(e, ticks);
  }
  return ticks;
}

bool is_live(std::uint32_t thread) {
  return load(g_arena.thread(thread).state) == static_cast<std::uint32_t>(ThreadLife::kLive);
}

}  // namespace

Copying::Copying(std::uint64_t since, std::uint64_t until, std::uint64_t not_before)
    : since_(since), not_before_(not_before) {
  const std::uint32_t most = load(g_arena.header().blocks_reserved);
  const std::uint64_t list_size = align_up(std::uint64_t{most} * sizeof(Place) + 1, KARST_BLOCK_SIZE);
  constexpr std::uint64_t kKnownSize = kArenaThreads / 8;
  size_ = 2 * list_size + kKnownSize;
  // Only what is used becomes real.
  const long got = sys::mmap(0, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
  if (sys::failed(got)) return;
  if (not_before > since) whole_from_ = not_before;
  places_ = reinterpret_cast<Place*>(got);
  other_ = reinterpret_cast<Place*>(static_cast<std::uint64_t>(got) + list_size);
  known_ = reinterpret_cast<std::uint64_t*>(static_cast<std::uint64_t>(got) + 2 * list_size);
  list(until);
  sort();
}

Copying::~Copying() {
  if (places_ != nullptr) sys::munmap(reinterpret_cast<char*>(places_ < other_ ? places_ : other_), size_);
}

void Copying::list(std::uint64_t until) {
  const ArenaHeader& h = g_arena.header();
  const std::uint32_t capacity = load(h.block_capacity);
  std::uint32_t count = load(h.blocks_reserved);
  if (count > capacity) count = capacity;
  for (std::uint32_t i = 0; i < count; ++i) {
    const BlockHeader& b = *g_arena.block(i);
    const std::uint64_t generation = load(b.generation);
    const std::uint32_t state = load(b.state);
    const bool active = state == static_cast<std::uint32_t>(BlockState::kActive);
    if (generation % 2 != 0 || (!active && state != static_cast<std::uint32_t>(BlockState::kFull))) continue;
    const std::uint32_t thread = load(b.thread);
    const std::uint64_t ticks = load(b.ticks);
    if (thread >= kArenaThreads || ticks > until || ticks < not_before_) continue;
    if (end_of(b, ticks) < since_) {
      known_[thread / 64] |= std::uint64_t{1} << thread % 64;
      if (!active || !is_live(thread)) continue;
    }
    places_[count_++] = {ticks, i, thread};
  }
  // Threads that ended within the range and of which nothing is left.
  const std::uint32_t threads = load(h.thread_count);
  for (std::uint32_t i = 0; i < threads; ++i) {
    const ArenaThread& t = g_arena.thread(i);
    if (load(t.state) != static_cast<std::uint32_t>(ThreadLife::kExited) || load(t.block_count) != 0 ||
        load(t.overwritten_events) == 0)
      continue;
    const std::uint64_t exited = load(t.exited_ticks);
    if (exited >= since_ && exited > whole_from_) whole_from_ = exited;
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

void Copying::note_first(const BlockRecord& record) {
  std::uint64_t& word = known_[record.thread / 64];
  const std::uint64_t bit = std::uint64_t{1} << record.thread % 64;
  if ((word & bit) != 0) return;
  word |= bit;
  if (record.sequence != 0 && record.ticks > since_ && record.ticks > whole_from_) whole_from_ = record.ticks;
}

/// The bytes written; 0: the block has gone, or is empty.
std::size_t Copying::copy_block(const Place& place, char* to, std::uint64_t& events) {
  const BlockHeader& b = *g_arena.block(place.block);
  const std::uint64_t generation = load(b.generation);
  BlockRecord record{load(b.thread), 0, load(b.sequence), load(b.ticks)};
  if (generation % 2 != 0 || record.thread != place.thread || record.ticks != place.ticks) {
    lost_events_ += kEventsPerBlock;
    return 0;
  }
  copy(to + sizeof record, events_of(b), kEventsPerBlock * sizeof(Event));
  std::uint32_t settled = kEventsPerBlock;
  if (karst_min_duration != 0 && load(b.state) == static_cast<std::uint32_t>(BlockState::kActive)) {
    // As collect/arena_view.cc: slots at the end may have been taken back and used again meanwhile.
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    settled = 0;
    const auto* first = reinterpret_cast<const Event*>(to + sizeof record);
    while (settled != kEventsPerBlock && load(events_of(b)[settled]) == first[settled]) ++settled;
  }
  // The copy counts only if the block did not change hands meanwhile.
  __atomic_thread_fence(__ATOMIC_ACQUIRE);
  if (load(b.generation) != generation) {
    lost_events_ += kEventsPerBlock;
    return 0;
  }
  const auto* copied = reinterpret_cast<const Event*>(to + sizeof record);
  std::uint32_t count = settled;
  while (count != 0 && copied[count - 1] == 0) --count;
  if (count == 0) return 0;
  record.event_count = count;
  copy(to, &record, sizeof record);
  note_first(record);
  events += count;
  return sizeof record + count * sizeof(Event);
}

bool Copying::fill(char* payload, std::size_t space, std::uint64_t& size, std::uint64_t& events) {
  BlocksHeader header{};
  size = sizeof header;
  events = 0;
  while (next_ < count_ && space - size >= kCopiedBlockMost) {
    const std::size_t n = copy_block(places_[next_++], payload + size, events);
    if (n != 0) ++header.count;
    size += n;
  }
  if (header.count == 0) return false;
  copy(payload, &header, sizeof header);
  return true;
}

}  // namespace karst::runtime
