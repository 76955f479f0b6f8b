// SPDX-License-Identifier: MIT
// In which orders locks were taken, and which of two orders could meet: inversions (analysis/holds.h).
#pragma once
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "analysis/holds.h"

namespace karst::analysis {

/// A lock that is held while others are taken.
struct LockGuard {
  std::uint32_t id;
  bool shared;
  auto operator<=>(const LockGuard&) const = default;
};

/// One way to take a lock while another one is held.
struct LockPlace {
  LockOrder order;
  bool first_shared = false, second_shared = false;
  std::vector<LockGuard> guards;  // in order
  /// Threads that did so, as far as rings need them, and when each did so first. Begins with that of `order`.
  std::vector<std::pair<const reader::Thread*, std::uint64_t>> threads;

  bool is_like(const LockPlace& other) const {
    return order.first_in == other.order.first_in && order.second_in == other.order.second_in &&
           order.waits == other.order.waits && first_shared == other.first_shared &&
           second_shared == other.second_shared && guards == other.guards;
  }
};

/// By the lock that was held and the one that was taken, as LockHold::id.
using LockPlaces = std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<LockPlace>>;

/// One that is like one that is there counts with it.
void add_place(LockPlaces& places, std::uint32_t first, std::uint32_t second, LockPlace place);
/// Two threads cannot have these locks at once. Both are in order.
bool are_kept_apart(const std::vector<LockGuard>& a, const std::vector<LockGuard>& b);
/// One for each two locks.
std::vector<Inversion> inversions_of(const LockPlaces& places);

inline constexpr std::size_t kMostInRing = 8;  // locks
/// Of each order that is in a ring, and in none of `inversions`, one of the shortest rings that it is in
/// (lock_rings.cc). `cut`: not all ways were looked through.
std::vector<LockRing> rings_of(const LockPlaces& places, const std::vector<Inversion>& inversions, bool& cut);

}  // namespace karst::analysis
