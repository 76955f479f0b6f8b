// SPDX-License-Identifier: MIT
#include "analysis/lock_orders.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace karst::analysis {
namespace {

constexpr std::size_t kMostPlaces = 64;  // of two locks in one order

/// Two places that threads can be in at once. In `a` the one lock is held and the other one taken, in `b` the other way
/// round.
std::optional<std::pair<const LockPlace*, const LockPlace*>> find_meeting(const std::vector<LockPlace>& a,
                                                                          const std::vector<LockPlace>& b) {
  for (const LockPlace& one : a)
    for (const LockPlace& two : b) {
      if ((one.first_shared && two.second_shared) || (one.second_shared && two.first_shared)) continue;
      if (!are_kept_apart(one.guards, two.guards)) return std::pair(&one, &two);
    }
  return std::nullopt;
}

}  // namespace

bool are_kept_apart(const std::vector<LockGuard>& a, const std::vector<LockGuard>& b) {
  for (auto one = a.begin(), two = b.begin(); one != a.end() && two != b.end();) {
    if (one->id == two->id && !(one->shared && two->shared)) return true;
    one->id < two->id ? ++one : ++two;
  }
  return false;
}

void add_place(LockPlaces& places, std::uint32_t first, std::uint32_t second, LockPlace place) {
  std::vector<LockPlace>& there = places[{first, second}];
  const auto same = std::find_if(there.begin(), there.end(), [&](const LockPlace& p) { return p.is_like(place); });
  const std::pair by{place.order.thread, place.order.ticks};
  if (same == there.end()) {
    if (there.size() == kMostPlaces) return;
    place.threads = {by};
    there.push_back(std::move(place));
    return;
  }
  ++same->order.times;
  const bool is_known = std::any_of(same->threads.begin(), same->threads.end(),
                                    [&](const auto& thread) { return thread.first == by.first; });
  if (!is_known && same->threads.size() < kMostInRing) same->threads.push_back(by);
}

std::vector<Inversion> inversions_of(const LockPlaces& places) {
  std::vector<Inversion> found;
  for (const auto& [locks, of] : places) {
    const auto other = places.find({locks.second, locks.first});
    if (locks.first >= locks.second || other == places.end()) continue;
    if (const auto meeting = find_meeting(of, other->second))
      found.push_back({locks.first, locks.second, meeting->first->order, meeting->second->order});
  }
  return found;
}

}  // namespace karst::analysis
