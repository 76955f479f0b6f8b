// SPDX-License-Identifier: MIT
// What a walker (walk/walker.h) remembers, without a limit but the events' number. Outside of the runtime alone.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "walk/open_call.h"

namespace karst::walk {

template <typename Extra = Nothing>
class GrowingMemory {
 public:
  using Open = OpenCall<Extra>;
  using Call = AsideCall<Extra>;
  struct Aside {
    std::vector<Call> calls;  ///< outermost first
    std::uint64_t ticks = 0;  ///< when the stack was left
  };
  struct Taken {
    const Call* calls;
    std::size_t count;
    std::uint64_t ticks;
  };

  Open* stack() { return stack_.data(); }
  const Open* stack() const { return stack_.data(); }
  std::size_t capacity() const { return stack_.size(); }
  bool grow(std::size_t used) {
    if (used >= most_) return false;
    stack_.resize(std::min(most_, std::max<std::size_t>(256, used * 2)));
    return true;
  }
  /// More calls than this are not kept open.
  void set_most(std::size_t most) { most_ = most; }

  Place* find_place(std::uint64_t place) {
    const auto at = places_.find(place);
    return at != places_.end() ? &at->second : nullptr;
  }
  bool set_place(std::uint64_t place, const Place& here) {
    places_.insert_or_assign(place, here);
    return true;
  }

  /// Calls `use(Place&)` for each, whose calls are to have other names.
  template <typename Use>
  void each_place(Use&& use) {
    for (auto& [place, here] : places_) use(here);
  }

  std::size_t below_count() const { return below_.size(); }
  const Below& innermost_below() const { return below_.back().below; }
  bool push_below(const Below& below) {
    std::size_t& at = below_at_[below.left_at];
    below_.push_back({below, at});
    at = below_.size();
    return true;
  }
  void pop_below() {
    const auto at = below_at_.find(below_.back().below.left_at);
    at->second = below_.back().same_place;
    if (at->second == 0) below_at_.erase(at);
    below_.pop_back();
  }
  /// 1 + number of the innermost stack that was left there; 0: none.
  std::size_t find_below(std::uint64_t place) const {
    const auto at = below_at_.find(place);
    return at != below_at_.end() ? at->second : 0;
  }
  Below below(std::size_t i) const { return below_[i].below; }

  void begin_aside(std::uint64_t place, std::uint64_t ticks) {
    putting_ = place;
    put_.ticks = ticks;
    put_.calls.clear();
  }
  void add_aside(const Call& call) { put_.calls.push_back(call); }
  bool end_aside() {
    if (put_.calls.empty())
      aside_.erase(putting_);
    else
      aside_.insert_or_assign(putting_, std::exchange(put_, {}));
    return true;
  }
  Taken take_aside(std::uint64_t place) {
    const auto at = aside_.find(place);
    if (at == aside_.end()) return {nullptr, 0, 0};
    taken_ = std::move(at->second);
    aside_.erase(at);
    return {taken_.calls.data(), taken_.calls.size(), taken_.ticks};
  }

  void forget() {
    places_.clear();
    below_.clear();
    below_at_.clear();
    aside_.clear();
  }

  std::uint64_t& count_of(std::uint32_t id) { return counts_[id]; }
  std::uint64_t counted(std::uint32_t id) const {
    const auto at = counts_.find(id);
    return at != counts_.end() ? at->second : 0;
  }
  void clear_counts() { counts_.clear(); }

  const std::unordered_map<std::uint64_t, Place>& places() const { return places_; }
  const std::unordered_map<std::uint64_t, Aside>& aside() const { return aside_; }

 private:
  struct Nested {
    Below below;
    std::size_t same_place;  // as find_below() was before it
  };
  std::vector<Open> stack_;
  std::size_t most_ = ~std::size_t{0} / 2;
  std::unordered_map<std::uint32_t, std::uint64_t> counts_;
  std::unordered_map<std::uint64_t, Place> places_;  // by event_place
  std::vector<Nested> below_;                        // outermost first
  std::unordered_map<std::uint64_t, std::size_t> below_at_;
  std::unordered_map<std::uint64_t, Aside> aside_;  // by place
  Aside put_;
  Aside taken_;
  std::uint64_t putting_ = 0;
};

}  // namespace karst::walk
