// SPDX-License-Identifier: MIT
// The calls of one thread as questions see them: the columns of reader::Calls, owned by someone else (memory, a mapped
// index file, an exported page).
//
// What questions rely on is what reader::Calls promises: rows are in order of begin, parents come before their
// children, a call lies within its parent, and siblings do not overlap. Columns out of a kept index are looked at
// before their use.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "reader/model.h"

namespace karst::columns {

/// In place of the number of a function.
inline constexpr std::uint32_t kNoFunction = 0xffffffffU;

struct CallColumns {
  std::span<const std::uint32_t> function;  ///< id in the thread's process
  std::span<const std::uint64_t> begin;     ///< ticks
  std::span<const std::uint64_t> duration;  ///< ticks
  std::span<const std::uint32_t> parent;    ///< row, or reader::kNoParent
  std::span<const std::uint16_t> depth;
  std::span<const std::uint8_t> marks;     ///< reader::CallMark bits
  std::span<const std::uint64_t> taken{};  ///< as reader::Calls has it, and what follows; empty: costs stay in
  std::uint32_t call_cost = 0;
  std::uint32_t usual_call_cost = 0;

  CallColumns() = default;
  /// Views `calls`, which must outlive this.
  explicit CallColumns(const reader::Calls& calls)
      : function(calls.function.data(), calls.size()),
        begin(calls.begin.data(), calls.size()),
        duration(calls.duration.data(), calls.size()),
        parent(calls.parent.data(), calls.size()),
        depth(calls.depth.data(), calls.size()),
        marks(calls.marks.data(), calls.size()),
        taken(calls.taken.data(), calls.taken.size()),
        call_cost(calls.call_cost),
        usual_call_cost(calls.usual_call_cost) {}

  std::size_t size() const { return function.size(); }
  std::uint64_t end(std::size_t row) const { return begin[row] + duration[row]; }
  /// Ticks of a call's time that are the tracer's.
  std::uint64_t cost(std::size_t row) const { return taken.empty() ? 0 : taken[row] / format::kCallCostUnit; }
  /// How long it took without them.
  std::uint64_t time(std::size_t row) const { return reader::without_cost(duration[row], cost(row)); }
};

}  // namespace karst::columns
