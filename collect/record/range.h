// SPDX-License-Identifier: MIT
// A stretch of a process's history: what threads were inside where it begins, and what the tables say at its end.
#pragma once
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "collect/record/history.h"
#include "format/event.h"
#include "reader/model.h"

namespace karst::collect {

/// What threads were inside where the range begins, as events at that moment.
struct RangeBegin {
  std::unordered_map<std::uint32_t, std::vector<format::Event>> enters;  // by thread
};

/// From `from` to `to`, in ticks. `from` 0: from the history's begin on; then nothing was open.
RangeBegin fit_to_range(reader::Process& process, const History& history, std::uint64_t from, std::uint64_t to);
/// The moment that a snapshot of the range is.
reader::Moment moment_of(const reader::Process& process, std::uint64_t from, std::uint64_t to, std::string what);
/// Moments that the process kept by itself, of the range, are added to `all`, which is in order then.
void add_moments(std::vector<reader::Moment>& all, const History& history, std::uint64_t from, std::uint64_t to);

}  // namespace karst::collect
