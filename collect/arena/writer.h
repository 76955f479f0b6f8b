// SPDX-License-Identifier: MIT
// What outsiders write to a process's arena: which functions are traced, what is watched for, the control page.
//
// ArenaView looks and this writes, so an arena in a core file or in memory can be looked at and never be written to.
// Words are reached by a mapping that is shared with the process, one by one and by atomic operations, as the process
// works on them in turn. Whoever writes to a process that runs holds its Requester (collect/live/control.h).
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "collect/arena/view.h"
#include "symbols/values.h"

namespace karst::collect {

/// Values are borrowed from the view, which stays where it is for as long. One thread at a time.
class ArenaWriter {
 public:
  /// Error: this arena cannot be written to, and why.
  static Result<ArenaWriter> of(const ArenaView& arena);
  const ArenaView& arena() const { return *arena_; }

  /// Takes a function in or out of what is traced: before the process is told to go, or by a request from then on.
  /// `id` is from 1 to function_count(). False if it was so already.
  bool choose(std::uint32_t id, bool on);
  /// The process ran already when libkarst came: calls may have been open (format::kBeganLate).
  void note_late() const;
  /// A budget leaves this function on. The same holds for `id`.
  void keep(std::uint32_t id);
  /// These values of the function become notes, from the process's being told to go on. What a process that runs goes
  /// by is elsewhere (collect/live/noted_values.h); the arena then says what its notes mean. None: there are too many
  /// functions with values, none can be had in the process, or other values of the function are noted.
  std::optional<format::ArenaValueSpec> note_values(std::uint32_t id, const symbols::FunctionValues& values);
  /// The control page: shared with the process and with others, so for atomic operations alone.
  format::ArenaControl& control() const;

  /// From now on, or no more, threads wait for blocks that were not taken, and overwrite none.
  void set_blocking(bool on);
  /// The block's events are taken, all that were in it when it was listed.
  void note_taken(const ArenaBlock& block);
  /// Wakes threads that wait for that.
  void tell_taken();

  /// Enters a rule, or finds the same one; none when there are too many, or nothing can be watched in the process.
  std::optional<std::uint32_t> add_rule(const format::ArenaWatchRule& rule);
  /// These functions are to be watched by the rule, from the process's being told to go, or a request, on. Returns how
  /// many are; second ids are passed over.
  std::size_t add_watches(std::uint32_t rule, const std::vector<std::uint32_t>& ids);
  /// From the next request on the rule watches nothing; what it has kept stays. Returns how many watches end.
  std::size_t end_watches(std::uint32_t rule);

 private:
  ArenaWriter(const ArenaView& arena, std::byte* base) : arena_(&arena), base_(base) {}
  template <typename T>
  T* at(std::uint64_t offset) const {
    return reinterpret_cast<T*>(base_ + offset);
  }
  /// Null when nothing can be watched in the process.
  format::ArenaWatching* watching() const;

  const ArenaView* arena_;
  std::byte* base_;
};

}  // namespace karst::collect
