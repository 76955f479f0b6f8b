// SPDX-License-Identifier: MIT
// Walk a thread's waits, and its notes, along with its calls as a tree shows them: which come next, and how deep.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "analysis/waits.h"
#include "reader/model.h"

namespace karst::cli {

class WaitCursor {
 public:
  /// `waits` must outlive it. With `only_root` other than kNoParent, those within that call.
  WaitCursor(const std::vector<analysis::Wait>& waits, const reader::Calls& calls, std::uint32_t only_root)
      : next_(waits.begin()), end_(waits.end()) {
    if (only_root == reader::kNoParent) return;
    next_ = std::lower_bound(next_, end_, calls.begin[only_root],
                             [](const analysis::Wait& wait, std::uint64_t ticks) { return wait.begin < ticks; });
  }
  void enter(std::uint32_t level, std::uint64_t end) { open_.push_back({level, end}); }
  void leave() { open_.pop_back(); }
  /// The next wait that began before `ticks` within a call that is shown, and its level.
  const analysis::Wait* next(std::uint64_t ticks, std::uint32_t& level) {
    while (next_ != end_ && next_->begin < ticks) {
      const analysis::Wait& wait = *next_++;
      if (open_.empty() || wait.begin >= open_.back().end) continue;
      level = open_.back().level + 1;
      return &wait;
    }
    return nullptr;
  }

 private:
  struct Open {
    std::uint32_t level;
    std::uint64_t end;
  };
  std::vector<analysis::Wait>::const_iterator next_, end_;
  std::vector<Open> open_;
};

class NoteCursor {
 public:
  /// `notes` must outlive it.
  NoteCursor(const std::vector<reader::Note>& notes, const reader::Calls& calls, std::uint32_t only_root)
      : next_(notes.begin()), end_(notes.end()) {
    if (only_root == reader::kNoParent) return;
    while (next_ != end_ && (next_->row == reader::kNoParent || next_->row < only_root) &&
           next_->ticks <= calls.begin[only_root])
      ++next_;
  }
  void enter(std::uint32_t row, std::uint32_t level) { open_.push_back({row, level}); }
  void leave() { open_.pop_back(); }
  /// The next note before `ticks`, or of that time and of a row before `before`, whose call is shown; and its level.
  const reader::Note* next(std::uint64_t ticks, std::uint32_t before, std::uint32_t& level) {
    while (next_ != end_ && (next_->ticks < ticks || (next_->ticks == ticks && next_->row < before))) {
      const reader::Note& note = *next_++;
      if (note.row == reader::kNoParent) {
        level = 0;
        return &note;
      }
      if (open_.empty() || open_.back().row != note.row) continue;
      level = open_.back().level + 1;
      return &note;
    }
    return nullptr;
  }

 private:
  struct Open {
    std::uint32_t row;
    std::uint32_t level;
  };
  std::vector<reader::Note>::const_iterator next_, end_;
  std::vector<Open> open_;
};

}  // namespace karst::cli
