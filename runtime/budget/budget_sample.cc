// SPDX-License-Identifier: MIT
#include "runtime/budget/budget_sample.h"

#include "runtime/budget/tables.h"
#include "runtime/system/memory.h"
#include "runtime/system/syscalls.h"

namespace karst::runtime {

using namespace format;

namespace {

std::uint32_t hash(std::uint32_t id) { return id * 0x9e3779b1U; }

}  // namespace

bool EventSample::create() {
  turn_ = 1;
  return map_table(functions_, kMostFunctions) && map_table(slots_, kSlots) && map_table(owners_, kSlots);
}

void EventSample::clear() {
  if (turn_ == 1) {
    make_real(slots_, kSlots);
    make_real(owners_, kSlots);
  }
  finish();
  start_segment(false);
  size_ = 0;
  ids_ = 0;
  events_ = 0;
  weight_ = 0;
  forgot_ = false;
  ++turn_;
}

// Two tables: an id's owner, and an owner's place. Both at most half full, as there are no more than kMostFunctions.
std::uint32_t EventSample::place_of(std::uint32_t id) {
  const auto slot_of = [this](Slot* table, std::uint32_t key) -> Slot& {
    std::uint32_t at = hash(key) % kSlots;
    while (table[at].turn == turn_ && table[at].id != key) at = (at + 1) % kSlots;
    return table[at];
  };
  Slot& known = slot_of(slots_, id);
  if (known.turn == turn_) return known.place;
  if (ids_ == kMostFunctions) return 0;
  ++ids_;
  const std::uint32_t owner = owner_of_ != nullptr ? owner_of_(context_, id) : id;
  std::uint32_t place = 0;
  if (owner != 0) {
    Slot& own = slot_of(owners_, owner);
    if (own.turn != turn_) {
      functions_[size_] = {owner, 0, 0, 0, 0, 0, 0};
      own = {owner, ++size_, turn_};
    }
    place = own.place;
  }
  known = {id, place, turn_};
  return place;
}

void EventSample::count(std::uint32_t place, std::uint64_t ticks) {
  FunctionSample& f = functions_[place - 1];
  ++f.calls;
  f.ticks += ticks;
  if (ticks > f.longest) f.longest = ticks;
}

bool EventSample::see(std::uint32_t& id) {
  const std::uint32_t place = place_of(id);
  if (place == 0) return false;
  functions_[place - 1].weight += event_weight_;
  ++functions_[place - 1].events;
  ++events_;
  weight_ += event_weight_;
  id = place;
  return true;
}

void EventSample::ended(Open* stack, std::size_t at, std::uint64_t ticks, walk::Way way) {
  const Open& open = stack[at];
  count(open.function, ticks > open.begin ? ticks - open.begin : 0);
  const bool seen = way != walk::Way::kUnseen && way != walk::Way::kSwitched;
  if (seen && !open.extra.resumed) ++functions_[open.function - 1].whole;
}

// It was open when the sample began.
void EventSample::exit_unentered(std::uint32_t place, std::uint64_t ticks, walk::Way) {
  count(place, ticks > first_ ? ticks - first_ : 0);
}

std::uint32_t EventSample::resumed(Open& open, const Open*, std::size_t) {
  open.extra.resumed = true;
  return new_serial();
}

void EventSample::add(const Event* events, std::uint32_t count_, std::uint64_t block_ticks, std::uint64_t since,
                      std::uint32_t weight, bool follows) {
  if (!follows) {
    finish();
    start_segment(false);
  }
  event_weight_ = weight;
  walk_within(events, count_, block_ticks, since, ~std::uint64_t{0});
}

void EventSample::finish() {
  while (top_ != 0) end_top(latest(), walk::Way::kUnseen);
}

}  // namespace karst::runtime
