// SPDX-License-Identifier: MIT
// What is known of one process image from inside: its arena, or, when that has been let go, a copy of what it held.
//
// Hundreds of forked children are not to cost hundreds of arenas: when one has ended its history is copied and its
// arena unmapped. The copy has only those functions that occur in it.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "collect/arena/view.h"
#include "collect/record/open_calls.h"
#include "collect/record/process_stream.h"
#include "format/event.h"
#include "reader/model.h"

namespace karst::collect {

/// Movable; one thread at a time.
class History {
 public:
  explicit History(ArenaView arena) : arena_(std::move(arena)) {}
  /// Of a process that has no arena: of its calls nothing is known.
  History(reader::Process process, const ClockPair& start, std::optional<sandbox::Credentials> owner);

  /// From here on blocks go into the trace before they are overwritten: drain_if_due() is to be called often. It
  /// returns whether there was something to take.
  void keep_all(const std::shared_ptr<GrowingTrace>& trace);
  bool drain_if_due();
  /// All that was recorded by now, and the tables, go into the trace.
  void drain_and_describe(const ProcessStream::Outside& outside);
  /// The trace goes on in another file (ProcessStream).
  void end_file(const ProcessStream::Outside& outside);
  void begin_file();
  /// Nothing more is taken: what the arena holds now is in the trace.
  void finish_stream();
  /// Null: only the newest is kept.
  ProcessStream* stream() const { return stream_.get(); }
  /// Copies what the arena holds now and unmaps it. Does nothing the second time.
  void detach();
  /// Copies the blocks with events between the two times, which blocks() and read() then have also when the arena has
  /// recycled them; and each thread's last one before `to`, as it says what its thread was inside of. Does nothing once
  /// detached. Returns from when on nothing of any thread is missing: `from`, or later.
  /// Nor where all goes into the trace. A process that runs recycles blocks meanwhile: oldest first loses the least if
  /// copying is faster than it, newest first has the end in any case. Of more than `most_bytes` only the newest are
  /// copied.
  enum class Order { kOldestFirst, kNewestFirst };
  std::uint64_t keep(std::uint64_t from, std::uint64_t to = ~std::uint64_t{0}, Order order = Order::kOldestFirst,
                     std::uint64_t most_bytes = ~std::uint64_t{0});
  /// Leaves out what lies before blocks that were gone when keep() came to them: it is cut off from the rest.
  void begin_behind_gaps() { begins_ = torn_; }
  /// None once detached.
  ArenaView* arena() { return arena_ ? &*arena_ : nullptr; }

  /// All functions, or, when detached, those that events or counts name, in order of id (not by id). Without names.
  reader::Process process() const;
  std::vector<reader::Thread> threads() const;
  ClockPair start() const;
  /// As ArenaView::blocks() and read().
  std::vector<ArenaBlock> blocks() const;
  std::span<const format::Event> read(const ArenaBlock& block, std::vector<format::Event>& buffer) const;
  std::uint64_t address_of(std::uint32_t id) const;
  /// As ArenaView::tail_owner().
  std::uint32_t tail_owner(std::uint32_t id) const;
  std::uint32_t function_count() const;
  /// As ArenaView::owner().
  const std::optional<sandbox::Credentials>& owner() const { return arena_ ? arena_->owner() : copy_->owner; }
  /// As ArenaView::switches().
  std::vector<reader::Switch> switches() const;
  std::uint64_t min_duration_ticks() const {
    return arena_ ? arena_->min_duration_ticks() : copy_->process.min_duration_ticks;
  }
  /// As ArenaView::counts(), for all functions that the process has had.
  std::vector<std::uint64_t> counts() const { return arena_ ? arena_->counts() : copy_->counts; }
  /// As ArenaView::moments().
  std::vector<reader::Moment> moments() const { return arena_ ? arena_->moments() : copy_->moments; }
  WatchLosses watch_losses() const { return arena_ ? arena_->watch_losses() : copy_->watch_losses; }
  /// As ArenaView::reserving_ticks().
  std::uint64_t reserving_ticks() const { return arena_ ? arena_->reserving_ticks() : copy_->reserving_ticks; }
  std::uint64_t uncounted_calls() const { return arena_ ? arena_->uncounted_calls() : copy_->uncounted_calls; }

 private:
  struct Copy {
    reader::Process process;
    ClockPair start;
    std::vector<ArenaBlock> blocks;  ///< `index` is that in this list
    std::vector<format::Event> events;
    std::vector<std::size_t> begins;  ///< of each block's events, and the end of all
    std::unordered_map<std::uint32_t, std::uint32_t> tail_owners;
    std::vector<std::uint64_t> counts;
    std::vector<reader::Moment> moments;
    WatchLosses watch_losses;
    std::uint64_t uncounted_calls = 0;
    std::uint64_t reserving_ticks = 0;
    std::optional<sandbox::Credentials> owner;
  };
  std::optional<ArenaView> arena_;
  std::unique_ptr<Copy> copy_;

  /// Of keep(): what the arena may no longer have.
  struct Kept {
    ArenaBlock block;
    std::uint64_t end = 0;  ///< ticks; of a block that was written to, when it was copied
    std::vector<format::Event> events;
  };
  std::map<std::pair<std::uint32_t, std::uint64_t>, Kept> kept_;  // by thread and sequence

  std::unique_ptr<ProcessStream> stream_;  // null: what the arena overwrites is gone

  std::map<std::uint32_t, std::uint64_t> torn_;    // by thread: behind the last block that keep() found gone
  std::map<std::uint32_t, std::uint64_t> begins_;  // the first number of a block that is not left out

  void keep_block(const ArenaBlock& block, std::span<const format::Event> events);
  std::span<const format::Event> read_kept(const ArenaBlock& block) const;
};

/// The threads' open calls at moments of a process's life, each event being looked at once however often one asks.
class OpenCallsOf {
 public:
  /// What thread `tid` had open at `ticks`, and whether that is all. Moments must not go back much: what lies before
  /// an earlier one is not looked at again.
  OpenCalls at(const History& history, std::uint32_t tid, std::uint64_t ticks);
  /// What a thread had open when its process began.
  void begin_with(std::uint32_t tid, const OpenCalls& inherited) { inherited_.insert_or_assign(tid, inherited); }

 private:
  struct Point {
    std::uint64_t next_sequence = 0;
    OpenCalls open;
    std::uint32_t file = 0;  ///< of a trace that grows
  };
  std::unordered_map<std::uint32_t, Point> points_;         // by thread index
  std::unordered_map<std::uint32_t, OpenCalls> inherited_;  // by tid
};

}  // namespace karst::collect
