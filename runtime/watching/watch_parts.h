// SPDX-License-Identifier: MIT
// What the files about watching share; watch.h is for others. All of it reads what others may have written over.
//
// watch.cc       calls as they end: the thread's stack of open ones, and which of them are kept
// take_over.cc   what requesters have entered becomes what hooks find
// watch_keep.cc  the maintenance process's part: copies of the blocks of what is kept
#pragma once
#include <cstdint>

#include "format/moments.h"
#include "format/watch.h"
#include "runtime/recording/arena.h"
#include "runtime/system/memory.h"

namespace karst::runtime {

inline constexpr std::uint64_t kNeverKept = ~std::uint64_t{0};

inline format::ArenaWatching& watching() { return *g_arena.watching(); }
inline format::ArenaWatchRule* watch_rules() {
  return g_arena.table<format::ArenaWatchRule>(g_arena.watching_layout().rules_offset);
}
inline format::ArenaWatch* watches() {
  return g_arena.table<format::ArenaWatch>(g_arena.watching_layout().watches_offset);
}

/// Calls visit(watch, number) for those of a function, from the list's first on, as long as it returns true. A list
/// that was written over may have no end.
template <typename Visit>
void for_each_watch(std::uint32_t first, Visit visit) {
  std::uint32_t number = first;
  for (std::uint32_t n = 0; n < format::kWatches && number != 0 && number <= format::kWatches; ++n) {
    format::ArenaWatch& watch = watches()[number - 1];
    if (!visit(watch, number - 1)) return;
    number = load(watch.next);
  }
}

inline bool has_ended(const format::ArenaWatch& watch) {
  const std::uint32_t state = load(watch.state);
  return state == static_cast<std::uint32_t>(format::WatchState::kUnwanted) ||
         state == static_cast<std::uint32_t>(format::WatchState::kEnded);
}

/// Before the first watch, and in a forked child: no candidate is in use and none is new.
void renew_candidates();

}  // namespace karst::runtime
