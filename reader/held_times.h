// SPDX-License-Identifier: MIT
// What Calls promises of its columns (reader/model.h), where the clock of a thread ran backwards or its events say so.
#pragma once
#include <cstdint>
#include <span>

#include "reader/model.h"

namespace karst::reader {

/// Makes the promise true: a time earlier than the one before it, in the order of events, is held at that one. Columns
/// of which it is true already stay as they are. Requires that rows are a tree in the order of events: each lies in the
/// row before it, or in one that this lies in, or in none.
void hold_times(Calls& calls);

/// Whether it is true of columns that somebody else made, as those of a kept index: parents come before their children
/// and enclose them, siblings do not overlap, rows are in order of begin. All columns are of one length.
bool times_in_order(std::span<const std::uint64_t> begin, std::span<const std::uint64_t> duration,
                    std::span<const std::uint32_t> parent);

}  // namespace karst::reader
