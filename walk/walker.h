// SPDX-License-Identifier: MIT
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
#include "walk/open_call.h"

namespace karst::walk {

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
    if (top_ - at > kMostAbove) return false;
    Open* stack = memory_.stack();
    const bool zone_ends = self().is_loose_zone(stack[at - 1].function);
    for (std::size_t i = at; i < top_; ++i)
      if (self().is_loose_zone(stack[i].function) == zone_ends || is_cut(i)) return false;
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

}  // namespace karst::walk

#include "walk/marks.h"  // the definitions of what this declares for marks
