#include "analysis/lock_orders.h"

#include <algorithm>
#include <optional>

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
    const auto [a, b] = locks;
    const auto other = places.find({b, a});
    if (a >= b || other == places.end()) continue;
    const auto dangerous = [&]() -> std::optional<Inversion> {
      for (const LockPlace& one : of)
        for (const LockPlace& two : other->second) {
          // Lock a is held in the one place and taken in the other, b the other way round.
          if ((one.first_shared && two.second_shared) || (one.second_shared && two.first_shared)) continue;
          if (!are_kept_apart(one, two)) return Inversion{a, b, one.order, two.order};
        }
      return std::nullopt;
    };
    if (const auto inversion = dangerous()) found.push_back(*inversion);
  }
  return found;
}

}  // namespace karst::analysis
