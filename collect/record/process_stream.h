// SPDX-License-Identifier: MIT
// What a process records, on its way out of its arena into a trace that grows, before it is overwritten.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "collect/arena/view.h"
#include "collect/record/call_counter.h"
#include "collect/record/growing_trace.h"
#include "collect/record/open_calls.h"
#include "collect/record/renumbering.h"
#include "format/event.h"
#include "reader/model.h"
#include "reader/unpack.h"

namespace karst::collect {

/// What its events came to, for the summary.
struct StreamSums {
  std::uint64_t threads = 0;
  std::uint64_t calls = 0;
  std::uint64_t notes = 0;
  std::uint64_t events = 0;
  std::uint64_t first_ticks = ~std::uint64_t{0};
  std::uint64_t last_ticks = 0;
};

/// One thread at a time.
class ProcessStream {
 public:
  /// Beside what its arena says. `parent`: as reader::Process::parent.
  struct Origin {
    bool forked = false;
    std::uint32_t parent = 0;
  };

  explicit ProcessStream(std::shared_ptr<GrowingTrace> trace);
  ProcessStream(const ProcessStream&) = delete;
  ProcessStream& operator=(const ProcessStream&) = delete;

  /// The process's number in the file.
  std::uint32_t index() const { return index_; }
  /// Of a forked child, before the first drain(): what it had open. Its functions get numbers of their own.
  void begin_forked(const OpenCalls& inherited);
  /// Takes the blocks that are behind those it has, and that their threads have left. Returns how many of them.
  std::size_t drain(const ArenaView& arena);
  /// Whether so much was recorded since the last drain() that it is time for one.
  bool is_due(const ArenaView& arena) const;
  /// Takes all that is left, blocks that threads are in as they are now.
  void finish(const ArenaView& arena);
  /// The tables of what there is by now, as far as the file does not have them.
  void describe(const ArenaView& arena, const Origin& origin);

  /// What was taken, in no order of time; `index` of each is its number here.
  std::vector<ArenaBlock> blocks() const;
  /// One of them with the process's own ids, good until the next call; empty if the file cannot be read.
  std::span<const format::Event> read(std::size_t number);
  /// Whether a block of the arena is one that was taken.
  bool has(std::uint32_t thread, std::uint64_t sequence) const;
  /// Events of a thread that were overwritten before they could be taken.
  std::uint64_t gone(std::uint32_t thread) const;
  /// Functions that occur, by the process's own id.
  const std::vector<bool>& seen() const { return seen_; }
  /// Functions that the file has, by the id that they have there.
  bool has_function(std::uint32_t id) const {
    return trace_->failure().empty() && id < described_.size() && described_[id];
  }
  /// Of a forked child: the ids that its functions have in the file.
  const std::optional<Renumbering>& ids() const { return ids_; }
  /// Of a forked child's thread: calls that it was in when it began.
  std::uint32_t inherited_by(std::uint32_t thread) const { return heir_ == thread ? inherited_calls_ : 0; }
  /// `tail_owner` and `min_duration`: as CallCounter has them.
  StreamSums sums(const TailOwner& tail_owner, std::uint64_t min_duration);

 private:
  struct Taken {
    CallCounter counter;
    std::uint64_t next = 0;     // sequence behind what was taken
    std::uint64_t missing = 0;  // 1 + sequence that the last drain() did not find
    std::uint64_t gone = 0;     // blocks
  };
  Taken& taken_of(std::uint32_t thread);
  /// What threads have left, as far as one list of blocks has it. Returns whether something lacked in it.
  bool take_listed(std::size_t& count);
  /// False: it is gone, which is counted.
  bool take(const ArenaBlock& block);
  void pass_over(const ArenaBlock& block);
  void begin_thread(std::uint32_t thread);
  std::uint64_t shift_of(std::uint32_t thread) const { return late_ + (heir_ == thread ? inherited_blocks_ : 0); }
  StreamSums sums_of_what_is_there(const TailOwner& tail_owner, std::uint64_t min_duration);
  void give_ids(std::span<const format::Event> events);
  void mark_seen(std::span<const format::Event> events);
  void describe_functions(const ArenaView& arena, const reader::Process& process);

  std::shared_ptr<GrowingTrace> trace_;
  std::uint32_t index_;
  const ArenaView* arena_ = nullptr;  // while it is read
  std::map<std::uint32_t, Taken> taken_;
  std::uint64_t handed_out_ = 0;  // blocks of the arena at the last drain()
  std::vector<bool> seen_;
  std::uint64_t late_ = 0;  // 1: no thread's history begins with what it recorded first
  StreamSums sums_;

  // Of a forked child.
  std::optional<Renumbering> ids_;
  OpenCalls inherited_;
  std::optional<std::uint32_t> heir_;  // the thread that has the calls which were open
  std::uint64_t inherited_blocks_ = 0;
  std::uint32_t inherited_calls_ = 0;

  // What the file's tables have.
  std::optional<reader::Process> told_;
  std::vector<bool> described_;            // functions
  std::vector<std::uint32_t> newly_seen_;  // of modules that only have those functions which occur
  std::uint32_t functions_looked_at_ = 0;

  std::vector<format::Event> buffer_;
  std::vector<format::Event> renumbered_;
  std::vector<std::byte> payload_;
  reader::Unpacker unpacker_;
};

}  // namespace karst::collect
