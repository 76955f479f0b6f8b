// SPDX-License-Identifier: MIT
#include "runtime/counting/count.h"

#include <sys/mman.h>

#include "arch/cpu.h"
#include "runtime/recording/arena.h"
#include "runtime/recording/mode.h"
#include "runtime/recording/seams.h"
#include "runtime/recording/thread.h"
#include "runtime/system/memory.h"
#include "runtime/system/syscalls.h"

namespace karst::runtime {

using namespace format;

namespace {

constexpr std::size_t kDirectorySize = align_up(sizeof(CountPage*) * kCountGroups, KARST_BLOCK_SIZE);

std::uint32_t g_free_pages;  // that threads have left

CountPage** directory_of(ThreadState& state) {
  if (state.counts != nullptr) return state.counts;
  const long got =
      sys::mmap(0, kDirectorySize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
  if (sys::failed(got)) return nullptr;
  store(state.counts, reinterpret_cast<CountPage**>(got));
  return state.counts;
}

/// A page of the group that a thread has left, with its counts.
CountPage* left_page(std::uint32_t group) {
  if (load(g_free_pages) == 0) return nullptr;
  CountOwner* owners = g_arena.count_owners();
  const std::uint32_t pages = g_arena.count_pages();
  for (std::uint32_t i = 0; i < pages; ++i) {
    if (load(owners[i].group) != group + 1 || !exchange_if(owners[i].used, 0U, 1U)) continue;
    __atomic_sub_fetch(&g_free_pages, 1, __ATOMIC_RELAXED);
    return g_arena.count_page(i);
  }
  return nullptr;
}

CountPage* new_page(std::uint32_t group) {
  const std::uint32_t index = g_arena.claim_count_page();
  if (index == Arena::kNoCountPage) return nullptr;
  CountOwner& owner = g_arena.count_owners()[index];
  store(owner.used, 1U);
  store(owner.group, group + 1);
  return g_arena.count_page(index);
}

CountPage* page_of(ThreadState& state, std::uint32_t id) {
  CountPage** directory = directory_of(state);
  if (directory == nullptr) return nullptr;
  const std::uint32_t group = id / kCountsPerPage;
  CountPage*& page = directory[group];
  if (page == nullptr) {
    CountPage* found = left_page(group);
    store(page, found != nullptr ? found : new_page(group));
  }
  return page;
}

/// Signals are blocked: no handler counts, or forks, in between.
void count_in(ThreadState* state, std::uint32_t id) {
  if (state != nullptr && load(state->ignored) != 0) return;
  CountPage* page = state != nullptr ? page_of(*state, id) : nullptr;
  if (page != nullptr)
    arch::increment_locally(page->calls[id % kCountsPerPage]);
  else
    __atomic_add_fetch(&g_arena.header().uncounted_calls, 1, __ATOMIC_RELAXED);
}

}  // namespace

void begin_counting() { g_counting = true; }

void leave_counts(ThreadState& state) {
  CountPage** directory = state.counts;
  if (directory == nullptr) return;
  store(state.counts, static_cast<CountPage**>(nullptr));
  const std::uint32_t groups = g_arena.function_count() / kCountsPerPage + 1;
  CountOwner* owners = g_arena.count_owners();
  for (std::uint32_t group = 0; group < groups && group < kCountGroups; ++group) {
    if (directory[group] == nullptr) continue;
    store(owners[directory[group] - g_arena.count_page(0)].used, 0U);
    __atomic_add_fetch(&g_free_pages, 1, __ATOMIC_RELAXED);
  }
  sys::munmap(directory, kDirectorySize);
}

void renew_counts() { g_free_pages = 0; }

extern "C" void karst_count_slowly(std::uint32_t id) {
  const sys::SignalsBlocked guard;
  if (own_arena()) count_in(own_state(), id);
}

extern "C" void karst_count_by_tid(std::uint64_t event_low_bits) {
  const sys::SignalsBlocked guard;
  if (own_arena()) count_in(own_state(), static_cast<std::uint32_t>(event_low_bits) & KARST_EVENT_ID_MASK);
}

}  // namespace karst::runtime
