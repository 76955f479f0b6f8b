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
#include "collect/arena/writer.h"
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
  /// What is known of it from outside. `parent`: as reader::Process::parent.
  struct Outside {
    bool forked = false;
    std::uint32_t parent = 0;
    std::int32_t wait_status = -1;  ///< as RecordedProcess::wait_status
    std::uint64_t end_ticks = 0;    ///< as RecordedProcess::end_ticks
  };

  explicit ProcessStream(std::shared_ptr<GrowingTrace> trace);
  ProcessStream(const ProcessStream&) = delete;
  ProcessStream& operator=(const ProcessStream&) = delete;

  /// The process's number in the file.
  std::uint32_t index() const { return index_; }
  /// Files before this one.
  std::uint32_t file() const { return file_; }
  /// Before the process goes on, where it is to wait for what is taken (GrowingTrace::block()).
  void begin(const ArenaView& arena);
  /// Of a forked child, before the first drain(): what it had open. Its functions get numbers of their own.
  void begin_forked(const OpenCalls& inherited);
  /// Takes the blocks that are behind those it has, and that their threads have left. Returns how many of them.
  std::size_t drain(const ArenaView& arena);
  /// And what there is by now of those that they are in.
  void drain_up_to_now(const ArenaView& arena);
  /// Whether so much was recorded since the last drain() that it is time for one.
  bool is_due(const ArenaView& arena) const;
  /// Takes all that is left, blocks that threads are in as they are now.
  void finish(const ArenaView& arena);
  /// The tables of what there is by now, as far as the file does not have them.
  void describe(const ArenaView& arena, const Outside& outside);
  /// The file ends, and the process goes on: takes what its threads have recorded up to now, also of the blocks that
  /// they are in, and all that the file is to say of it.
  void end_file(const ArenaView& arena, const Outside& outside);
  void add_switches(const std::vector<reader::Switch>& switches);
  /// The next one begins inside of the calls that are open.
  void begin_file(const ArenaView& arena);

  /// What the file has, in no order of time; `index` of each is its number here, `sequence` its thread's number in the
  /// file.
  std::vector<ArenaBlock> blocks() const;
  /// The same for a block of the arena that was not taken, or not all of it.
  void number_as_in_file(ArenaBlock& block) const;
  /// What a thread had open when the file began, and the number of the block behind; null: it had not begun.
  struct Base {
    OpenCalls open;
    std::uint64_t number = 0;
  };
  const Base* base_of(std::uint32_t thread) const;
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
  /// What the file's table says of a thread: what is missing, and what it began inside of.
  void complete(reader::Thread& thread) const;
  /// False: the thread had ended before the file began.
  bool is_of_file(const reader::Thread& thread) const;
  /// `tail_owner` and `min_duration`: as CallCounter has them.
  StreamSums sums(const TailOwner& tail_owner, std::uint64_t min_duration);

 private:
  struct Taken {
    CallCounter counter;
    OpenCalls open;             // where there is a next file: behind what was taken
    std::uint64_t next = 0;     // sequence of the block whose events come next
    std::uint32_t begun = 0;    // so many of them were taken
    std::uint64_t number = 0;   // of the next block, in the file
    std::uint64_t missing = 0;  // 1 + sequence that the last drain() did not find
    std::uint64_t gone = 0;     // blocks
    std::optional<Base> base{};
    std::uint32_t cut = 0;    // so many calls that the file begins inside of have lost their begins
    bool is_excerpt = false;  // its history began before the file
    bool recorded = false;    // the file has events of its own
  };
  Taken& taken_of(std::uint32_t thread);
  /// What threads have left, as far as one list of blocks has it. Returns whether something lacked in it.
  bool take_listed(std::size_t& count);
  /// The process waits for nothing more.
  void unblock(const ArenaView& arena);
  /// How much of a block: one that its thread has left, or what is whole of one that it may be in.
  enum class Which { kLeft, kWhole };
  /// False: it is gone, which is counted.
  bool take(const ArenaBlock& block, Which which = Which::kLeft);
  void put(Taken& taken, const ArenaBlock& block, std::span<const format::Event> events);
  void pass_over(const ArenaBlock& block);
  void begin_thread(std::uint32_t thread);
  void begin_inside(std::uint32_t thread, Taken& taken);
  StreamSums sums_of_what_is_there(const TailOwner& tail_owner, std::uint64_t min_duration);
  void give_ids(std::span<const format::Event> events);
  void mark_seen(std::span<const format::Event> events);
  void describe_functions(const ArenaView& arena, const reader::Process& process);

  std::shared_ptr<GrowingTrace> trace_;
  std::uint32_t index_;
  std::uint32_t file_ = 0;
  const ArenaView* arena_ = nullptr;   // while it is read
  std::optional<ArenaWriter> taking_;  // the same, while the process waits for what is taken
  std::uint32_t waits_ = 0;            // as the process had counted them at the last drain()
  std::uint64_t waited_ = 0;           // ticks of them that the trace knows
  std::map<std::uint32_t, Taken> taken_;
  std::uint64_t handed_out_ = 0;  // blocks of the arena at the last drain()
  std::vector<bool> seen_;
  std::uint64_t late_ = 0;  // 1: no thread's history begins with what it recorded first
  StreamSums sums_;

  // Of a forked child.
  std::optional<Renumbering> ids_;
  OpenCalls inherited_;
  std::optional<std::uint32_t> heir_;  // the thread that has the calls which were open
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
