// SPDX-License-Identifier: MIT
// The calls of a process while it makes them, for `karst tail`: an arena that is read again and again, each time from
// where the last look ended.
//
// The arena is the buffer. Of a process that calls faster than its calls are taken, the oldest unread blocks are walked
// without a line for each call: their calls are counted as missed, and what is open stays known. Blocks that were
// recycled before they were read are counted as well, by what such a block holds.
//
// Lines of a thread are in the order of its events, those of several threads in order of time. A line waits for the
// next look if what belongs to it is still being written: the words of a note, a slot whose hook was interrupted, or
// (min-duration=TIME) a call that may still be taken back.
//
// Nothing in the arena is trusted. A look takes time by the blocks that there are, and memory by kBlocksAtOnce of them.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "collect/arena/view.h"
#include "walk/open_call.h"

namespace karst::collect {

/// What a function's name says of its calls.
struct TailRule {
  bool root = false;         ///< TailOptions::roots: its calls and those within them are shown
  bool hidden = false;       ///< neither its calls nor those within them are
  std::uint32_t depths = 0;  ///< bit i: TailOptions::depths[i] is about it
};

inline constexpr std::size_t kMostTailDepths = 32;

struct TailOptions {
  std::uint64_t from = 0;       ///< ticks: what was before is not shown, but what is open then is known
  std::uint64_t min_ticks = 0;  ///< shorter calls are not shown, unless a note lies in them
  std::uint64_t most_lag = 0;   ///< ticks: what is older is missed if there is much of it; 0: any
  bool notes = true;
  bool roots = false;                 ///< only calls of functions that are roots, and calls within those
  std::uint32_t depth = ~0U;          ///< levels that are shown
  std::vector<std::uint32_t> depths;  ///< below the outermost call of such a function so many levels instead
  /// Asked once for each function that is called.
  std::function<TailRule(std::uint32_t id)> rule_of;
  /// Asked once for each thread. Empty: all are shown.
  std::function<bool(const reader::Thread& thread)> wants;
};

enum class TailKind : std::uint8_t {
  kBegin,   ///< a call began
  kEnd,     ///< one that has a kBegin line ended
  kCall,    ///< both in one: nothing was shown between them
  kNote,    ///< the program said something
  kMissed,  ///< calls were not shown, or events overwritten
};

/// Texts of a line. What calls were given and returned are notes' bytes, for analysis::values_in().
struct TailTexts {
  std::string arguments;
  std::string returned;  ///< of a note: what it says
};

struct TailLine {
  TailKind kind = TailKind::kCall;
  walk::Way way = walk::Way::kReturned;  ///< how the call ended
  bool unentered = false;                ///< it began before what is known; `duration` is a bound
  bool resumed = false;                  ///< its stack went on here
  std::uint8_t note = 0;                 ///< format::NoteKind
  std::uint32_t thread = 0;              ///< Tail::thread()
  std::uint32_t function = 0;            ///< id, or a note's name; 0: none
  std::uint32_t level = 0;
  std::uint32_t texts = 0;     ///< 1 + number in Tail::texts(); 0: none
  std::uint64_t ticks = 0;     ///< of its begin, or (kEnd) end
  std::uint64_t duration = 0;  ///< ticks; of kMissed the calls
  std::uint64_t key = 0;       ///< when it became known: what the order goes by
};

struct TailCounts {
  std::uint64_t shown = 0;        ///< calls that have a line
  std::uint64_t missed = 0;       ///< that were to be shown, and came too fast
  std::uint64_t overwritten = 0;  ///< events, at most, that were gone before they were read
  std::uint64_t threads = 0;      ///< of which nothing was left when it was looked for
  std::uint64_t lines = 0;
};

class TailThread;

/// Follows one process. `arena` must outlive it; one thread at a time.
class Tail {
 public:
  Tail(const ArenaView& arena, TailOptions options);
  ~Tail();
  Tail(const Tail&) = delete;
  Tail& operator=(const Tail&) = delete;

  /// Looks once, at what was recorded up to `now` (ticks). With `ended` there will be no more: all that is left, in
  /// several looks. True: there is more to be had at once.
  bool look(std::uint64_t now, bool ended);
  /// What the last look found, in order; valid until the next one, as are its texts.
  const std::vector<TailLine>& lines() const { return lines_; }
  const std::vector<TailTexts>& texts() const { return texts_; }
  /// Whose line it is.
  const reader::Thread& thread(const TailLine& line) const { return known_[line.thread]; }
  TailCounts counts() const;

 private:
  friend class TailThread;
  struct Followed;
  struct Horizon {
    std::uint64_t to = 0;  ///< ticks
    bool skip = false;     ///< without lines
    bool more = false;     ///< there is more behind it
  };

  TailRule rule(std::uint32_t id);
  std::unique_ptr<Followed> make(const reader::Thread& thread);
  void sort_out(const std::vector<ArenaBlock>& blocks);
  void leave_out_history();
  Horizon horizon(std::uint64_t now, bool ended);
  void follow(Followed& followed, const Horizon& horizon, std::uint64_t now, bool ended);
  std::size_t settled(Followed& followed, std::span<const format::Event> events, std::uint64_t now) const;
  void merge();

  const ArenaView& arena_;
  TailOptions options_;
  bool first_ = true;
  bool has_read_ = false;                            ///< in this look
  std::vector<std::unique_ptr<Followed>> followed_;  ///< by the thread's place in the arena
  std::vector<std::uint64_t> unread_;                ///< begins of blocks, sorted
  std::vector<reader::Thread> known_;                ///< by TailLine::thread
  std::vector<std::pair<bool, TailRule>> rules_;     ///< by id; false: not asked for yet
  std::vector<TailLine> lines_;
  std::vector<TailTexts> texts_;
  std::vector<format::Event> buffer_;
  std::uint64_t threads_before_ = 0;  ///< that there were when ...
  std::uint64_t began_at_ = 0;        ///< ... this was made (ticks)
  std::uint64_t threads_seen_ = 0;    ///< that came since
  TailCounts gone_;                   ///< of threads whose place is another one's now
};

}  // namespace karst::collect
