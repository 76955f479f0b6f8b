// SPDX-License-Identifier: MIT
// Records of memory (format/memory.h), as memory.cc and operators.cc make them.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "format/memory.h"
#include "interpose/record.h"
#include "interpose/sampling.h"

namespace karst::interpose {

inline uintptr_t number(const void* address) { return reinterpret_cast<uintptr_t>(address); }

/// What is recorded, by all threads.
struct Sampling {
  bool known = false;  ///< whether those below are. Nothing is recorded before
  bool all = false;    ///< each allocation is recorded
  uint64_t mean = 0;   ///< bytes between two allocations that are recorded, at an average; 0: all are
  AddressSet addresses;
};
inline constinit Sampling g_sampling;

struct MemoryThread {
  Countdown countdown;
  const void* taken = nullptr;     ///< what malloc() or its like returned last
  const void* deleting = nullptr;  ///< a function that calls free() or realloc() is at it, and has recorded that
};
inline constinit thread_local MemoryThread t_memory __attribute__((tls_model("initial-exec")));

/// The rest of is_wanted().
__attribute__((noinline)) bool is_drawn(size_t size);

/// Whether an allocation of this size is recorded: the next `size` bytes of the thread have been taken.
__attribute__((always_inline)) inline bool is_wanted(size_t size) {
  const uint64_t left = t_memory.countdown.left;
  if (__builtin_expect(size < left, 1)) {
    t_memory.countdown.left = left - size;
    return false;
  }
  return g_sampling.all || is_drawn(size);
}

/// Whether it is recorded that this address is freed. Before what is recorded is known the set has none.
__attribute__((always_inline)) inline bool is_freed(const void* address) {
  return g_sampling.all || g_sampling.addresses.take(number(address));
}

/// True if the address will be known when it is freed: where it would not, its allocation is not recorded either.
inline bool remember(const void* address) {
  return g_sampling.mean == 0 || address == nullptr || g_sampling.addresses.insert(number(address));
}

__attribute__((noinline)) inline void record_allocation(RecordKind& kind, const void* address, size_t size) {
  if (remember(address)) record(kind, size, number(address));
}

/// An allocation: recorded if it is one of those that are. Returns its address.
__attribute__((always_inline)) inline void* allocated(RecordKind& kind, void* address, size_t size) {
  t_memory.taken = address;
  if (is_wanted(size)) record_allocation(kind, address, size);
  return address;
}

// What the functions' records are called.
extern RecordKind g_of_malloc, g_of_calloc, g_of_aligned, g_of_realloc, g_of_free, g_of_old;

/// Before a realloc() of `old`: records that it frees it, and returns true, if that is recorded.
inline bool is_given_back(const void* old) {
  const bool is_known = old != nullptr && old != t_memory.deleting && is_freed(old);
  if (is_known) record(g_of_old, number(old));
  return is_known;
}
/// Behind it. Returns what it returned.
inline void* reallocated(const void* old, bool old_known, void* address, size_t size) {
  t_memory.taken = address;
  const bool stays = address == nullptr && size != 0 && old_known;
  const bool wanted = is_wanted(size);
  if (stays) remember(old);
  if ((wanted || stays) && remember(address))
    record(g_of_realloc, number(old_known ? old : nullptr), size, number(address));
  return address;
}

/// Has the calls of an allocator recorded that the program has in itself (inside.cc). False: it has none that karst
/// has found a way for.
bool stand_before_the_programs_own();

/// Has the operators new and delete of an allocator recorded (operators.cc); of a library that came late only where
/// begin_redirecting() follows.
void find_operators(const void* malloc_behind, bool is_late);

}  // namespace karst::interpose
