// A traced process's arena (format/arena.h), read from outside: while it runs, hangs, or after it died.
//
// Nothing in the arena is trusted. Sizes come from the descriptor, the layout is checked against them, every
// value that steers a loop is copied once and bounded. What cannot be is left out and counted.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "format/arena.h"
#include "format/control.h"
#include "format/watch.h"
#include "reader/model.h"
#include "reader/result.h"

namespace karst::collect {

/// One block's place in the arena and what its header said.
struct ArenaBlock {
  std::uint32_t index = 0;
  std::uint32_t thread = 0;
  std::uint64_t sequence = 0;
  std::uint64_t ticks = 0;
  std::uint64_t generation = 0;
};

/// Calls that a process watched for and did not keep, or did not watch.
struct WatchLosses {
  std::uint32_t functions_refused = 0;  ///< that could not be watched
  std::uint64_t without_note = 0;       ///< calls over the limit for which nothing was left to note them in
  std::uint64_t too_deep = 0;           ///< calls in more than 8,000 open ones of their thread
  std::uint64_t too_many = 0;           ///< calls over a time beyond the number that is kept
};

/// Owns a mapping of the arena. Movable; one thread at a time.
class ArenaView {
 public:
  /// Maps the arena behind `descriptor`, which is only borrowed. Error: it is no arena of this version, or one that
  /// could shrink while it is read.
  static Result<ArenaView> map(int descriptor);
  /// The inode of the memfd, by which a process that has it mapped is known.
  std::uint64_t inode() const { return inode_; }

  ArenaView(ArenaView&& other) noexcept;
  ArenaView& operator=(ArenaView&& other) noexcept;
  ~ArenaView();

  /// The process with its modules, functions (without names) and threads, as the arena has them now.
  reader::Process process() const;
  reader::Process process_without_functions() const;
  /// None when the table's entry cannot be; `process` is the one that this arena gave.
  std::optional<reader::Function> function(std::uint32_t id, const reader::Process& process) const;
  /// Of a function's entry sled; 0 when there is no such function.
  std::uint64_t address_of(std::uint32_t id) const;
  bool is_tail_exit(std::uint32_t id) const;
  /// The clock's reading at the start of tracing.
  reader::ClockPair start() const;
  /// The blocks that hold events now, in order of their start; those of one thread in order of sequence. Among them are
  /// those that were kept (format/watch.h) and are not in the ring any more.
  std::vector<ArenaBlock> blocks() const;
  /// Copies the events of a block; empty when it was recycled since blocks() or holds none.
  std::span<const format::Event> read(const ArenaBlock& block, std::vector<format::Event>& buffer) const;

  /// Calls by function id, where the process counts them (format/arena.h, CountPage); else empty.
  std::vector<std::uint64_t> counts() const;
  std::uint64_t min_duration_ticks() const { return layout_.min_duration_ticks; }
  /// Calls for whose counters there was no memory.
  std::uint64_t uncounted_calls() const { return live().uncounted_calls; }

  /// The log of switches, in the order of their making. If it was too short for all of them the first record says so
  /// (format::kSwitchesUnknown).
  std::vector<reader::Switch> switches() const;

  std::uint32_t function_count() const;
  /// Takes functions out of tracing, before the process is told to go. `id` is from 1 to function_count().
  void turn_off(std::uint32_t id);
  /// The same at any time, either way; what it is to do is done by a request (control.h). False if it was so already.
  bool choose(std::uint32_t id, bool on);
  std::uint32_t function_flags(std::uint32_t id) const;
  /// The control page: shared with the process and with others, so for atomic operations alone.
  format::ArenaControl& control() const {
    return *reinterpret_cast<format::ArenaControl*>(base_ + layout_.control_offset);
  }
  /// Enters a rule, or finds the same one; none when there are too many, or nothing can be watched in the process.
  std::optional<std::uint32_t> add_rule(const format::ArenaWatchRule& rule) const;
  /// These functions are to be watched by the rule, from the process's being told to go, or a request, on. Returns how
  /// many are; second ids are passed over.
  std::size_t add_watches(std::uint32_t rule, const std::vector<std::uint32_t>& ids) const;
  /// All rules that were ever entered, by number; one that is not complete has `kind` 0.
  std::vector<format::ArenaWatchRule> rules() const;
  /// Functions that each rule watches now, by its number.
  std::vector<std::size_t> watched_by_rule() const;
  /// From the next request on the rule watches nothing; what it has kept stays. Returns how many watches end.
  std::size_t end_watches(std::uint32_t rule) const;
  /// The calls that are kept, in order of their begin; not numbered.
  std::vector<reader::Moment> moments() const;
  WatchLosses watch_losses() const;
  /// A budget leaves this function on. The same holds for `id`.
  void keep(std::uint32_t id);

 private:
  ArenaView(std::byte* base, std::size_t size, const format::ArenaHeader& layout);
  template <typename T>
  const T* table(std::uint64_t offset) const {
    return reinterpret_cast<const T*>(base_ + offset);
  }
  const format::ArenaHeader& live() const { return *table<format::ArenaHeader>(0); }
  std::string text(std::uint32_t offset, std::uint32_t size) const;
  bool find_watching();
  format::ArenaWatching* watching() const;
  bool make_real(std::uint64_t offset, std::uint64_t size) const;
  std::vector<ArenaBlock> ring_blocks() const;
  void add_kept_blocks(std::vector<ArenaBlock>& blocks) const;
  std::uint64_t whole_from() const;

  std::byte* base_ = nullptr;
  std::size_t size_ = 0;
  std::uint64_t inode_ = 0;
  format::ArenaHeader layout_{};      ///< offsets and capacities, checked
  format::ArenaWatching watching_{};  ///< likewise; zero: there is none
};

}  // namespace karst::collect
