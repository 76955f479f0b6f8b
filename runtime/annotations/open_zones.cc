// SPDX-License-Identifier: MIT
#include "runtime/annotations/open_zones.h"

#include <sys/mman.h>

#include "runtime/system/memory.h"
#include "runtime/system/syscalls.h"

namespace karst::runtime {
namespace {

struct OpenZone {
  NoteName* name;
  const void* owner;
};

constexpr std::uint32_t kDeepest = 63;  // zones within it are not recorded

/// Of the thread that has this entry in the arena. Entries are reused by later threads, so a stack knows whose it is.
struct ZoneStack {
  std::uint64_t joined;  ///< ArenaThread::joined_ticks
  std::uint32_t tid;
  std::uint32_t depth;  ///< may be more than there is room for
  OpenZone zones[kDeepest];
};
static_assert(sizeof(ZoneStack) == 1024);

// Made when they are first needed, and kept.
constexpr std::uint32_t kInChunk = 64;
constexpr std::uint32_t kChunks = 1024;
ZoneStack* g_chunks[kChunks];

ZoneStack* chunk_of(std::uint32_t thread) {
  if (thread / kInChunk >= kChunks) return nullptr;
  ZoneStack*& chunk = g_chunks[thread / kInChunk];
  if (load(chunk) == nullptr) {
    constexpr std::size_t kSize = kInChunk * sizeof(ZoneStack);
    const long made = sys::mmap(0, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    if (sys::failed(made)) return nullptr;
    auto* const mine = reinterpret_cast<ZoneStack*>(made);
    if (!exchange_if(chunk, static_cast<ZoneStack*>(nullptr), mine)) sys::munmap(mine, kSize);
  }
  return load(chunk);
}

ZoneStack* own_stack() {
  if (!has_trace()) return nullptr;
  // own_state() makes system calls.
  const ThreadState* const state = karst_state->live != 0 && !threads_are_found_by_tid() ? karst_state : own_state();
  if (state == nullptr) return nullptr;
  ZoneStack* const chunk = chunk_of(state->thread);
  if (chunk == nullptr) return nullptr;
  ZoneStack& stack = chunk[state->thread % kInChunk];
  const format::ArenaThread& thread = g_arena.thread(state->thread);
  if (stack.tid != thread.tid || stack.joined != thread.joined_ticks) {
    stack.depth = 0;
    stack.joined = thread.joined_ticks;
    stack.tid = thread.tid;
  }
  return &stack;
}

}  // namespace

NoteName* open_zone(NoteName* name, const void* owner) {
  ZoneStack* const stack = own_stack();
  if (stack == nullptr) return nullptr;
  // The place is taken first: a signal handler's zones come above it, and are gone when it returns.
  const std::uint32_t at = stack->depth;
  store(stack->depth, at + 1);
  if (at >= kDeepest) return nullptr;
  stack->zones[at] = {name, owner};
  return name;
}

NoteName* close_zone(const void* owner) {
  ZoneStack* const stack = own_stack();
  if (stack == nullptr || stack->depth == 0) return nullptr;
  std::uint32_t at = stack->depth - 1;
  if (at >= kDeepest) {  // whose it is nobody knows: they are thought to end in order
    store(stack->depth, at);
    return nullptr;
  }
  while (stack->zones[at].owner != owner)
    if (at-- == 0) return nullptr;
  // Calls are within each other, so what began within it ends as well.
  while (stack->depth - 1 > at) {
    NoteName* const inner = stack->zones[stack->depth - 1].name;
    store(stack->depth, stack->depth - 1);
    karst_api_zone_leave(inner);
  }
  NoteName* const name = stack->zones[at].name;
  store(stack->depth, at);
  return name;
}

}  // namespace karst::runtime
