// SPDX-License-Identifier: MIT
// New ids for the functions of a forked child that occur in it: a child that makes ten calls is not to carry the table
// of a large program, in the file and in every reader's memory.
#pragma once
#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "format/event.h"
#include "reader/model.h"

namespace karst::collect {

/// Ids of the file, dense from 1, in the order in which functions are added.
class Renumbering {
 public:
  /// Does nothing for a function that is known.
  void add(std::uint32_t id) {
    if (to_.try_emplace(id, static_cast<std::uint32_t>(old_.size() + 1)).second) old_.push_back(id);
  }
  bool knows(std::uint32_t id) const { return to_.contains(id); }
  std::uint32_t of(std::uint32_t id) const { return to_.at(id); }
  /// The id that became this one.
  std::uint32_t before(std::uint32_t id) const { return old_[id - 1]; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(old_.size()); }

  /// The switch of those of its functions that there are, one for each run of new ids.
  std::vector<reader::Switch> operator()(const reader::Switch& s) const {
    if (s.first == 0) return {s};
    std::vector<reader::Switch> runs;
    const std::uint64_t end = std::uint64_t{s.first} + s.count;
    for (std::uint32_t id = 1; id <= size(); ++id) {
      if (before(id) < s.first || before(id) >= end) continue;
      if (runs.empty() || runs.back().first + runs.back().count != id) {
        runs.push_back(s);
        runs.back().first = id;
        runs.back().count = 0;
      }
      ++runs.back().count;
    }
    return runs;
  }
  format::Event operator()(format::Event e) const {
    const std::uint32_t before = format::named_function(e);
    if (e == 0 || before > format::kMaxFunctionId || (before == 0 && format::event_is_mark(e))) return e;
    const auto to = to_.find(before);
    // What was in no table stays unknown.
    return format::with_function(e, to != to_.end() ? to->second : format::kMaxFunctionId);
  }
  /// The way back.
  format::Event old(format::Event e) const {
    const std::uint32_t now = format::named_function(e);
    return e == 0 || now == 0 || now > size() ? e : format::with_function(e, before(now));
  }

 private:
  std::unordered_map<std::uint32_t, std::uint32_t> to_;
  std::vector<std::uint32_t> old_;
};

}  // namespace karst::collect
