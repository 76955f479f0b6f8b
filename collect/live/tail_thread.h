// SPDX-License-Identifier: MIT
// One thread's calls as `karst tail` shows them: which have a line, how deep it is indented, and when it comes.
//
// A call gets its line when it begins. If it ends before anything else was shown, that line becomes one for the whole
// call. A line that could not come then (too fast, not long enough yet, begun before the start) comes with the first
// line of a call within it. So of a call that has a line all visible calls around it have one.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "collect/live/tail.h"
#include "format/note.h"
#include "walk/growing_memory.h"
#include "walk/plain_walker.h"

namespace karst::collect {

/// What TailThread knows of an open call besides.
struct TailCall {
  std::uint32_t level = 0;
  std::uint32_t below = 0;   ///< level of the calls that it makes
  std::uint32_t limit = 0;   ///< levels from this one on are not shown
  std::uint32_t depths = 0;  ///< TailRule::depths that hold
  bool inside = false;       ///< of a root
  bool hidden = false;
  bool visible = false;
  bool has_line = false;  ///< kBegin; then so have all visible calls around it
  bool resumed = false;
  bool has_values = false;
};

/// One thread's calls, and its lines of this look.
class TailThread : public walk::PlainWalker<TailThread, walk::GrowingMemory<TailCall>> {
 public:
  TailThread(Tail& tail, std::uint32_t number) : tail_(tail), options_(tail.options_), number_(number) {
    outermost_.inside = !options_.roots;
    outermost_.limit = options_.depth;
  }

  void begin_look(bool skip) {
    lines_.clear();
    folds_at_ = ~std::size_t{0};
    skip_ = skip;
    late_ = late_ || skip;
  }
  void begin(bool from_thread_start) { start_segment(from_thread_start); }
  void consume(const format::Event* words, std::size_t count, std::uint64_t block_ticks) {
    walk<false>(words, count, block_ticks);
  }
  /// Events are missing here, at most so many.
  void gap(std::uint64_t events) {
    forget(latest());
    start_segment(false);
    overwritten(events);
  }
  void overwritten(std::uint64_t events) {
    pending_overwritten_ = std::min(kMostCounted, pending_overwritten_ + std::min(events, kMostCounted));
    counts.overwritten = std::min(kMostCounted, counts.overwritten + std::min(events, kMostCounted));
  }
  /// Lines for what was open for long enough at `now`.
  void end_look(std::uint64_t now, bool ended);
  const std::vector<TailLine>& lines() const { return lines_; }

  // The walker's.
  struct Hot {
    TailThread* to = nullptr;
    void load(TailThread& self) { to = &self; }
    void store(TailThread&) const {}
    bool room() const { return true; }
    bool see(std::uint32_t&) const { return true; }
    Open enter(std::uint32_t id, std::uint64_t ticks, Open* stack, std::size_t top) const {
      Open open{ticks, to->new_serial(), id, {}};
      to->began(open, stack, top);
      return open;
    }
    void end(Open* stack, std::size_t at, std::uint64_t ticks, walk::Way way) const {
      to->ended(stack, at, ticks, way);
    }
  };
  void began(Open& open, Open* stack, std::size_t top);
  void ended(Open* stack, std::size_t at, std::uint64_t ticks, walk::Way way);
  void exit_unentered(std::uint32_t id, std::uint64_t ticks, walk::Way way);
  std::uint32_t resumed(Open& open, const Open* stack, std::size_t top);
  bool tail_owner(std::uint32_t id, std::uint32_t& owner) const {
    const std::uint32_t found = tail_.arena_.tail_owner(id);
    if (found != 0) owner = found;
    return found != 0;
  }
  void noted(const format::NoteHead& head, const format::Event* words, std::uint64_t ticks);

  TailCounts counts;

 private:
  struct Arguments {
    std::uint32_t function;
    std::uint32_t caller;  // serial
    std::string bytes;
  };

  static constexpr std::size_t kMostLines = 1 << 18;  // of a look: only made-up times can bring more
  static constexpr std::uint64_t kMostCounted = std::uint64_t{1} << 48;

  bool skips() const { return skip_ || lines_.size() >= kMostLines; }
  void place(Open& open, const TailCall& around);
  void take_arguments(Open& open, const Open* stack, std::size_t top);
  void show_callers(Open* stack, std::size_t top, std::uint64_t key);
  void show_begin(Open& open, std::uint64_t key);
  void show(TailLine line, std::uint64_t key);
  void show_missed(std::uint64_t key);
  void count(const Open& open) {
    if (!open.extra.resumed && open.begin >= options_.from) ++counts.shown;
  }
  std::uint32_t texts_of(const Open& open, bool with_returned);

  Tail& tail_;
  const TailOptions& options_;
  const std::uint32_t number_;
  TailCall outermost_;
  bool skip_ = false;
  bool late_ = true;  // calls may be open that have no line yet
  std::uint64_t key_ = 0;
  std::uint64_t pending_missed_ = 0;
  std::uint64_t pending_overwritten_ = 0;   // events
  std::size_t folds_at_ = ~std::size_t{0};  // number of lines if the last one is the kBegin of ...
  std::uint32_t folds_ = 0;                 // ... the call with this serial
  std::vector<Arguments> pending_;
  std::unordered_map<std::uint32_t, TailTexts> values_;  // by serial
  std::vector<TailLine> lines_;
};

}  // namespace karst::collect
