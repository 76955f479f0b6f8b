// SPDX-License-Identifier: MIT
// A traced process's arena (format/arena.h), read from outside: while it runs, hangs, or after it died.
//
// Nothing in the arena is trusted. Sizes come from the descriptor, the layout is checked against them once, every value
// that steers a loop is copied into memory of our own and bounded, texts together are. Reading takes time by what the
// process has written, not by what it says; the parts it never wrote to stay unreal. What cannot be is left out.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "collect/arena/bytes.h"
#include "format/arena.h"
#include "format/control.h"
#include "format/values.h"
#include "format/watch.h"
#include "reader/model.h"
#include "sandbox/credentials.h"

namespace karst::collect {

/// One block's place in the arena and what its header said.
struct ArenaBlock {
  std::uint32_t index = 0;
  std::uint32_t thread = 0;
  std::uint64_t sequence = 0;
  std::uint64_t ticks = 0;
  std::uint64_t generation = 0;
  std::uint32_t blocks = 1;  ///< so many sequence numbers from `sequence` on: of blocks that were put together
  std::uint32_t skip = 0;    ///< so many of its first events are left out
  bool left = false;         ///< its thread had gone on from it when it was listed, or had ended

  std::uint64_t next_sequence() const { return sequence + blocks; }
};

/// Calls that a process watched for and did not keep, or did not watch.
struct WatchLosses {
  std::uint32_t functions_refused = 0;  ///< that could not be watched
  std::uint64_t without_candidate = 0;  ///< calls over the limit for which nothing was left to note them in
  std::uint64_t too_deep = 0;           ///< calls in more than 8,000 open ones of their thread
  std::uint64_t too_many = 0;           ///< calls over a time beyond the number that is kept
};

/// Looks, and changes nothing: ArenaWriter (collect/arena/writer.h) does. Movable; one thread at a time.
class ArenaView {
 public:
  /// The arena behind `descriptor`, which is only borrowed: of a process that lives or died in this run, or in a file
  /// that one left. Error: it is no arena of this version, or one that cannot be read safely.
  static Result<ArenaView> of_descriptor(int descriptor);
  /// An arena in memory that outlives it, made at any time.
  static Result<ArenaView> of_memory(std::span<const std::byte> bytes);
  /// The inode of the memfd, by which a process that has it mapped is known.
  std::uint64_t inode() const { return bytes_.inode(); }
  /// Whose process made it, by the inode, if we have other rights than that user; see sandbox/credentials.h.
  const std::optional<sandbox::Credentials>& owner() const { return owner_; }
  /// Of the process, as it knows itself.
  std::uint32_t pid() const { return layout_.pid; }
  std::uint32_t parent_pid() const { return layout_.parent_pid; }

  /// The process with its modules, functions (without names) and threads, as the arena has them now.
  reader::Process process() const;
  reader::Process process_without_functions() const;
  /// None when the table's entry cannot be; `process` is the one that this arena gave.
  std::optional<reader::Function> function(std::uint32_t id, const reader::Process& process) const;
  /// Of a function's entry sled; 0 when there is no such function.
  std::uint64_t address_of(std::uint32_t id) const;
  bool is_tail_exit(std::uint32_t id) const;
  /// What is noted of a function with this spec (format/values.h); empty: there is
  /// no such spec, or it has more than `most` bytes.
  std::string value_description(std::uint32_t spec, std::size_t most) const;
  /// Of a second id, whose exits are tail calls': the function's at its address; 0 when `id` is none, or there is none.
  std::uint32_t tail_owner(std::uint32_t id) const;
  /// The clock's reading at the start of tracing.
  ClockPair start() const;
  /// A later one that the process made while it ran; none if it was too short, or the two cannot be of one clock.
  std::optional<ClockPair> later() const;
  /// The process ran since this machine started: its clock is the one that we read. Of a file or a core this may be
  /// otherwise, or not be known.
  bool is_of_this_boot() const;
  /// The blocks that hold events now, in order of their start; those of one thread in order of sequence. Among them are
  /// those that were kept (format/watch.h) and are not in the ring any more.
  std::vector<ArenaBlock> blocks() const;
  /// The same without those that were kept.
  std::vector<ArenaBlock> ring_blocks() const;
  /// Blocks that threads have had so far, about.
  std::uint64_t blocks_handed_out() const { return now().hand; }
  /// Blocks that the ring has room for.
  std::uint32_t block_capacity() const;
  /// Threads that ever made a traced call.
  std::uint64_t threads_total() const { return now().threads_total; }
  /// Copies the events of a block; empty when it was recycled since blocks() or holds none.
  std::span<const format::Event> read(const ArenaBlock& block, std::vector<format::Event>& buffer) const;

  /// Calls by function id, where the process counts them (format/arena.h, CountPage); else empty.
  std::vector<std::uint64_t> counts() const;
  /// libkarst was brought into the process as it ran: calls may have been open.
  bool began_late() const { return (now().began & format::kBeganLate) != 0; }
  std::uint64_t min_duration_ticks() const { return layout_.min_duration_ticks; }
  /// As ArenaHeader::reserving_ticks.
  std::uint64_t reserving_ticks() const { return now().reserving_ticks; }
  /// Calls for whose counters there was no memory.
  std::uint64_t uncounted_calls() const { return now().uncounted_calls; }

  /// The log of switches, in the order of their making. If it was too short for all of them the first record says so
  /// (format::kSwitchesUnknown).
  std::vector<reader::Switch> switches() const;

  std::uint32_t function_count() const;
  /// By id; element 0 is unused.
  std::vector<std::uint32_t> all_function_flags() const;
  /// The control page as it is now.
  format::ArenaControl control_now() const;

  /// All rules that were ever entered, by number; one that is not complete has `kind` 0.
  std::vector<format::ArenaWatchRule> rules() const;
  /// Functions that each rule watches now, by its number.
  std::vector<std::size_t> watched_by_rule() const;
  /// From when on the ring has all of every thread.
  std::uint64_t whole_from() const;
  /// The calls that are kept, in order of their begin; not numbered.
  std::vector<reader::Moment> moments() const;
  WatchLosses watch_losses() const;

 private:
  friend class ArenaWriter;
  ArenaView(ArenaBytes bytes, const format::ArenaHeader& layout) : bytes_(std::move(bytes)), layout_(layout) {}
  static Result<ArenaView> make(ArenaBytes bytes);
  /// The header as it is now; what is in layout_ was checked, and is not to be taken from here.
  format::ArenaHeader now() const { return bytes_.get<format::ArenaHeader>(0); }
  std::optional<format::ArenaWatching> watching_now() const;
  /// Texts of the process, all of which lie in one copy.
  class Texts;
  void learn_functions() const;
  bool find_watching();
  void add_kept_blocks(std::vector<ArenaBlock>& blocks) const;

  ArenaBytes bytes_;
  std::optional<sandbox::Credentials> owner_;
  format::ArenaHeader layout_{};      ///< offsets and capacities, checked
  format::ArenaWatching watching_{};  ///< likewise; zero: there is none
  /// What is known of the functions that there were at the last look; they do not change. Element 0 is unused.
  mutable std::vector<format::ArenaFunction> functions_{1};
  mutable std::uint32_t functions_claimed_ = 0;
  /// By address: the first of the functions there, of those before owners_known_. Made when a second id is met.
  mutable std::unordered_map<std::uint64_t, std::uint32_t> owners_;
  mutable std::size_t owners_known_ = 1;
};

}  // namespace karst::collect
