// SPDX-License-Identifier: MIT
// Records (NoteKind::kRecord) that follow each other in one call, with nothing between them: one line for all that say
// the same. Those of memory say the same as soon as their function is one, and their sizes are added up; others where
// every value is.
//
//   malloc  x5, 720 bytes
//   mutex(locked=0x5565, tried=0)  x12
#pragma once
#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "analysis/values.h"
#include "base/text.h"
#include "cli/text/text.h"
#include "format/memory.h"
#include "reader/model.h"

namespace karst::cli {

/// `Print` takes a line's text and its level.
template <typename Print>
class RecordFold {
 public:
  explicit RecordFold(Print print) : print_(std::move(print)) {}

  /// One more: `function` is what its name stands for, `text` its line, `bytes` its values.
  void add(std::uint32_t level, const reader::Function& function, std::string text, std::string_view bytes) {
    if (level != level_ || due_.size() == kMostDue) flush();
    level_ = level;
    const int size_at = size_of(function.values);
    const bool of_memory = size_at != kNoMemory;
    for (Line& line : due_) {
      if (line.function != &function || (!of_memory && line.text != text)) continue;
      ++line.count;
      line.bytes += bytes_in(bytes, size_at);
      return;
    }
    due_.push_back({&function, std::move(text), 1, bytes_in(bytes, size_at), of_memory, size_at >= 0});
  }
  /// Before anything else is printed, and where their call ends.
  void flush() {
    for (const Line& line : due_) {
      const std::string times = "  x" + count_text(line.count);
      if (line.count == 1)
        print_(line.text, level_);
      else if (!line.of_memory)
        print_(line.text + times, level_);
      else
        print_(printable(line.function->name) + times + (line.sized ? ", " + size_text(line.bytes) : ""), level_);
    }
    due_.clear();
  }

 private:
  static constexpr std::size_t kMostDue = 64;
  static constexpr int kNoMemory = -2;
  struct Line {
    const reader::Function* function;
    std::string text;  // of the first one
    std::uint64_t count;
    std::uint64_t bytes;
    bool of_memory, sized;
  };

  /// Which value is the size of what was taken; -1: none is.
  static int size_of(const std::string& values) {
    if (values == format::kAllocated || values == format::kMapped) return 0;
    if (values == format::kResized) return 1;
    for (const char* known : {format::kFreed, format::kUnmapped, format::kRemapped, format::kBreakMoved})
      if (values == known) return -1;
    return kNoMemory;
  }
  static std::uint64_t bytes_in(std::string_view bytes, int size_at) {
    if (size_at < 0) return 0;
    const analysis::RecordNumbers numbers = analysis::record_numbers(bytes);
    return static_cast<std::size_t>(size_at) < numbers.size() ? numbers[static_cast<std::size_t>(size_at)] : 0;
  }

  Print print_;
  std::vector<Line> due_;
  std::uint32_t level_ = 0;
};

}  // namespace karst::cli
