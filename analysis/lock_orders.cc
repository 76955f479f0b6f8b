#include "analysis/lock_orders.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace karst::analysis {
namespace {

constexpr std::size_t kMostPlaces = 64;  // of two locks in one order

/// Two threads cannot be in both places at once.
bool are_kept_apart(const LockPlace& a, const LockPlace& b) {
  return std::any_of(a.guards.begin(), a.guards.end(), [&](const LockGuard& guard) {
    const auto same =
        std::find_if(b.guards.begin(), b.guards.end(), [&](const LockGuard& g) { return g.id == guard.id; });
    return same != b.guards.end() && !(guard.shared && same->shared);
  });
}

/// Two places that threads can be in at once. In `a` the one lock is held and the other one taken, in `b` the other way
/// round.
std::optional<std::pair<const LockPlace*, const LockPlace*>> find_meeting(const std::vector<LockPlace>& a,
                                                                          const std::vector<LockPlace>& b) {
  for (const LockPlace& one : a)
    for (const LockPlace& two : b) {
      if ((one.first_shared && two.second_shared) || (one.second_shared && two.first_shared)) continue;
      if (!are_kept_apart(one, two)) return std::pair(&one, &two);
    }
  return std::nullopt;
}

}  // namespace

void add_place(LockPlaces& places, std::uint32_t first, std::uint32_t second, LockPlace place) {
  std::vector<LockPlace>& there = places[{first, second}];
  const auto same = std::find_if(there.begin(), there.end(), [&](const LockPlace& p) { return p.is_like(place); });
  if (same != there.end())
    ++same->order.times;
  else if (there.size() < kMostPlaces)
    there.push_back(std::move(place));
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
