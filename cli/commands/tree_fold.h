// SPDX-License-Identifier: MIT
// Calls of one function that follow each other in a tree, with nothing shown below them: one line for all of them.
//
// A line is due until something else comes. What comes below the last of the calls shows that it is no repeat of those
// before it: it then gets a line of its own.
#pragma once
#include <cstdint>

#include "reader/model.h"

namespace karst::cli {

/// `Print` takes a Line.
template <typename Print>
class TreeFold {
 public:
  struct Line {
    const reader::Thread* thread = nullptr;
    std::uint32_t function = 0;
    std::uint32_t level = 0;
    std::uint64_t calls = 0;  // 0: none
    std::uint64_t ticks = 0;
  };

  explicit TreeFold(Print print) : print_(print) {}

  /// One more call, which may be folded.
  void add(const reader::Thread& thread, std::uint32_t function, std::uint32_t level, std::uint64_t ticks) {
    if (due_.calls != 0 && level == due_.level && function == due_.function) {
      ++due_.calls;
      due_.ticks += ticks;
    } else {
      before_call(level);
      due_ = {&thread, function, level, 1, ticks};
    }
    last_ticks_ = ticks;
  }
  /// Before a call is printed that is not to be folded.
  void before_call(std::uint32_t level) {
    if (due_.calls != 0 && level > due_.level) split_last();
    flush();
  }
  /// Before a line that stands below the last call.
  void before_remark() {
    split_last();
    flush();
  }
  /// A call of that level has ended.
  void left(std::uint32_t level) {
    if (due_.calls != 0 && level < due_.level) flush();
  }
  void flush() {
    if (due_.calls != 0) print_(due_);
    due_.calls = 0;
  }

 private:
  void split_last() {
    if (due_.calls < 2) return;
    Line before = due_;
    --before.calls;
    before.ticks -= last_ticks_;
    due_.calls = 1;
    due_.ticks = last_ticks_;
    print_(before);
  }

  Print print_;
  Line due_;
  std::uint64_t last_ticks_ = 0;  // of the last of `due_`
};

}  // namespace karst::cli
