// SPDX-License-Identifier: MIT
// What switches do to the calls at hand (switches.h).
#include <algorithm>
#include <vector>

#include "reader/rebuilder.h"

namespace karst::reader {

void Rebuilder::pass_switches(std::uint64_t ticks) {
  while (cursor_.next() <= ticks && cursor_.next() != ~std::uint64_t{0}) {
    const std::uint64_t at = cursor_.next();
    const SwitchCursor::Blinded blinded = cursor_.step();
    if (blinded == SwitchCursor::Blinded::kNone) continue;
    old_ = top_;
    if (blinded == SwitchCursor::Blinded::kAll) {
      // Switches of stacks and places to jump to are not recorded, either, while nothing is traced.
      while (top_ != 0) end_top(at, walk::Way::kCut);
      memory_.forget();
      base_ = 0;
      knows_stacks_ = false;
    }
    end_cut(at);
  }
}

// Calls that were cut go as soon as nothing in them is open any more: the last moment that they are known to last.
void Rebuilder::end_cut(std::uint64_t ticks) {
  while (top_ != base_ && top_ <= old_ && is_cut(memory_.stack()[top_ - 1])) end_top(ticks, walk::Way::kCut);
}

bool Rebuilder::is_blind(std::uint32_t id) const {
  // A second id is its function's, whatever the switches say of it.
  if (id < functions_.size() && functions_[id].tail_exit) id = functions_[id].of;
  return cursor_.blind(id);
}

// An exit that fits no call: its enter lies where the function was blind, and not before the kept history.
bool Rebuilder::began_unseen(std::uint32_t id) const {
  return cursor_.visible_from(id) > (from_thread_start_ ? 0 : first_);
}

// The call that set the place may have been cut and gone. Then the next outer one counts, which is as good: what the
// jump ends began later than both.
walk::Place Rebuilder::standing(walk::Place place) {
  std::vector<std::uint32_t> passed;
  const auto gone = [this](const walk::Place& p) {
    return p.depth != 0 && p.serial != kNoParent &&
           (p.depth > top_ || memory_.stack()[p.depth - 1].serial != p.serial) && call_is_cut(calls_.marks[p.serial]);
  };
  while (gone(place)) {
    passed.push_back(place.serial);
    if (const auto known = moved_.find(place.serial); known != moved_.end()) {
      place = known->second;
      continue;
    }
    place.serial = calls_.parent[place.serial];
    --place.depth;
  }
  for (const std::uint32_t row : passed) moved_.insert_or_assign(row, place);
  return place;
}

}  // namespace karst::reader
