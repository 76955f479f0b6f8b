// SPDX-License-Identifier: MIT
// What a forked child has of the process that it came from: functions, which get ids of their own in the file, their
// names, and the calls that it was inside when it began.
#pragma once
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "collect/record/history.h"
#include "collect/record/open_calls.h"
#include "format/event.h"
#include "reader/model.h"

namespace karst::collect {

/// New ids for the functions of a forked child that occur in it, dense from 1: a child that makes ten calls is not to
/// carry the table of a large program, in the file and in every reader's memory.
class Renumbering {
 public:
  void add(std::uint32_t id) { to_.try_emplace(id, 0); }
  /// Once all are added: new ids are in the order of the old ones, so a range of these is one of new ones.
  void settle() {
    old_.reserve(to_.size());
    for (const auto& [id, to] : to_) old_.push_back(id);
    std::sort(old_.begin(), old_.end());
    for (std::size_t i = 0; i < old_.size(); ++i) to_[old_[i]] = static_cast<std::uint32_t>(i + 1);
  }
  std::uint32_t of(std::uint32_t id) const { return to_.at(id); }
  /// The switch of those of its functions that there are; none if there are none.
  std::optional<reader::Switch> operator()(reader::Switch s) const {
    if (s.first == 0) return s;
    const auto number = [this](std::uint64_t id) {
      return static_cast<std::uint32_t>(std::lower_bound(old_.begin(), old_.end(), id) - old_.begin());
    };
    const std::uint32_t begin = number(s.first);
    s.count = number(std::uint64_t{s.first} + s.count) - begin;
    s.first = begin + 1;
    return s.count != 0 ? std::optional(s) : std::nullopt;
  }
  format::Event operator()(format::Event e) const {
    const std::uint32_t before = format::named_function(e);
    if (e == 0 || before > format::kMaxFunctionId || (before == 0 && format::event_is_mark(e))) return e;
    const auto to = to_.find(before);
    // What was in no table stays unknown.
    const std::uint32_t id = to != to_.end() ? to->second : format::kMaxFunctionId;
    return format::with_function(e, id);
  }
  bool knows(std::uint32_t id) const { return to_.contains(id); }
  /// The id that became this one.
  std::uint32_t before(std::uint32_t id) const { return old_[id - 1]; }

 private:
  std::unordered_map<std::uint32_t, std::uint32_t> to_;
  std::vector<std::uint32_t> old_;
};

/// The child's functions get new ids, in the order of those that they had. `ancestor`: the process before it that was
/// not forked.
void renumber(reader::Process& child, const reader::Process& ancestor, const OpenCalls& inherited, Renumbering& ids);
/// They get the names that its ancestor's have. False when some are left without a name.
bool take_names(reader::Process& child, const reader::Process& ancestor, const Renumbering& ids);

/// The calls that a child was inside when it began, as events before its own.
struct InheritedCalls {
  std::uint32_t heir = 0;            ///< index of the thread that has them
  bool are_known = false;            ///< false: its own oldest calls are gone already
  std::vector<format::Event> first;  ///< their enters, and the places within
  std::vector<std::uint64_t> first_ticks;
};
InheritedCalls inherited_calls(reader::Process& child, const History& history, const OpenCalls& inherited,
                               const Renumbering& ids);

}  // namespace karst::collect
