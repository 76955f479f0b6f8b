// SPDX-License-Identifier: MIT
// How blocks go round: made real, claimed ahead, given to threads in the order of recycling, and given back.
#include "runtime/recording/arena.h"
#include "runtime/recording/interruptions.h"
#include "runtime/recording/seams.h"
#include "runtime/recording/thread_parts.h"
#include "runtime/system/assertion.h"
#include "runtime/system/memory.h"
#include "runtime/system/memory_group.h"
#include "runtime/system/message.h"
#include "runtime/system/syscalls.h"

namespace karst::runtime {

using namespace format;

namespace {

constexpr std::uint32_t kStep = 16;  // 64 KiB, some 50 us: whoever maps memory may wait for it
constexpr std::uint32_t kDumpStep = 128;
constexpr std::uint32_t kFirstStep = 8;  // most processes of a build or a script make a few calls
constexpr std::uint64_t kWaited = 4;     // times the least that a step took
constexpr std::uint32_t kLeastLead = 128;
constexpr std::uint32_t kMostLead = 256;  // 1 MiB
constexpr std::uint32_t kFloorBlocks = 16;
constexpr std::uint32_t kSpareRounds = 256;
constexpr std::uint32_t kClaimsAhead = 15;

__attribute__((noinline, cold)) void say_memory_is_short(std::uint64_t kib) {  // apart: its buffer needs stack
  Message().text("memory is short: the trace keeps to ").number(kib).text(" KiB");
}

/// A number of threads that the arena says.
std::uint32_t sane(std::uint32_t threads) {
  return threads == 0 ? 1 : threads > kArenaThreads ? kArenaThreads : threads;
}

}  // namespace

std::uint32_t history_floor(std::uint32_t block_capacity, std::uint32_t live_threads) {
  const std::uint32_t share = block_capacity / (2 * sane(live_threads));
  return share > kFloorBlocks ? kFloorBlocks : share < 1 ? 1 : share;
}

std::uint32_t claims_ahead(std::uint32_t block_capacity, std::uint32_t live_threads) {
  const std::uint32_t share = block_capacity / (64 * sane(live_threads));
  return share > kClaimsAhead ? kClaimsAhead : share;
}

namespace {

/// So many blocks beyond the one that is being filled are to be real: half of what the process has filled, as it may
/// have begun to fill them fast.
std::uint64_t lead(std::uint64_t filled) {
  const std::uint64_t half = filled / 2;
  return half < kLeastLead ? kLeastLead : half > kMostLead ? kMostLead : half;
}

void raise(std::uint32_t& word, std::uint32_t to) {
  for (std::uint32_t now = load(word); now < to; now = load(word))
    if (exchange_if(word, now, to)) return;
}

}  // namespace

// Many at once: while that is told to the kernel nobody else's memory can be made, or mapped.
void Arena::advise_dump_of_blocks(std::uint32_t up_to) {
  for (std::uint32_t done = load(blocks_dumped_); done < up_to; done = load(blocks_dumped_)) {
    const std::uint32_t left = layout_.block_capacity - done;
    const std::uint32_t step = left < kDumpStep ? left : kDumpStep;
    advise_dump(layout_.blocks_offset + std::uint64_t{done} * kBlockSize, std::uint64_t{step} * kBlockSize);
    raise(blocks_dumped_, done + step);
  }
}

/// Makes blocks from `done` on real, all before it being so.
bool Arena::reserve_step(std::uint32_t done, std::uint32_t count) {
  // The group is asked for each whole step; who makes fewer while another makes steps is not to get round that.
  if (done >= kFirstStep && count < kStep && !memory_group_has_room(std::uint64_t{count} * kBlockSize)) return false;
  const std::uint64_t begin = arch::time_stamp();
  const bool is_real =
      make_real(layout_.blocks_offset + std::uint64_t{done} * kBlockSize, std::uint64_t{count} * kBlockSize);
  const std::uint64_t ticks = (arch::time_stamp() - begin) / count + 1;
  if (!is_real) return false;
  const std::uint64_t least = load(reserving_ticks_);
  if (count >= kFirstStep && (least == 0 || ticks < least)) store(reserving_ticks_, ticks);
  // What took far longer waited, for a CPU mostly.
  const std::uint64_t most = kWaited * (least != 0 ? least : ticks);
  __atomic_add_fetch(&header().reserving_ticks, (ticks < most ? ticks : most) * count, __ATOMIC_RELAXED);
  advise_dump_of_blocks(done + count);
  raise(blocks_reserved_, done + count);
  raise(header().blocks_reserved, done + count);
  return true;
}

// One at a time makes steps. Who finds another at it makes no more than what it must have; what of that is real already
// costs nearly nothing. The word is no lock: who has it may have been interrupted, by a handler that never returns
// even.
bool Arena::reserve_blocks(std::uint32_t up_to) {
  const bool makes_steps = exchange_if(reserving_, 0U, 1U);
  bool is_real = true;
  for (std::uint32_t done = load(blocks_reserved_); is_real && done < up_to; done = load(blocks_reserved_)) {
    const std::uint32_t capacity = load(capacity_);
    const std::uint32_t left = capacity > done ? capacity - done : 0;
    const std::uint32_t most = !makes_steps ? up_to - done : done == 0 ? kFirstStep : kStep;
    is_real = left != 0 && reserve_step(done, left < most ? left : most);
  }
  if (makes_steps) store(reserving_, 0U);
  return is_real;
}

void Arena::reserve_ahead() {
  const ArenaHeader& h = header();
  const std::uint32_t capacity = load(capacity_);
  // Whoever makes a few calls and ends needs no more than the first step.
  if (load(blocks_reserved_) <= kFirstStep) return;
  // What is wanted grows while it is made.
  for (;;) {
    const std::uint64_t hand = load(h.hand);
    const std::uint64_t wanted = hand + lead(hand);
    const std::uint32_t done = load(blocks_reserved_);
    if (done >= capacity || done >= wanted) return;
    const std::uint32_t next = done + kStep;
    if (!reserve_blocks(next < capacity ? next : capacity)) return;
  }
}

/// The calling thread has come to block `index`: asks for more before a thread has to make it itself, in the middle of
/// whatever the program does. Where nobody is there to do it, or is too late, claim_next() does.
__attribute__((noinline)) void Arena::ask_for_blocks_ahead(std::uint32_t index) {
  const std::uint32_t done = load(blocks_reserved_);
  if (done <= kFirstStep || done >= load(capacity_) || load(reserving_) != 0) return;
  if (index + lead(index) / 2 >= done && !g_no_system_calls) ask_for_memory_ahead();
}

namespace {

[[maybe_unused]] bool is_in(const BlockHeader& b, BlockState state) {
  return load(b.state) == static_cast<std::uint32_t>(state);
}
/// Between claim and publication, and never else: a copy that is made meanwhile is known to be torn.
[[maybe_unused]] bool changes_hands(const BlockHeader& b) { return load(b.generation) % 2 != 0; }

bool has_hole(const BlockHeader& b, std::uint32_t slots) {
  static_assert(sizeof(BlockHeader) % 16 == 0);
  return karst_has_empty_slot(reinterpret_cast<const Event*>(&b + 1), slots);
}

}  // namespace

// The calling thread leaves its block. An empty slot in it belongs to a hook that the handler we may run in has
// interrupted. That handler has begun since the block did, as the hook had its slot before; mostly none has, and the
// search is a hundredth of a call's cost.
void Arena::note_holes(BlockHeader& b, std::uintptr_t cursor) {
  if (!may_have_been_interrupted()) return;
  const std::uintptr_t used = cursor - reinterpret_cast<std::uintptr_t>(&b) - kBlockHeaderSize;
  KARST_ASSERT(used % sizeof(Event) == 0 && used <= kEventsPerBlock * sizeof(Event));
  const auto slots = static_cast<std::uint32_t>(used / sizeof(Event));
  if (has_hole(b, slots)) store(b.holes_before, slots);
}

BlockHeader* Arena::block_at(std::uintptr_t cursor) {
  const std::uintptr_t index = (cursor - 1 - blocks_) / kBlockSize;
  return index < load(capacity_) ? block(static_cast<std::uint32_t>(index)) : nullptr;
}

// Moves the order of recycling on from the block `oldest`, which is claimed or spared. Whoever finds it so does it: the
// thread that claimed it may be held up, or be the one that the calling handler has interrupted.
void Arena::pass_by(ArenaThread& owner, std::uint64_t oldest) {
  const std::uint32_t next = load(block(static_cast<std::uint32_t>(oldest) - 1)->next);
  // If the block has changed hands since, so has `oldest`, and nothing happens.
  const std::uint64_t following = next != 0 && next <= load(capacity_) ? block_key(block(next - 1)->sequence, next - 1)
                                                                       : ((oldest >> 32) + 1) << 32;
  exchange_if(owner.oldest, oldest, following);
}

// The hand has met block `index`: claims it if it is fresh, else the oldest block of the thread whose history it is.
// `untaken`: it would be one that is to be waited for.
BlockHeader* Arena::claim_block(std::uint32_t index, std::uint32_t floor, bool& untaken) {
  constexpr auto kFull = static_cast<std::uint32_t>(BlockState::kFull);
  constexpr auto kClaimed = static_cast<std::uint32_t>(BlockState::kClaimed);
  BlockHeader& met = *block(index);
  const std::uint32_t state = load(met.state);
  if (state == static_cast<std::uint32_t>(BlockState::kFresh))
    return exchange_if(met.state, state, kClaimed) ? &met : nullptr;
  if (state != kFull) return nullptr;
  const std::uint32_t thread_index = load(met.thread);
  if (thread_index >= kArenaThreads) return nullptr;
  ArenaThread& owner = thread(thread_index);
  const bool living = load(owner.state) == static_cast<std::uint32_t>(ThreadLife::kLive);
  const std::uint32_t own_floor = load(owner.floor_blocks);
  if (living && history_blocks(owner) <= (own_floor > floor ? own_floor : floor)) return nullptr;

  std::uint64_t oldest = load(owner.oldest);
  const auto oldest_index = static_cast<std::uint32_t>(oldest);
  const bool spared = static_cast<std::int32_t>(static_cast<std::uint32_t>(met.sequence) -
                                                static_cast<std::uint32_t>(oldest >> 32)) < 0;
  BlockHeader* first = oldest_index != 0 && oldest_index <= load(capacity_) ? block(oldest_index - 1) : nullptr;
  if (first != nullptr &&
      (load(first->thread) != thread_index || static_cast<std::uint32_t>(load(first->sequence)) != oldest >> 32))
    first = nullptr;
  if (!spared && first != nullptr && load(first->state) == kClaimed) {
    pass_by(owner, oldest);
    return nullptr;
  }
  if (!spared && (first == nullptr || load(first->state) != kFull)) {
    // The owner was interrupted while it went on to its next block, and its handler has gone on from there. The blocks
    // before the one met are taken as spared ones are.
    const std::uint64_t key = block_key(load(met.sequence), index);
    if (!exchange_if(owner.oldest, oldest, key)) return nullptr;
    oldest = key;
    first = &met;
  }
  BlockHeader& b = spared ? met : *first;
  const std::uint64_t sequence = load(b.sequence);
  const std::uint32_t slots = load(b.holes_before);
  if (living && slots != 0 && slots <= kEventsPerBlock && load(b.spared) < kSpareRounds && has_hole(b, slots)) {
    __atomic_add_fetch(&b.spared, 1, __ATOMIC_RELAXED);  // bounded, as a handler may have left by a longjmp
    if (!spared) pass_by(owner, oldest);
    return nullptr;
  }
  if (is_blocking() && load(b.taken) != static_cast<std::uint32_t>(load(b.generation))) [[unlikely]] {
    untaken = true;
    return nullptr;
  }
  if (!exchange_if(b.state, kFull, kClaimed)) return nullptr;
  if (b.thread != thread_index || b.sequence != sequence) {  // it has become another's since we looked
    store(b.state, kFull);
    return nullptr;
  }
  if (!spared) pass_by(owner, oldest);
  KARST_ASSERT(!changes_hands(b));
  const auto* events = reinterpret_cast<const Event*>(&b + 1);
  std::uint32_t count = kEventsPerBlock;
  while (count != 0 && events[count - 1] == 0) --count;
  __atomic_add_fetch(&owner.overwritten_events, count, __ATOMIC_RELAXED);
  KARST_ASSERT(history_blocks(owner) != 0);
  __atomic_add_fetch(&owner.recycled_blocks, 1, __ATOMIC_ACQ_REL);
  return &b;
}

/// What the claims after this one look at, as a thread makes several: the header, and the last events.
void Arena::look_ahead(std::uint32_t index, std::uint32_t capacity) {
  constexpr std::uint32_t kClaims = 2;  // a claim takes half as long as memory does
  const std::uint32_t later = index + kClaims;
  const auto* begin = reinterpret_cast<const char*>(block(later < capacity ? later : later % capacity));
  __builtin_prefetch(begin, 1);
  __builtin_prefetch(begin + kBlockSize - 64, 1);
}

BlockHeader* Arena::claim_next(WaitForTaking* wait) {
  ArenaHeader& h = header();
  for (std::uint64_t tries = 0;; ++tries) {
    const std::uint32_t capacity = load(capacity_);
    if (tries >= 2ULL * capacity) return nullptr;
    const std::uint64_t turn = __atomic_fetch_add(&h.hand, 1, __ATOMIC_RELAXED);
    const auto index = static_cast<std::uint32_t>(turn % capacity);
    if (index >= load(blocks_reserved_) && !reserve_blocks(index + 1)) {
      // Memory ran out: from now on the trace lives in what it has.
      const std::uint32_t have = load(blocks_reserved_);
      if (have != 0 && exchange_if(capacity_, capacity, have)) {
        store(h.block_capacity, have);
        say_memory_is_short(std::uint64_t{have} * kBlockSize >> 10);
      }
      continue;
    }
    look_ahead(index, capacity);
    if (index % kStep == 0) ask_for_blocks_ahead(index);
    bool untaken = false;
    BlockHeader* b = claim_block(index, history_floor(capacity, load(h.live_threads)), untaken);
    if (b != nullptr) return b;
    if (!untaken) continue;
    if (wait == nullptr) return nullptr;
    wait_for_taking(*wait);
  }
}

// The turn changes with every step, so that a handler that took blocks from the list and put others there is noticed.
BlockHeader* Arena::pop_spare(std::uint64_t& spare) {
  for (;;) {
    const std::uint64_t first = load(spare);
    const auto index = static_cast<std::uint32_t>(first);
    if (index == 0 || index > load(capacity_)) return nullptr;
    BlockHeader* b = block(index - 1);
    if (arch::exchange_locally(spare, first, ((first >> 32) + 1) << 32 | load(b->next))) return b;
  }
}

BlockHeader* Arena::take_block(std::uintptr_t cursor, std::uint64_t& spare, WaitForTaking& wait) {
  BlockHeader* left = block_at(cursor);
  if (left != nullptr) note_holes(*left, cursor);
  // A thread that is young is likely to be short: what it claims ahead is a fourth of what it has used.
  const std::uint64_t used = left != nullptr ? left->sequence / 4 : 0;
  BlockHeader* b = pop_spare(spare);
  if (b == nullptr) {
    b = claim_next(&wait);
    if (b == nullptr) return nullptr;
    const std::uint32_t most = claims_ahead(load(capacity_), load(header().live_threads));
    for (std::uint64_t n = used < most ? used : most; n != 0; --n) {
      BlockHeader* more = claim_next(nullptr);
      if (more == nullptr) break;
      std::uint64_t first = 0;
      do {
        first = load(spare);
        store(more->next, static_cast<std::uint32_t>(first));
      } while (
          !arch::exchange_locally(spare, first, ((first >> 32) + 1) << 32 | static_cast<std::uint32_t>(key_of(*more))));
    }
  }
  KARST_ASSERT(is_in(*b, BlockState::kClaimed) && !changes_hands(*b));
  store(b->generation, b->generation | 1);
  b->holes_before = 0;
  b->spared = 0;
  b->next = 0;
  zero(b + 1, kBlockSize - kBlockHeaderSize);
  // The block after this one: by the time it is needed, some microseconds from now, it is in the cache.
  if (const auto next = static_cast<std::uint32_t>(load(spare)); next != 0 && next <= load(capacity_)) {
    const auto* lines = reinterpret_cast<const char*>(block(next - 1));
    for (std::uint32_t i = 0; i < kBlockSize; i += 64) __builtin_prefetch(lines + i, 1);
  }
  return b;
}

void Arena::give_back_spare(std::uint64_t& spare) {
  // A list that was written over may have no end.
  for (std::uint32_t n = load(capacity_); n != 0; --n) {
    BlockHeader* b = pop_spare(spare);
    if (b == nullptr) return;
    give_back(*b);
  }
}

void Arena::publish(BlockHeader& b) {
  KARST_ASSERT(is_in(b, BlockState::kClaimed) && changes_hands(b) && b.thread < kArenaThreads);
  store(b.generation, (b.generation | 1) + 1);
  store(b.state, static_cast<std::uint32_t>(BlockState::kActive));
}

void Arena::append(std::uint32_t thread_index, std::uint64_t last, BlockHeader& b) {
  constexpr auto kFull = static_cast<std::uint32_t>(BlockState::kFull);
  constexpr auto kActive = static_cast<std::uint32_t>(BlockState::kActive);
  ArenaThread& t = thread(thread_index);
  const std::uint64_t key = key_of(b);
  KARST_ASSERT(b.thread == thread_index && static_cast<std::uint32_t>(key) <= kept_.block_capacity);
  if (last != 0) {
    BlockHeader& before = *block(static_cast<std::uint32_t>(last) - 1);
    // A thread that had no block for a while finds its last one among history, where it may be taken at any time.
    const auto is_ours = [&] {
      return load(before.thread) == thread_index && static_cast<std::uint32_t>(before.sequence) == last >> 32;
    };
    const bool held = load(before.state) == kActive ? is_ours() : exchange_if(before.state, kFull, kActive);
    const bool ours = held && is_ours();
    if (ours) store(before.next, static_cast<std::uint32_t>(key));
    KARST_ASSERT(!held || is_in(before, BlockState::kActive));
    if (held) store(before.state, kFull);
    if (ours) return;
    const std::uint64_t oldest = load(t.oldest);
    if (oldest == last) exchange_if(t.oldest, oldest, ((oldest >> 32) + 1) << 32);
  }
  // No block of the thread is left that could go before this one.
  const std::uint64_t none = load(t.oldest);
  if (static_cast<std::uint32_t>(none) == 0) exchange_if(t.oldest, none, key);
}

void Arena::give_back(BlockHeader& b) {
  KARST_ASSERT(is_in(b, BlockState::kClaimed) || is_in(b, BlockState::kActive));
  store(b.generation, b.generation | 1);
  // Its last owner's, whose it is no more: whoever has noted that the block has a time finds it gone.
  b.sequence = 0;
  b.ticks = 0;
  store(b.generation, (b.generation | 1) + 1);
  store(b.state, static_cast<std::uint32_t>(BlockState::kFresh));
}

}  // namespace karst::runtime
