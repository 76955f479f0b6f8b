// SPDX-License-Identifier: MIT
// Which wait each of the stacks belongs to that were sampled as threads left their CPUs.
//
// The kernel says so at two places that follow each other: the sample is right before or behind the record that thread
// states are made of, within the clocks' error. A thread that is woken again before it is off its CPU has a sample and
// no wait.
#pragma once
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "columns/selection.h"
#include "reader/trace.h"

namespace karst::analysis {

/// Immutable once made. `trace` must outlive it.
class WaitStacks {
 public:
  explicit WaitStacks(const reader::Trace& trace);
  /// The code in which a thread waited, of a wait that began then: the innermost that is neither the C library's nor
  /// traced, as that is known anyway. `task`: ThreadStates::task. Null: not known.
  const reader::SampledFunction* code_of(std::uint32_t task, std::uint64_t begin) const;
  /// When the thread was blocked, of a record of SampleLog::waits; empty: it was not, or that is not known.
  columns::TickRange blocked(const format::SampleRecord& wait) const {
    return blocked_[static_cast<std::size_t>(&wait - trace_.samples().waits.begin())];
  }

 private:
  void find_code();

  const reader::Trace& trace_;
  std::vector<columns::TickRange> blocked_;  // by place in SampleLog::waits
  struct Code {
    std::uint64_t begin;
    const reader::SampledFunction* function;
  };
  std::unordered_map<std::uint32_t, std::vector<Code>> code_;  // by task, in order of time
};

}  // namespace karst::analysis
