// SPDX-License-Identifier: MIT
// What Calls promises of its columns (reader/model.h), where the clock of a thread ran backwards or its events say so.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "reader/model.h"

namespace karst::reader {

/// Makes the promise true: a time earlier than the one before it, in the order of events, is held at that one. Columns
/// of which it is true already stay as they are. Requires that rows are a tree in the order of events: each lies in the
/// row before it, or in one that this lies in, or in none.
void hold_times(Calls& calls);

/// The same for rows that are known bit by bit (reader/pieces.h).
class TimeHolder {
 public:
  /// `first`: Calls::first_ticks.
  explicit TimeHolder(std::uint64_t first) : last_(first), last_note_(first) {}
  /// Rows from `first` to `end`, which follow those before. Their begins are held then, and the durations of those that
  /// have ended: all but the callers of the last row, and that row.
  void hold(Calls& calls, std::size_t first, std::size_t end);
  /// What was not ended yet ends, up to the callers `parent` and above; kNoParent: all.
  void end_up_to(Calls& calls, std::uint32_t parent);
  /// The first notes, whose rows are held.
  void hold_notes(Calls& calls, std::size_t count);
  /// The rows that have not ended are rows 0, 1, ... from now on.
  void number_rows_anew();

 private:
  struct Open {
    std::uint32_t row;
    std::uint64_t begin;  // as it was
  };
  void pop(Calls& calls);

  std::vector<Open> stack_;
  std::uint64_t last_;
  std::uint64_t last_note_;
};

/// Whether it is true of columns that somebody else made, as those of a kept index: parents come before their children
/// and enclose them, siblings do not overlap, rows are in order of begin. All columns are of one length.
bool times_in_order(std::span<const std::uint64_t> begin, std::span<const std::uint64_t> duration,
                    std::span<const std::uint32_t> parent);

}  // namespace karst::reader
