// SPDX-License-Identifier: MIT
#include "runtime/watching/kept_blocks.h"

#include <sys/mman.h>

#include "format/watch.h"
#include "runtime/recording/arena.h"
#include "runtime/recording/thread.h"
#include "runtime/system/assertion.h"
#include "runtime/system/memory.h"
#include "runtime/system/syscalls.h"

namespace karst::runtime {

using namespace format;

namespace {

constexpr std::uint32_t kBuckets = 1 << 14;
constexpr std::uint32_t kReserveStep = 64;  // blocks made real at a time

/// Of a copy. Numbers of copies and nodes count from 1 in what follows; 0: none.
struct Copy {
  std::uint32_t lists;  // that it is in; 0: free
  std::uint32_t next;   // in its bucket, or among the free ones
  std::uint32_t events;
  std::uint32_t whole;  // its thread had gone on: it stays as it is
  std::uint32_t thread;
  std::uint64_t sequence;  // of the block in its thread
};
struct Node {
  std::uint32_t copy;
  std::uint32_t next;
};

struct Tables {
  Copy* copies;
  Node* nodes;
  std::uint32_t* buckets;
  std::uint32_t node_capacity;
  std::uint32_t free_copy;
  std::uint32_t free_node;
  std::uint32_t nodes_used;
  std::uint32_t in_use;    // copies
  std::uint32_t used;      // ever, free ones among them
  std::uint32_t reserved;  // of their memory
};
Tables g;
alignas(kBlockSize) char g_scratch[kBlockSize];

ArenaWatching& watching() { return *g_arena.watching(); }

BlockHeader& block_of(std::uint32_t copy) {
  return *g_arena.table<BlockHeader>(g_arena.watching_layout().blocks_offset + std::uint64_t{copy - 1} * kBlockSize);
}

std::uint32_t& bucket_of(std::uint32_t thread, std::uint64_t sequence) {
  const std::uint64_t hash = (std::uint64_t{thread} << 40 ^ sequence) * 0x9E3779B97F4A7C15U;
  return g.buckets[hash >> 50];
}
static_assert(kBuckets == 1 << (64 - 50));

template <typename T>
bool map(T*& table, std::uint64_t count) {
  const long got = sys::mmap(0, align_up(count * sizeof(T), KARST_BLOCK_SIZE), PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
  if (sys::failed(got)) return false;
  table = reinterpret_cast<T*>(got);
  return true;
}

std::uint32_t find(std::uint32_t thread, std::uint64_t sequence) {
  for (std::uint32_t copy = bucket_of(thread, sequence); copy != 0; copy = g.copies[copy - 1].next)
    if (g.copies[copy - 1].thread == thread && g.copies[copy - 1].sequence == sequence) return copy;
  return 0;
}

/// A free copy's number; 0 when memory for what is kept is all in use, or cannot be had.
std::uint32_t take_copy() {
  if (g.free_copy != 0) {
    const std::uint32_t copy = g.free_copy;
    g.free_copy = g.copies[copy - 1].next;
    return copy;
  }
  const ArenaWatching& w = g_arena.watching_layout();
  if (g.used >= w.block_capacity) return 0;
  if (g.used >= g.reserved) {
    const std::uint32_t left = w.block_capacity - g.reserved;
    const std::uint32_t step = left < kReserveStep ? left : kReserveStep;
    if (!g_arena.reserve_part(w.blocks_offset + std::uint64_t{g.reserved} * kBlockSize,
                              std::uint64_t{step} * kBlockSize))
      return 0;
    g.reserved += step;
  }
  store(watching().blocks_used, ++g.used);
  return g.used;
}

std::uint32_t take_node() {
  if (g.free_node != 0) {
    const std::uint32_t node = g.free_node;
    g.free_node = g.nodes[node - 1].next;
    return node;
  }
  return g.nodes_used < g.node_capacity ? ++g.nodes_used : 0;
}

void give_back_copy(std::uint32_t copy) {
  g.copies[copy - 1].lists = 0;
  g.copies[copy - 1].next = g.free_copy;
  g.free_copy = copy;
}

/// Copies the block's events over those of the copy. False, and the copy as good as none, if it changed hands
/// meanwhile.
bool copy_events(const BlockHeader& from, std::uint64_t generation, Copy& copy, BlockHeader& to) {
  store(to.generation, to.generation | 1);
  // One that has just been published may not say yet that it is active.
  const bool active = load(from.state) != static_cast<std::uint32_t>(BlockState::kFull);
  const auto* source = reinterpret_cast<const Event*>(&from + 1);
  auto* events = reinterpret_cast<Event*>(&to + 1);
  runtime::copy(events, source, kEventsPerBlock * sizeof(Event));
  std::uint32_t settled = kEventsPerBlock;
  if (active && karst_min_duration != 0) {
    // As snapshots/snapshot_copy.cc: slots at the end may have been taken back and used again meanwhile.
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    settled = 0;
    while (settled != kEventsPerBlock && load(source[settled]) == events[settled]) ++settled;
    for (std::uint32_t i = settled; i < kEventsPerBlock; ++i) events[i] = 0;
  }
  __atomic_thread_fence(__ATOMIC_ACQUIRE);
  if (load(from.generation) != generation) return false;
  std::uint32_t count = settled;
  while (count != 0 && events[count - 1] == 0) --count;
  bool hole = false;
  for (std::uint32_t i = 0; i < count && !hole; ++i) hole = events[i] == 0;
  copy.events = count;
  copy.whole = !active && !hole ? 1 : 0;
  return true;
}

/// The words of the header that a reader needs.
void copy_header(const BlockHeader& from, BlockHeader& to) {
  to.thread = from.thread;
  to.sequence = from.sequence;
  to.ticks = from.ticks;
}

void end_change(BlockHeader& b, BlockState state) {
  KARST_ASSERT(load(b.generation) % 2 != 0);
  KARST_ASSERT(state == BlockState::kFull || state == BlockState::kFresh);
  store(b.state, static_cast<std::uint32_t>(state));
  store(b.generation, (b.generation | 1) + 1);
}

bool add_to_list(std::uint32_t& list, std::uint32_t copy) {
  for (std::uint32_t node = list; node != 0; node = g.nodes[node - 1].next)
    if (g.nodes[node - 1].copy == copy) return true;
  const std::uint32_t node = take_node();
  if (node == 0) return false;
  g.nodes[node - 1] = {copy, list};
  list = node;
  ++g.copies[copy - 1].lists;
  return true;
}

void remove_copy(std::uint32_t copy) {
  BlockHeader& b = block_of(copy);
  const Copy& known = g.copies[copy - 1];
  KARST_ASSERT(known.lists == 0 && g.in_use != 0 && b.state == static_cast<std::uint32_t>(BlockState::kFull));
  for (std::uint32_t* at = &bucket_of(known.thread, known.sequence); *at != 0; at = &g.copies[*at - 1].next) {
    if (*at != copy) continue;
    *at = g.copies[copy - 1].next;
    break;
  }
  store(b.generation, b.generation | 1);
  end_change(b, BlockState::kFresh);
  __atomic_sub_fetch(&g_arena.thread(known.thread).kept_blocks, 1, __ATOMIC_ACQ_REL);
  --g.in_use;
  give_back_copy(copy);
}

}  // namespace

bool prepare_kept_blocks() {
  const std::uint32_t capacity = g_arena.watching_layout().block_capacity;
  g.node_capacity = 4 * capacity + 4096;
  return (g.copies != nullptr ||
          (map(g.copies, capacity) && map(g.nodes, g.node_capacity) && map(g.buckets, kBuckets)));
}

bool renew_kept_blocks() {
  const std::uint32_t capacity = g_arena.watching_layout().block_capacity;
  sys::madvise(g.buckets, kBuckets * sizeof(std::uint32_t), MADV_DONTNEED);
  sys::madvise(g.copies, align_up(capacity * sizeof(Copy), KARST_BLOCK_SIZE), MADV_DONTNEED);
  g.free_copy = g.free_node = g.nodes_used = g.in_use = g.used = g.reserved = 0;
  return true;
}

std::uint32_t kept_blocks_free() { return g_arena.watching_layout().block_capacity - g.in_use; }

KeptCopy keep_block(std::uint32_t& list, std::uint32_t block, std::uint32_t thread, std::uint64_t ticks,
                    std::uint64_t& sequence) {
  const BlockHeader& from = *g_arena.block(block);
  const std::uint64_t generation = load(from.generation);
  sequence = load(from.sequence);
  if (generation % 2 != 0 || load(from.thread) != thread || load(from.ticks) != ticks) return KeptCopy::kGone;
  std::uint32_t copy = find(thread, sequence);
  if (copy != 0) {
    Copy& known = g.copies[copy - 1];
    BlockHeader& to = block_of(copy);
    if (known.whole == 0) {
      // The block is longer by now.
      if (!copy_events(from, generation, known, *reinterpret_cast<BlockHeader*>(g_scratch))) return KeptCopy::kGone;
      store(to.generation, to.generation | 1);
      runtime::copy(&to + 1, g_scratch + kBlockHeaderSize, kBlockSize - kBlockHeaderSize);
      end_change(to, BlockState::kFull);
    }
    return add_to_list(list, copy) ? KeptCopy::kKept : KeptCopy::kNoMemory;
  }
  copy = take_copy();
  if (copy == 0) return KeptCopy::kNoMemory;
  BlockHeader& to = block_of(copy);
  g.copies[copy - 1] = {0, 0, 0, 0, thread, sequence};
  // The thread's entry stays its own as long as there are copies; the block, which is still there, keeps it until now.
  __atomic_add_fetch(&g_arena.thread(thread).kept_blocks, 1, __ATOMIC_ACQ_REL);
  copy_header(from, to);
  const bool copied = copy_events(from, generation, g.copies[copy - 1], to);
  if (!copied || !add_to_list(list, copy)) {
    end_change(to, BlockState::kFresh);
    __atomic_sub_fetch(&g_arena.thread(thread).kept_blocks, 1, __ATOMIC_ACQ_REL);
    give_back_copy(copy);
    return copied ? KeptCopy::kNoMemory : KeptCopy::kGone;
  }
  end_change(to, BlockState::kFull);
  std::uint32_t& bucket = bucket_of(thread, sequence);
  g.copies[copy - 1].next = bucket;
  bucket = copy;
  ++g.in_use;
  return KeptCopy::kKept;
}

void release_blocks(std::uint32_t& list) {
  while (list != 0) {
    Node& node = g.nodes[list - 1];
    const std::uint32_t following = node.next;
    KARST_ASSERT(g.copies[node.copy - 1].lists != 0);
    if (--g.copies[node.copy - 1].lists == 0) remove_copy(node.copy);
    node.next = g.free_node;
    g.free_node = list;
    list = following;
  }
}

}  // namespace karst::runtime
