// SPDX-License-Identifier: MIT
#include "reader/fibers.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "format/note.h"
#include "reader/fiber_runs.h"
#include "reader/lost_times.h"
#include "walk/growing_memory.h"
#include "walk/plain_walker.h"

namespace karst::reader {
namespace {

using format::Event;
using format::Mark;

/// Tells how many calls are open behind some events of a lane.
class LaneDepth : public walk::PlainWalker<LaneDepth, walk::GrowingMemory<>> {
 public:
  explicit LaneDepth(const Process& process) : functions_(process.functions) {}
  void restart(bool from_start) {
    while (top_ != 0) end_top(latest(), walk::Way::kUnseen);
    start_segment(from_start);
  }
  void consume(const BlockView& block) { walk<false>(block.events.data(), block.events.size(), block.ticks); }
  std::size_t depth() const { return top_; }

  // The walker's.
  void ended(Open*, std::size_t, std::uint64_t, walk::Way) {}
  bool tail_owner(std::uint32_t id, std::uint32_t& owner) const {
    if (id >= functions_.size() || !functions_[id].tail_exit) return false;
    owner = functions_[id].of;
    return true;
  }

 private:
  std::span<const Function> functions_;
};

/// A switch of stacks right beside a note of fibers is the one that the note tells of.
class Trimmed {
 public:
  Trimmed(std::span<const StoredBlock> blocks, EventReader& read, const FiberRun& run)
      : blocks_(blocks), read_(read), begin(run.begin), end(run.end) {
    if (run.entered) trim_begin();
    if (run.left) trim_end();
  }

 private:
  static bool says_nothing(Event e) { return e == 0 || format::event_is(e, Mark::kPad); }
  Event at(WordPlace p) const {
    const BlockView view = read_(blocks_[p.block]);
    return p.word < view.events.size() ? __atomic_load_n(&view.events[p.word], __ATOMIC_RELAXED) : 0;
  }
  bool is_before(WordPlace a, WordPlace b) const {
    return a.block < b.block || (a.block == b.block && a.word < b.word);
  }
  bool is_switch(std::size_t block, std::size_t word) const {
    return format::event_is(at({block, word}), Mark::kSwitched) &&
           format::event_is(at({block, word + 1}), Mark::kPlace) &&
           format::event_is(at({block, word + 2}), Mark::kPlace);
  }
  void trim_begin() {
    for (WordPlace p = begin; is_before(p, end);) {
      const std::size_t count = blocks_[p.block].size();
      if (p.word >= count) {
        p = {p.block + 1, 0};
      } else if (says_nothing(at(p))) {
        ++p.word;
      } else {
        const std::size_t until = p.block == end.block ? std::min(count, end.word) : count;
        if (p.word + 3 <= until && is_switch(p.block, p.word)) begin = {p.block, p.word + 3};
        return;
      }
    }
  }
  void trim_end() {
    for (WordPlace p = end; is_before(begin, p);) {
      if (p.word == 0) {
        p = {p.block - 1, blocks_[p.block - 1].size()};
      } else if (says_nothing(at({p.block, p.word - 1}))) {
        --p.word;
      } else {
        const std::size_t since = p.block == begin.block ? begin.word : 0;
        if (p.word >= since + 3 && is_switch(p.block, p.word - 3)) end = {p.block, p.word - 3};
        return;
      }
    }
  }
  std::span<const StoredBlock> blocks_;
  EventReader& read_;

 public:
  WordPlace begin;
  WordPlace end;
};

class Splitter {
 public:
  Splitter(Process& process, std::span<const std::span<const StoredBlock>> blocks, std::uint32_t& next_tid,
           ProblemList& problems)
      : process_(process), blocks_(blocks), next_tid_(next_tid), problems_(problems) {}

  FiberLanes split() {
    if (!find_suspended()) return {};
    std::vector<FiberRuns> runs;
    bool any = false;
    for (const auto& blocks : blocks_) {
      runs.push_back(find_fiber_runs(blocks, process_.switches));
      any = any || !runs.back().runs.empty();
    }
    if (!any) return {};
    for (FiberRuns& of_thread : runs)
      for (FiberRun& run : of_thread.runs) {
        if (run.name == FiberRun::kNoName) continue;
        run.name = number_of(of_thread.names[run.name]);
        names_by_fiber_.try_emplace(run.fiber, run.name);
      }
    for (FiberRuns& of_thread : runs)  // those that no note was seen to enter
      for (FiberRun& run : of_thread.runs)
        if (const auto at = names_by_fiber_.find(run.fiber);
            run.name == FiberRun::kNoName && at != names_by_fiber_.end())
          run.name = at->second;
    end_handed_on(runs);
    lanes_.threads.resize(blocks_.size());
    lanes_.streams.reserve(2 * blocks_.size());
    lost_ = lost_times(process_, blocks_);
    for (std::size_t i = 0; i < runs.size(); ++i)
      if (!runs[i].runs.empty()) split_thread(i, runs[i].runs);
    make_lanes();
    for (const Piece& piece : pieces_)  // what its first calls were is a lane's to say
      if (piece.thread_start && !piece.entered) process_.threads[piece.thread].inherited = 0;
    return std::move(lanes_);
  }

 private:
  /// A run of a fiber, with the words that say that it was suspended before and behind it.
  struct Piece {
    std::uint64_t fiber;
    std::uint64_t begin_ticks;
    std::uint64_t end_ticks;
    std::size_t name;
    std::size_t stream;
    std::size_t from;
    std::size_t to;
    std::size_t thread;
    bool entered;
    bool left;
    bool thread_start;  // the first of its thread's history
  };
  struct Lane {
    Thread thread;
    std::vector<StoredBlock> blocks;
    std::uint64_t sequence = 0;  // of the next block
    bool whole = false;          // all since the fiber's start is known
  };

  /// When the last event of a run came; its begin if it has none.
  std::uint64_t last_event_of(std::size_t thread, const FiberRun& run) {
    const std::span<const StoredBlock> blocks = blocks_[thread];
    for (std::size_t block = std::min(run.end.block + 1, blocks.size()); block-- > run.begin.block;) {
      const BlockView view = read_(blocks[block]);
      const std::size_t first = block == run.begin.block ? run.begin.word : 0;
      std::size_t word = block == run.end.block ? std::min(run.end.word, view.events.size()) : view.events.size();
      while (word-- > first) {
        const Event event = __atomic_load_n(&view.events[word], __ATOMIC_RELAXED);
        if (event != 0 && format::event_has_time(event)) return format::event_ticks(event, view.ticks);
      }
    }
    return run.begin_ticks;
  }

  /// A thread may leave a fiber without an event of its own, and tell of it late or never. It has left by the time at
  /// which another thread enters the fiber, if it had no event of it since.
  void end_handed_on(std::vector<FiberRuns>& runs) {
    struct Run {
      FiberRun* run;
      std::size_t thread;
    };
    std::vector<Run> all;
    for (std::size_t i = 0; i < runs.size(); ++i)
      for (FiberRun& run : runs[i].runs)
        if (run.fiber != 0) all.push_back({&run, i});
    std::stable_sort(all.begin(), all.end(), [](const Run& a, const Run& b) {
      return std::tie(a.run->fiber, a.run->begin_ticks) < std::tie(b.run->fiber, b.run->begin_ticks);
    });
    for (std::size_t i = 0; i + 1 < all.size(); ++i) {
      FiberRun& run = *all[i].run;
      const FiberRun& next = *all[i + 1].run;
      if (next.fiber != run.fiber || all[i + 1].thread == all[i].thread || !next.entered) continue;
      if (run.left && run.end_ticks <= next.begin_ticks) continue;
      if (last_event_of(all[i].thread, run) > next.begin_ticks) continue;
      run.end_ticks = std::min(run.end_ticks, next.begin_ticks);
      run.left = true;
    }
  }

  bool find_suspended() {
    for (const Function& function : process_.functions) {
      const bool is_one = function.id != 0 && function.note && function.module < process_.modules.size() &&
                          process_.modules[function.module].path == format::kFibersModule;
      if (is_one && (suspended_ == 0 || function.name == format::kSuspended)) suspended_ = function.id;
    }
    return suspended_ != 0;
  }

  std::size_t number_of(const std::string& name) {
    const auto [at, fresh] = names_.try_emplace(name, name_list_.size());
    if (fresh) name_list_.push_back(name);
    return at->second;
  }

  /// Of the calls that stand for a fiber in its thread's lane.
  std::uint32_t function_of(std::size_t name) {
    const auto [at, fresh] = functions_.try_emplace(name, suspended_);
    if (!fresh) return at->second;
    const std::size_t id = process_.functions.size();
    if (id > format::kMaxFunctionId || functions_.size() > kMostFibers) return suspended_;
    Function made;
    made.id = static_cast<std::uint32_t>(id);
    made.module = process_.functions[suspended_].module;
    made.name = name == FiberRun::kNoName ? "[fiber]" : fmt::format("[fiber {}]", name_list_[name]);
    made.link_name = made.name;
    made.always = made.note = made.made = true;
    if (process_.dense_functions + std::size_t{1} == id) ++process_.dense_functions;
    process_.functions.push_back(std::move(made));
    return at->second = static_cast<std::uint32_t>(id);
  }

  void copy(EventStream& to, std::span<const StoredBlock> blocks, const FiberRun& run) {
    const Trimmed part(blocks, read_, run);
    for (std::size_t i = part.begin.block; i < blocks.size() && i <= part.end.block; ++i)
      to.copy(read_(blocks[i]), i == part.begin.block ? part.begin.word : 0,
              i == part.end.block ? part.end.word : blocks[i].size());
  }

  void split_thread(std::size_t thread, std::span<const FiberRun> runs) {
    const std::span<const StoredBlock> blocks = blocks_[thread];
    // Number 0 says that nothing was before; where the thread is in a fiber at first, its own stack was.
    const bool whole = blocks.front().sequence == 0 && runs.front().fiber == 0;
    lanes_.streams.emplace_back(whole ? 0 : 1);
    lanes_.streams.emplace_back();
    EventStream& own = lanes_.streams[lanes_.streams.size() - 2];
    EventStream& fibers = lanes_.streams.back();
    for (std::size_t i = 0; i < runs.size(); ++i) {
      const FiberRun& run = runs[i];
      if (run.first && run.begin.block != 0)
        own.cut(blocks[run.begin.block].sequence - blocks[run.begin.block - 1].next_sequence);
      if (run.fiber == 0) {
        copy(own, blocks, run);
        continue;
      }
      const std::uint32_t function = function_of(run.name);
      if (run.entered || !run.first)
        own.put(run.begin_ticks, false, function);
      else
        own.put_time(run.begin_ticks);  // the call was open then
      if (run.left || !run.last)
        own.put(run.end_ticks, true, function);
      else
        own.put_time(run.end_ticks);
      Piece piece{run.fiber, run.begin_ticks, run.end_ticks, run.name, lanes_.streams.size() - 1, fibers.size(), 0,
                  thread,    run.entered,     run.left,      i == 0};
      fibers.cut();
      fibers.put(run.begin_ticks, true, suspended_);
      copy(fibers, blocks, run);
      fibers.put(run.end_ticks, false, suspended_);
      piece.to = fibers.size();
      pieces_.push_back(piece);
    }
    lanes_.threads[thread] = own.blocks();
  }

  void make_lanes() {
    std::stable_sort(pieces_.begin(), pieces_.end(), [](const Piece& a, const Piece& b) {
      return std::tie(a.fiber, a.begin_ticks, a.end_ticks) < std::tie(b.fiber, b.begin_ticks, b.end_ticks);
    });
    std::vector<Lane> lanes;
    for (std::size_t i = 0; i < pieces_.size();) {
      std::size_t end = i + 1;
      while (end < pieces_.size() && pieces_[end].fiber == pieces_[i].fiber) ++end;
      lanes_of(std::span(pieces_).subspan(i, end - i), lanes);
      i = end;
    }
    std::stable_sort(lanes.begin(), lanes.end(),
                     [](const Lane& a, const Lane& b) { return a.thread.joined_ticks < b.thread.joined_ticks; });
    const std::uint64_t last = process_.threads.back().index;
    if (last + lanes.size() > 0xffffffffU) {
      problems_.add("fiber numbers",
                    [] { return std::string("threads have numbers too large for fibers beside them"); });
      lanes.clear();
    }
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      lanes[i].thread.index = static_cast<std::uint32_t>(last + 1 + i);
      lanes[i].thread.tid = next_tid_++;
      process_.threads.push_back(std::move(lanes[i].thread));
      lanes_.lanes.push_back(std::move(lanes[i].blocks));
    }
  }

  /// One number's pieces, in order of time.
  void lanes_of(std::span<const Piece> pieces, std::vector<Lane>& lanes) {
    LaneDepth depth(process_);
    const Piece* before = nullptr;
    Lane* lane = nullptr;
    for (const Piece& piece : pieces) {
      bool gap = false;
      bool other = false;
      if (before != nullptr) {
        const bool overlaps = piece.begin_ticks < before->end_ticks;
        if (overlaps)
          problems_.add("fiber twice", [] { return std::string("a fiber worked in two threads at the same time"); });
        gap = overlaps || !before->left || !piece.entered || lost_.any(before->end_ticks, piece.begin_ticks);
        other = !gap && lane->whole && depth.depth() == 0 && piece.name != before->name &&
                piece.name != FiberRun::kNoName && before->name != FiberRun::kNoName;
      }
      const bool suspended = before != nullptr && !gap && !other && (depth.depth() != 0 || !lane->whole);
      if (before != nullptr) end_piece(*lane, *before, suspended, depth);
      if (before == nullptr || other) {
        if (lanes.size() == kMostFibers) {
          problems_.add("fibers", [] {
            return fmt::format("there are more than {} fibers; calls of the others are left out", kMostFibers);
          });
          return;
        }
        lane = &lanes.emplace_back(lane_of(piece));
        depth.restart(lane->whole);
      } else if (gap) {
        ++lane->sequence;
        lane->whole = false;
        depth.restart(false);
      }
      add_piece(*lane, piece, suspended, depth);
      before = &piece;
    }
    if (lane != nullptr) end_piece(*lane, *before, before->left && depth.depth() != 0, depth);
  }

  /// What follows each other in the lane. The last word waits for end_piece().
  void add_piece(Lane& lane, const Piece& piece, bool suspended, LaneDepth& depth) {
    lane.thread.ran_on.push_back({process_.threads[piece.thread].index, piece.begin_ticks, piece.end_ticks});
    EventStream& stream = lanes_.streams[piece.stream];
    if (!suspended) stream.only_time(piece.from);
    std::vector<StoredBlock> blocks = stream.blocks(piece.from, piece.to);
    for (StoredBlock& block : blocks) {
      block.sequence = lane.sequence++;
      block.next_sequence = lane.sequence;
    }
    lane.blocks.insert(lane.blocks.end(), blocks.begin(), blocks.end());
    blocks.back() = blocks.back().first(blocks.back().size() - 1);
    for (const StoredBlock& block : blocks) depth.consume(read_(block));
  }

  /// Behind it the fiber is suspended, or nobody knows.
  void end_piece(const Lane& lane, const Piece& piece, bool suspended, LaneDepth& depth) {
    if (!suspended) lanes_.streams[piece.stream].only_time(piece.to - 1);
    depth.consume(read_(lane.blocks.back().last(1)));
  }

  /// A lane that begins with this piece.
  Lane lane_of(const Piece& piece) {
    Lane lane;
    const bool forked = (process_.flags & format::kProcessForked) != 0;  // and with it all its parent's fibers
    lane.whole = piece.entered && !forked && !lost_.any(0, piece.begin_ticks);
    lane.sequence = lane.whole ? 0 : 1;
    lane.thread.fiber = true;
    lane.thread.joined_ticks = piece.begin_ticks;
    lane.thread.name =
        piece.name != FiberRun::kNoName ? name_list_[piece.name] : fmt::format("fiber {:#x}", piece.fiber);
    Thread& thread = process_.threads[piece.thread];
    if (piece.thread_start && !piece.entered) {
      // It was in the fiber when it was forked, or when an excerpt began.
      lane.thread.inherited = std::exchange(thread.inherited, 0);
      lane.thread.excerpt = std::exchange(thread.excerpt, false);
    }
    return lane;
  }

  Process& process_;
  EventReader read_{nullptr};
  std::span<const std::span<const StoredBlock>> blocks_;
  std::uint32_t& next_tid_;
  ProblemList& problems_;
  std::uint32_t suspended_ = 0;  // the function
  std::unordered_map<std::string, std::size_t> names_;
  std::vector<std::string> name_list_;
  std::unordered_map<std::uint64_t, std::size_t> names_by_fiber_;
  std::unordered_map<std::size_t, std::uint32_t> functions_;  // by name
  LostTimes lost_;
  std::vector<Piece> pieces_;
  FiberLanes lanes_;
};

}  // namespace

FiberLanes split_fibers(Process& process, std::span<const std::span<const StoredBlock>> blocks, std::uint32_t& next_tid,
                        ProblemList& problems) {
  return Splitter(process, blocks, next_tid, problems).split();
}

}  // namespace karst::reader
