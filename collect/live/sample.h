// SPDX-License-Identifier: MIT
// What a traced process did in the last moments, from the newest blocks of its arena: for `karst ps`, `status` and
// `top`. Reads a bounded number of blocks however much the process does; says which share of the time that covers.
#pragma once
#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "collect/arena/view.h"
#include "collect/record/open_calls.h"
#include "walk/growing_memory.h"
#include "walk/plain_walker.h"

namespace karst::collect {

struct SampledFunction {
  std::uint32_t id = 0;
  std::uint64_t calls = 0;  ///< begun in the window
  std::uint64_t self_ticks = 0;
  std::uint64_t total_ticks = 0;  ///< of recursive calls the outermost counts
};

/// What ThreadSample knows of a call besides.
struct TimeInside {
  std::uint64_t ticks = 0;  ///< in calls that it made
};

/// One thread's calls in a window, by function: what the reader would make of the same events (walk/walker.h).
class ThreadSample : public walk::PlainWalker<ThreadSample, walk::GrowingMemory<TimeInside>> {
 public:
  /// The window begins at `from`; what is open there has been so since then, at least. `whole`: the thread begins
  /// there.
  ThreadSample(TailOwner tail_owner, std::uint64_t from, bool whole) : tail_owner_(std::move(tail_owner)), from_(from) {
    start_segment(whole);
  }
  /// The words of the thread's next block; those outside of the window, which ends at `to`, are left out.
  void consume(std::span<const format::Event> events, std::uint64_t block_ticks, std::uint64_t to);
  /// What is open now is so until then.
  void finish(std::uint64_t to);
  /// After that: by function.
  const std::unordered_map<std::uint32_t, SampledFunction>& functions() const { return functions_; }
  std::uint64_t calls() const { return calls_; }
  bool any() const { return started_; }
  using Walker::latest;

  // The walker's.
  void began(Open& open);
  void ended(Open* stack, std::size_t at, std::uint64_t ticks, walk::Way way);
  void exit_unentered(std::uint32_t id, std::uint64_t ticks, walk::Way way);
  std::uint32_t resumed(Open& open, const Open* stack, std::size_t top);
  bool tail_owner(std::uint32_t id, std::uint32_t& owner) const;

 private:
  SampledFunction& function(std::uint32_t id);

  TailOwner tail_owner_;
  std::uint64_t from_;
  std::uint64_t claimed_ = 0;  // time of the calls that nothing known was around
  std::uint64_t calls_ = 0;
  std::unordered_map<std::uint32_t, SampledFunction> functions_;
  std::unordered_map<std::uint32_t, std::uint32_t> depth_;  // of recursion, by function
};

struct SampledThread {
  std::uint32_t index = 0;
  std::uint64_t calls = 0;
  std::uint64_t ticks = 0;  ///< of the window, that its blocks cover
};

struct Sample {
  std::uint64_t from = 0;  ///< ticks
  std::uint64_t to = 0;
  std::uint64_t calls = 0;
  double calls_per_tick = 0;               ///< of all threads, each by what was read of it
  std::uint64_t blocks = 0;                ///< of the window
  std::uint64_t blocks_read = 0;           ///< of them
  std::vector<SampledFunction> functions;  ///< by id
  std::vector<SampledThread> threads;      ///< that did something
};

/// The window is from `from` to now; at most `most_blocks` of it are read, the newest ones. `blocks` are the arena's.
Sample sample(const ArenaView& arena, const std::vector<ArenaBlock>& blocks, std::uint64_t from,
              std::size_t most_blocks);

}  // namespace karst::collect
