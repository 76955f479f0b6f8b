#include "runtime/core/budget_sample.h"

#include <sys/mman.h>

#include "runtime/core/memory.h"
#include "runtime/core/syscalls.h"

namespace karst::runtime {

using namespace format;

namespace {

template <typename T>
bool map(T*& out, std::uint32_t count) {
  const long got = sys::mmap(0, align_up(count * sizeof(T), 4096), PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
  if (sys::failed(got)) return false;
  out = reinterpret_cast<T*>(got);
  return true;
}

std::uint32_t hash(std::uint32_t id) { return id * 0x9e3779b1U; }

}  // namespace

bool EventSample::create() {
  return map(functions_, kMostFunctions) && map(slots_, kSlots) && map(owners_, kSlots) && map(open_, kDepth);
}

void EventSample::clear() {
  size_ = 0;
  ids_ = 0;
  events_ = 0;
  weight_ = 0;
  depth_ = 0;
  first_ticks_ = last_ticks_ = 0;
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

void EventSample::leave(std::uint32_t place, std::uint64_t ticks) {
  if (depth_ == 0) return count(place, ticks - first_ticks_);  // it was open when the sample began
  // Calls may be missing (what was cut off by an exception or switched off meanwhile); look some levels down.
  for (std::uint32_t n = 1; n <= depth_ && n <= 8; ++n) {
    const Open& o = open_[depth_ - n];
    if (o.place != place) continue;
    count(place, ticks - o.ticks);
    ++functions_[place - 1].whole;
    depth_ -= n;
    return;
  }
}

void EventSample::add(const Event* events, std::uint32_t count_, std::uint64_t block_ticks, std::uint64_t since,
                      std::uint32_t weight, bool follows) {
  if (!follows) {
    finish();
    first_ticks_ = 0;
  }
  for (std::uint32_t i = 0; i < count_; ++i) {
    const Event e = events[i];
    if (e == 0 || event_is_mark(e)) continue;
    const std::uint64_t ticks = event_ticks(e, block_ticks);
    if (ticks < since || ticks < last_ticks_) continue;
    const std::uint32_t place = place_of(event_function(e));
    if (first_ticks_ == 0) first_ticks_ = ticks;
    last_ticks_ = ticks;
    if (place == 0) continue;
    functions_[place - 1].weight += weight;
    ++functions_[place - 1].events;
    ++events_;
    weight_ += weight;
    if (event_is_exit(e))
      leave(place, ticks);
    else if (depth_ < kDepth)
      open_[depth_++] = {place, ticks};
  }
}

void EventSample::finish() {
  while (depth_ != 0) {
    const Open& o = open_[--depth_];
    count(o.place, last_ticks_ - o.ticks);
  }
  last_ticks_ = 0;
}

}  // namespace karst::runtime
