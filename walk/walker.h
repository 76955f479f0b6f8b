// What a thread's events mean: which calls they begin and end. The one place that decides it; everything that reads
// events is a visitor of this walker. The reader makes rows of calls (reader/rebuilder.h), collect/ asks what is open,
// counts and samples, the runtime's budget samples within the traced process.
//
// A *segment* is a piece of a thread's history without a gap. Rules, in the order of their need:
// - An enter begins a call. An exit of the innermost open call ends it.
// - An exit of an outer open call: the calls within it ended without being seen to (a lost exit, a way out that nobody
//   watches). Their last sure moment is the event before.
// - An exit while nothing is open: the enter lies before the segment.
// - An exit of something that is not open while other calls are: it cannot be; counted, left out.
// - A loose zone begins and ends by calls of its own, which may be wrapped: then the wrapper returns while the zone is
//   open, or the zone ends while the wrapper is. A wrapper that begins a zone ends where that begins, and a zone ends
//   where the wrapper begins that ends it (kMovesZones).
// - A jump ends the calls begun since its place was set. If that lies before the segment: all whose enter is known.
// - A switch of stacks puts the calls of the stack that is left aside; they go on when the thread comes back. A stack
//   that was never seen in a whole history is one made new: its calls are below those of the stack that switched to it.
// - A note that the thread goes on with another fiber does so as well; the fiber's calls are below no others. (The
//   reader gives fibers lanes of their own before: reader/fibers.h. So it is for who looks at a single thread.)
//
// How it is used: `class Visitor : public Walker<Visitor, Memory>`. The walker calls the visitor by static dispatch:
//
//   Hot                        what the visitor needs for each event. walk() keeps one in registers: load() and store()
//                              move it from and to the visitor around everything rare.
//     bool room()              whether one more call can be taken
//     bool see(id)             with kTranslates alone: id becomes what stands for its function; false: ignore the event
//     Open enter(...)          a call begins, and will be stack[top]. No two open calls may have the same serial
//     void end(...)            the innermost call, stack[top], ended
//   ended(...)                 the same off the fast path; also for calls whose end was not seen
//   exit_unentered(...)        an exit while nothing is open; room_for_unentered() is asked first
//   tail_owner(id, owner)      whether `id` is a second id, and whose; tail calls' exits have those
//   count_of(id), counted(id)  a counter by function, 0 at first, and its value; clear_counts() makes all 0
//   known_, see_unknown(id)    an id that is not from 1 to known_; rare
//   refused(n)                 calls for which there was no room
//   make_room_for(n)           n calls go on again; false: there is no room. For each of them resumed() gives the
//   serial
//   place_set()                later events may name the calls that are open now, or a note belongs to one
//   noted(head, words, ticks)  a note, of the innermost open call if there is one; head.words words, each whole
//   jumped_far()               a jump to a place that was not set in this segment
//   lost()                     what was open had to be given up: it was more than Memory can hold
// CountingVisitor has what most visitors do not care about.
// With kSwitches (reader/cuts.cc): next_switch(), pass_switches(), is_blind(), is_cut(), end_cut(), began_unseen(),
// blinded_since(), standing().
//
// With kMovesZones: is_loose_zone(id); move_up(first, ended), which makes the calls from `first` on, all of them within
// `ended`, calls of its caller, or says that it cannot.
//
// Memory holds the stack, the places and the stacks aside. It may be fixed: what does not fit makes the walker forget,
// which is told by lost(), and never guess. The walker itself neither allocates nor calls anything else.
//
// Events are hostile. Time is linear in their number: a search either ends the calls that it passes, or was in vain;
// then calls are counted by function, and what is searched in vain yet is paid for by events, as are calls that go on
// again.
#pragma once
#include <cstddef>
#include <cstdint>

#include "format/event.h"
#include "format/note.h"

namespace karst::walk {

/// How a call came to its end, as far as that is known.
enum class Way : std::uint8_t {
  kReturned,
  kTailCalled,
  kUnwound,   ///< by an exception or a forced unwind
  kJumped,    ///< a longjmp went over it
  kSwitched,  ///< not at all: its stack was left
  kUnseen,    ///< its exit is not among the events
  kCut,       ///< its function was switched off meanwhile
};

/// An open call.
template <typename Extra>
struct OpenCall {
  std::uint64_t begin = 0;     ///< ticks; of its enter, or when it went on
  std::uint32_t serial = 0;    ///< the visitor's name for it
  std::uint32_t function = 0;  ///< the id, or what the visitor made of it
  [[no_unique_address]] Extra extra{};
};

/// A call of a stack that was left.
template <typename Extra>
struct AsideCall {
  std::uint32_t function = 0;
  [[no_unique_address]] Extra extra{};
};

struct Nothing {};

/// Where a longjmp may go to.
struct Place {
  std::size_t depth = 0;     ///< calls that were open
  std::uint32_t serial = 0;  ///< of the innermost of them
};

/// A stack that waits for the one that it switched to.
struct Below {
  std::uint64_t left_at = 0;  ///< the place where it was left
  std::size_t base = 0;       ///< the calls of the one above begin at this depth
};

/// What did not fit, since the visitor was made.
struct Oddities {
  std::uint64_t out_of_order = 0;
  std::uint64_t unmatched_exits = 0;
  std::uint64_t missing_exits = 0;
  std::uint64_t strange_jumps = 0;
};

template <typename Self, typename Memory>
class Walker {
 public:
  using Open = typename Memory::Open;
  const Oddities& oddities() const { return oddities_; }

 protected:
  Walker() = default;

  /// Before a segment's first events. `from_thread_start`: the thread did nothing before it.
  void start_segment(bool from_thread_start);
  /// The next events of the segment: words of one block, in order. Returns how many were empty slots. kSwitching needs
  /// Self::kSwitches.
  template <bool kSwitching>
  std::size_t walk(const format::Event* events, std::size_t count, std::uint64_t block_ticks);
  /// Ends the innermost open call.
  void end_top(std::uint64_t end, Way way);
  /// The latest time that was seen.
  std::uint64_t latest() const { return last_ > highest_ ? last_ : highest_; }
  /// Gives up all that is known to be open, and what is known of other stacks.
  void forget(std::uint64_t ticks);
  /// Puts a call on the stack that is known to be open, as its enter does.
  bool push(const Open& open);

  Memory memory_;
  std::size_t top_ = 0;        // open calls
  std::size_t base_ = 0;       // of the current stack's own calls
  std::size_t old_ = 0;        // calls below this one may be cut (kSwitches)
  bool started_ = false;       // the segment has seen an event
  std::uint64_t first_ = 0;    // its first event's time
  std::uint64_t last_ = 0;     // the last event's time
  std::uint64_t highest_ = 0;  // the latest time before the clock went back
  bool from_thread_start_ = false;
  bool knows_stacks_ = false;   // a stack that was never seen is a new one
  bool lost_stacks_ = false;    // there was a switch of stacks while that was not so
  bool counting_ = false;       // calls on the stack are counted by function
  bool switching_ = false;      // the visitor has switches to pass (kSwitches)
  std::uint64_t resumed_ = 0;   // calls that went on again
  std::uint64_t seen_ = 0;      // events of the blocks before
  std::uint64_t searched_ = 0;  // open calls that were searched in vain
  Oddities oddities_;

 private:
  static constexpr std::size_t kScanFreely = 64;  // open calls that may be searched in vain at no notable cost
  // A function may be open on another stack alone, so that each of its exits is searched for in vain.
  static constexpr std::uint64_t kSearchPerEvent = 16;
  static constexpr std::uint64_t kSearchFreely = 1 << 22;
  // Events may ask for calls to go on again and again: what that costs is to stand in proportion to their number.
  static constexpr std::uint64_t kResumedPerEvent = 4;
  static constexpr std::uint64_t kResumedFreely = 1 << 16;
  static constexpr std::size_t kMostAbove = 16;  // open calls that go on as those of a caller's caller

  Self& self() { return static_cast<Self&>(*this); }
  void see_time(std::uint64_t ticks);
  void settle_base() { base_ = memory_.below_count() == 0 ? 0 : memory_.innermost_below().base; }
  void end_cut(std::uint64_t ticks) {
    if constexpr (Self::kSwitches)
      if (switching_) self().end_cut(ticks);
  }
  bool is_cut(std::size_t at) {
    if constexpr (Self::kSwitches) return at < old_ && self().is_cut(memory_.stack()[at]);
    return false;
  }
  bool began_unseen(std::uint32_t id) {
    if constexpr (Self::kSwitches) return switching_ && self().began_unseen(id);
    return false;
  }
  void exit_elsewhere(std::uint32_t id, std::uint64_t ticks, std::uint64_t last_inside, Way way);
  bool end_below(std::size_t at, std::uint64_t ticks, Way way);
  std::size_t read_mark(const format::Event* words, std::size_t count, std::uint64_t epoch);
  void unwound(std::uint32_t id, std::uint64_t ticks, std::uint64_t before);
  void set_place(std::uint64_t place);
  void jump(std::uint64_t place, std::uint64_t ticks);
  void switch_stack(std::uint64_t from, std::uint64_t to, std::uint64_t ticks);
  void switch_fiber(const format::FiberNote& note, std::uint64_t ticks);
  void put_aside(std::uint64_t place, std::size_t down_to, std::uint64_t ticks);
  void resume(std::uint64_t place, std::uint64_t ticks);
};

// Twice where there are switches: who has none does not pay for them.
template <typename Self, typename Memory>
template <bool kSwitching>
std::size_t Walker<Self, Memory>::walk(const format::Event* events, std::size_t count, std::uint64_t block_ticks) {
  const std::uint64_t epoch = block_ticks & ~format::kEventTickMask;
  // What the loop works on is kept out of memory; the rare ways go through the members.
  typename Self::Hot hot;
  Open* stack = nullptr;
  std::size_t top = 0;
  std::size_t base = 0;
  std::size_t capacity = 0;
  std::uint64_t last = 0;
  std::size_t holes = 0;
  const auto load = [&] {
    hot.load(self());
    stack = memory_.stack();
    capacity = memory_.capacity();
    top = top_;
    base = base_;
    last = last_;
  };
  const auto store = [&] {
    hot.store(self());
    top_ = top;
    last_ = last;
  };
  load();

  for (std::size_t at = 0; at < count; ++at) {
    // Others may write to it: one look at each, that compilers may not repeat.
    const format::Event event = __atomic_load_n(&events[at], __ATOMIC_RELAXED);
    if (event == 0) [[unlikely]] {
      ++holes;
      continue;
    }
    std::uint32_t id = format::event_function(event);
    // Id 0 wraps around and is looked up as well.
    if (id - 1 >= self().known_) [[unlikely]] {
      if (format::event_is_mark(event) && format::event_is_exit(event)) {
        store();
        at += read_mark(events + at, count - at, epoch);
        load();
        continue;
      }
      self().see_unknown(id);
    }
    const std::uint64_t ticks = epoch | (event >> KARST_EVENT_TICK_SHIFT);
    if constexpr (kSwitching) {
      if (ticks >= self().next_switch()) [[unlikely]] {
        store();
        self().pass_switches(ticks);
        load();
      }
      if (self().is_blind(id)) {
        self().ignored();
        continue;
      }
    }
    if constexpr (Self::kTranslates)
      if (!hot.see(id)) continue;
    if (!started_) [[unlikely]] {
      started_ = true;
      first_ = last = highest_ = ticks;
    }
    const std::uint64_t before = last;
    if (ticks < before) [[unlikely]] {
      ++oddities_.out_of_order;
      if (highest_ < before) highest_ = before;
    }
    last = ticks;

    if (!format::event_is_exit(event)) {
      if (!hot.room()) [[unlikely]] {
        self().refused(1);
        continue;
      }
      if (top == capacity) [[unlikely]] {
        store();
        if (!memory_.grow(top)) forget(ticks);
        load();
      }
      stack[top] = hot.enter(id, ticks, stack, top);
      ++top;
      if (counting_) [[unlikely]]
        ++self().count_of(id);
    } else if (top != base && stack[top - 1].function == id) {
      --top;
      hot.end(stack, top, ticks, Way::kReturned);
      if (counting_) [[unlikely]]
        --self().count_of(id);
      if constexpr (kSwitching) {
        if (top <= old_) [[unlikely]] {
          store();
          self().end_cut(ticks);
          load();
        }
      }
    } else {
      Way way = Way::kReturned;
      if (self().tail_owner(id, id)) way = Way::kTailCalled;
      if (way == Way::kTailCalled && top != base && stack[top - 1].function == id && !counting_) [[likely]] {
        --top;
        hot.end(stack, top, ticks, Way::kTailCalled);
        if constexpr (kSwitching) {
          if (top <= old_) [[unlikely]] {
            store();
            self().end_cut(ticks);
            load();
          }
        }
        continue;
      }
      store();
      exit_elsewhere(id, ticks, before, way);
      load();
    }
  }
  store();
  seen_ += count - holes;
  return holes;
}

template <typename Self, typename Memory>
void Walker<Self, Memory>::start_segment(bool from_thread_start) {
  started_ = false;
  from_thread_start_ = from_thread_start;
  knows_stacks_ = from_thread_start;
  lost_stacks_ = false;
  memory_.forget();
  base_ = 0;
  if (counting_) self().clear_counts();
  counting_ = false;
  old_ = 0;
}

template <typename Self, typename Memory>
void Walker<Self, Memory>::end_top(std::uint64_t end, Way way) {
  --top_;
  Open* stack = memory_.stack();
  if (is_cut(top_)) return self().ended(stack, top_, end, Way::kCut);
  self().ended(stack, top_, end, way);
  if (counting_) --self().count_of(stack[top_].function);
}

template <typename Self, typename Memory>
void Walker<Self, Memory>::forget(std::uint64_t ticks) {
  while (top_ != 0) end_top(ticks, Way::kUnseen);
  memory_.forget();
  base_ = 0;
  knows_stacks_ = false;
  lost_stacks_ = true;
  self().lost();
}

template <typename Self, typename Memory>
bool Walker<Self, Memory>::push(const Open& open) {
  if (top_ == memory_.capacity() && !memory_.grow(top_)) return false;
  memory_.stack()[top_++] = open;
  if (counting_) ++self().count_of(open.function);
  return true;
}

template <typename Self, typename Memory>
void Walker<Self, Memory>::exit_elsewhere(std::uint32_t id, std::uint64_t ticks, std::uint64_t last_inside, Way way) {
  // A stack that has no call open and sees one of the stack before it end has come to its own end unseen.
  while (top_ == base_ && memory_.below_count() != 0) {
    memory_.pop_below();
    settle_base();
    end_cut(last_inside);
  }
  if (top_ == 0) {
    if (began_unseen(id)) return;
    if (!self().room_for_unentered()) return;
    if (lost_stacks_) {
      ++oddities_.unmatched_exits;  // of the stack at hand or of another: whose caller it was is not known
      return;
    }
    self().exit_unentered(id, ticks, way);
    // Nothing was overwritten before a thread's first block: tracing came on late, or the event is wrong.
    if (from_thread_start_) ++oddities_.unmatched_exits;
    return;
  }
  const Open* stack = memory_.stack();
  const bool hopeless = counting_ && (self().counted(id) == 0 || searched_ > kSearchFreely + kSearchPerEvent * seen_);
  std::size_t at = hopeless ? base_ : top_;
  while (at != base_ && (stack[at - 1].function != id || is_cut(at - 1))) --at;
  if (at == base_) {
    if (!began_unseen(id)) ++oddities_.unmatched_exits;
    if (!hopeless) searched_ += top_ - base_;
    if (!counting_ && top_ > kScanFreely) {
      counting_ = true;
      for (std::size_t i = 0; i < top_; ++i)
        if (!is_cut(i)) ++self().count_of(stack[i].function);
    }
    return;
  }
  if (top_ > at && end_below(at, ticks, way)) return;
  while (top_ > at) {
    end_top(last_inside, Way::kUnseen);
    ++oddities_.missing_exits;
  }
  end_top(ticks, way);
  end_cut(ticks);
}

// Ends stack[at - 1] where the call above it begins, and keeps those above: if it is a loose zone and they are not, or
// they all are and it is not.
template <typename Self, typename Memory>
bool Walker<Self, Memory>::end_below(std::size_t at, std::uint64_t ticks, Way way) {
  if constexpr (Self::kMovesZones) {
    if (top_ - at > kMostAbove || at <= old_) return false;
    Open* stack = memory_.stack();
    const bool zone_ends = self().is_loose_zone(stack[at - 1].function);
    for (std::size_t i = at; i < top_; ++i)
      if (self().is_loose_zone(stack[i].function) == zone_ends) return false;
    if (!self().move_up(stack[at].serial, stack[at - 1].serial)) return false;
    if (counting_) --self().count_of(stack[at - 1].function);
    self().ended(stack, at - 1, stack[at].begin, way);
    for (std::size_t i = at; i < top_; ++i) stack[i - 1] = stack[i];
    --top_;
    end_cut(ticks);
    return true;
  }
  return false;
}

template <typename Self, typename Memory>
void Walker<Self, Memory>::see_time(std::uint64_t ticks) {
  if constexpr (Self::kSwitches)
    if (switching_) self().pass_switches(ticks);
  if (!started_) {
    started_ = true;
    first_ = last_ = highest_ = ticks;
  }
  if (ticks < last_) {
    ++oddities_.out_of_order;
    if (highest_ < last_) highest_ = last_;
  }
  last_ = ticks;
}

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
