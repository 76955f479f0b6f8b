// SPDX-License-Identifier: MIT
// What marks mean: ways out of calls, jumps, and switches of stacks and fibers. All of it is rare beside calls. It is
// part of the walker (walk/walker.h), which includes this at its end.
#pragma once
#include <cstddef>
#include <cstdint>

#include "format/event.h"
#include "format/note.h"
#include "walk/walker.h"

namespace karst::walk {

// Returns how many words after the first it used.
template <typename Self, typename Memory>
std::size_t Walker<Self, Memory>::read_mark(const format::Event* words, std::size_t count, std::uint64_t epoch) {
  using format::Event;
  using format::Mark;
  const auto ticks_of = [epoch](Event e) { return epoch | (e >> KARST_EVENT_TICK_SHIFT); };
  const auto word = [&](std::size_t at) { return at < count ? __atomic_load_n(&words[at], __ATOMIC_RELAXED) : 0; };
  const Event mark = word(0);
  const Event next = word(1);
  switch (static_cast<Mark>(format::event_function(mark))) {
    case Mark::kUnwound: {
      const std::uint64_t before = last_;
      see_time(ticks_of(mark));
      if (next == 0 || !format::event_is_exit(next) || format::event_is_mark(next)) return 0;
      see_time(ticks_of(next));
      unwound(format::event_function(next), ticks_of(next), before);
      return 1;
    }
    case Mark::kSetPlace:
      set_place(format::event_place(mark));
      return 0;
    case Mark::kJumped:
      see_time(ticks_of(mark));
      if (!format::event_is(next, Mark::kPlace)) return 0;
      jump(format::event_place(next), ticks_of(mark));
      return 1;
    case Mark::kSwitched: {
      see_time(ticks_of(mark));
      const Event to = word(2);
      if (!format::event_is(next, Mark::kPlace) || !format::event_is(to, Mark::kPlace)) return 0;
      switch_stack(format::event_place(next), format::event_place(to), ticks_of(mark));
      return 2;
    }
    case Mark::kNote: {
      see_time(ticks_of(mark));
      if (!format::event_is(next, Mark::kNoteHead)) return 0;
      const format::NoteHead head = format::note_head(next);
      for (std::uint32_t i = 0; i < head.words; ++i)
        if (!format::event_is(word(2 + i), Mark::kNoteWord)) return 1 + i;
      self().place_set();
      self().noted(head, words + 2, ticks_of(mark));
      if (head.kind == format::NoteKind::kFiber) {
        const auto payload = [&](std::uint32_t i) { return i < head.words ? format::note_payload(word(2 + i)) : 0; };
        switch_fiber(format::fiber_note(payload), ticks_of(mark));
      }
      return 1 + head.words;
    }
    case Mark::kPlace:  // without its mark
    case Mark::kPad:
    case Mark::kNoteHead:
    case Mark::kNoteWord:
      return 0;
  }
  return 0;  // of a later version
}

template <typename Self, typename Memory>
void Walker<Self, Memory>::unwound(std::uint32_t id, std::uint64_t ticks, std::uint64_t before) {
  if constexpr (Self::kSwitches) {
    if (switching_ && self().is_blind(id)) return self().ignored();
  }
  if constexpr (Self::kTranslates) {
    typename Self::Hot hot;
    hot.load(self());
    if (!hot.see(id)) return;
  } else {
    self().tail_owner(id, id);
    if (id - 1 >= self().known_) self().see_unknown(id);
  }
  if (top_ != base_ && memory_.stack()[top_ - 1].function == id) {
    end_top(ticks, Way::kUnwound);
    end_cut(ticks);
  } else {
    exit_elsewhere(id, ticks, before, Way::kUnwound);
  }
}

template <typename Self, typename Memory>
void Walker<Self, Memory>::set_place(std::uint64_t place) {
  self().place_set();
  const Place here{top_, top_ == 0 ? 0 : memory_.stack()[top_ - 1].serial};
  if (!memory_.set_place(place, here)) forget(last_);
}

template <typename Self, typename Memory>
void Walker<Self, Memory>::jump(std::uint64_t place, std::uint64_t ticks) {
  std::size_t depth = 0;
  if (Place* set = memory_.find_place(place); set != nullptr) {
    if constexpr (Self::kSwitches)
      if (switching_) *set = self().standing(*set);
    depth = set->depth;
    // The call that set the place must still be open. If not, this is no way out of the calls that are: a jump to
    // another stack, most likely.
    if (depth > top_ || (depth != 0 && memory_.stack()[depth - 1].serial != set->serial)) {
      ++oddities_.strange_jumps;
      return;
    }
  } else {
    self().jumped_far();
  }
  while (top_ > depth) end_top(ticks, Way::kJumped);
  while (memory_.below_count() != 0 && memory_.innermost_below().base > depth) memory_.pop_below();
  settle_base();
  end_cut(ticks);
}

template <typename Self, typename Memory>
void Walker<Self, Memory>::switch_stack(std::uint64_t from, std::uint64_t to, std::uint64_t ticks) {
  self().place_set();
  if (const std::size_t back = memory_.find_below(to); back != 0) {
    // Back to a stack that waits for this one; perhaps past others in between.
    std::uint64_t place = from;
    while (memory_.below_count() >= back) {
      const Below last = memory_.innermost_below();
      put_aside(place, last.base, ticks);
      place = last.left_at;
      memory_.pop_below();
    }
    settle_base();
    end_cut(ticks);
    return;
  }
  if (!knows_stacks_) {
    // Which stack waits for which is not known: that this one is above the calls at hand would be a guess.
    lost_stacks_ = true;
    put_aside(from, 0, ticks);
  } else if (memory_.push_below({from, top_})) {
    base_ = top_;
  } else {
    return forget(ticks);
  }
  resume(to, ticks);
}

template <typename Self, typename Memory>
void Walker<Self, Memory>::switch_fiber(const format::FiberNote& note, std::uint64_t ticks) {
  // No stack pointer has the uppermost bit here.
  constexpr std::uint64_t kFiber = std::uint64_t{1} << 63;
  self().place_set();
  lost_stacks_ = true;  // what a fiber called in another thread is not known
  if (note.left_known) {
    put_aside(kFiber | note.left, 0, ticks);
  } else {
    while (top_ != 0) end_top(ticks, Way::kSwitched);
  }
  while (memory_.below_count() != 0) memory_.pop_below();
  settle_base();
  end_cut(ticks);
  resume(kFiber | note.entered, ticks);
}

template <typename Self, typename Memory>
void Walker<Self, Memory>::put_aside(std::uint64_t place, std::size_t down_to, std::uint64_t ticks) {
  memory_.begin_aside(place, ticks);
  const Open* stack = memory_.stack();
  for (std::size_t i = down_to; i < top_; ++i)
    if (!is_cut(i)) memory_.add_aside({stack[i].function, stack[i].extra});
  const bool kept = memory_.end_aside();
  while (top_ > down_to) end_top(ticks, Way::kSwitched);
  if (!kept) forget(ticks);
}

template <typename Self, typename Memory>
void Walker<Self, Memory>::resume(std::uint64_t place, std::uint64_t ticks) {
  const auto aside = memory_.take_aside(place);  // stays as it is until the next is begun
  const auto goes_on = [&](const AsideCall<decltype(Open::extra)>& call) {
    if constexpr (Self::kSwitches) return !switching_ || !self().blinded_since(call.function, aside.ticks);
    return true;
  };
  std::size_t count = 0;
  for (std::size_t i = 0; i < aside.count; ++i) count += goes_on(aside.calls[i]) ? 1 : 0;
  if (count == 0) return;
  if (resumed_ + count > kResumedFreely + kResumedPerEvent * seen_ || !self().make_room_for(count)) {
    self().refused(count);
    return;
  }
  resumed_ += count;
  for (std::size_t i = 0; i < aside.count; ++i) {
    if (!goes_on(aside.calls[i])) continue;
    Open open{ticks, 0, aside.calls[i].function, aside.calls[i].extra};
    open.serial = self().resumed(open, memory_.stack(), top_);
    if (!push(open)) return forget(ticks);
  }
}

}  // namespace karst::walk
