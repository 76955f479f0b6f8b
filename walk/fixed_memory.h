// SPDX-License-Identifier: MIT
// What a walker (walk/walker.h) remembers, in a fixed place and size: for the runtime, which allocates nothing. All
// zero is a fresh one. What does not fit makes the walker forget.
#pragma once
#include <cstddef>
#include <cstdint>

#include "walk/open_call.h"

namespace karst::walk {

/// `kDepth` open calls of functions below `kFunctions`.
template <typename Extra, std::size_t kDepth, std::size_t kFunctions>
class FixedMemory {
 public:
  using Open = OpenCall<Extra>;
  using Call = AsideCall<Extra>;
  struct Taken {
    const Call* calls;
    std::size_t count;
    std::uint64_t ticks;
  };

  Open* stack() { return stack_; }
  const Open* stack() const { return stack_; }
  std::size_t capacity() const { return kDepth; }
  bool grow(std::size_t) { return false; }

  Place* find_place(std::uint64_t place) {
    PlaceSlot& slot = slot_of(place);
    return is_used(slot) ? &slot.set : nullptr;
  }
  bool set_place(std::uint64_t place, const Place& here) {
    PlaceSlot& slot = slot_of(place);
    if (!is_used(slot)) {
      if (place_count_ == kPlaces / 2) return false;
      ++place_count_;
    }
    slot = {place, here, turn_ + 1};
    return true;
  }

  std::size_t below_count() const { return below_count_; }
  const Below& innermost_below() const { return below_[below_count_ - 1]; }
  bool push_below(const Below& below) {
    if (below_count_ == kStacks) return false;
    below_[below_count_++] = below;
    return true;
  }
  void pop_below() { --below_count_; }
  /// 1 + number of the innermost stack that was left there; 0: none.
  std::size_t find_below(std::uint64_t place) const {
    std::size_t at = below_count_;
    while (at != 0 && below_[at - 1].left_at != place) --at;
    return at;
  }

  void begin_aside(std::uint64_t place, std::uint64_t ticks) {
    std::size_t at = 0;
    while (at != kStacks && (aside_[at].count == 0 || aside_[at].place != place)) ++at;
    if (at == kStacks)
      for (at = 0; at != kStacks && aside_[at].count != 0;) ++at;
    putting_ = at;
    if (at == kStacks) return;
    aside_[at].place = place;
    aside_[at].ticks = ticks;
    aside_[at].count = 0;
  }
  void add_aside(const Call& call) {
    if (putting_ == kStacks) return;
    Aside& aside = aside_[putting_];
    if (aside.count == kAsideDepth) {
      aside.count = 0;
      putting_ = kStacks;
    } else {
      aside.calls[aside.count++] = call;
    }
  }
  /// False: there was no room.
  bool end_aside() const { return putting_ != kStacks; }
  Taken take_aside(std::uint64_t place) {
    for (Aside& aside : aside_)
      if (aside.count != 0 && aside.place == place) {
        const Taken taken{aside.calls, aside.count, aside.ticks};
        aside.count = 0;  // the calls stay until a stack is put there
        return taken;
      }
    return {nullptr, 0, 0};
  }

  void forget() {
    ++turn_;
    place_count_ = 0;
    below_count_ = 0;
    for (Aside& aside : aside_) aside.count = 0;
  }

  std::uint16_t& count_of(std::uint32_t function) { return counts_[function]; }
  std::uint64_t counted(std::uint32_t function) const { return counts_[function]; }
  void clear_counts() {
    for (std::uint16_t& count : counts_) count = 0;
  }

 private:
  static constexpr std::size_t kPlaces = 256;  // a power of two; half of them at most are used
  static constexpr std::size_t kStacks = 16;
  static constexpr std::size_t kAsideDepth = 64;
  struct PlaceSlot {
    std::uint64_t place;
    Place set;
    std::uint64_t turn;  // the slot is free unless it is 1 + this one
  };
  struct Aside {
    std::uint64_t place;
    std::uint64_t ticks;
    std::size_t count;  // 0: free
    Call calls[kAsideDepth];
  };
  bool is_used(const PlaceSlot& slot) const { return slot.turn == turn_ + 1; }
  /// The place's, or where it would go.
  PlaceSlot& slot_of(std::uint64_t place) {
    std::size_t at = (place * 0x9e3779b97f4a7c15U >> 32) % kPlaces;
    while (is_used(places_[at]) && places_[at].place != place) at = (at + 1) % kPlaces;
    return places_[at];
  }

  static_assert(kDepth <= 0xffff);
  Open stack_[kDepth]{};
  PlaceSlot places_[kPlaces]{};
  Below below_[kStacks]{};
  Aside aside_[kStacks]{};
  std::uint16_t counts_[kFunctions]{};
  std::uint64_t turn_ = 0;
  std::size_t place_count_ = 0;
  std::size_t below_count_ = 0;
  std::size_t putting_ = 0;
};

}  // namespace karst::walk
