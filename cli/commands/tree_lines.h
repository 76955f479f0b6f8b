// SPDX-License-Identifier: MIT
// Lines of a tree: what stands before a name, how far it is indented, and how it fits the screen.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/clock.h"
#include "base/output.h"
#include "cli/text/terminal.h"
#include "reader/model.h"

namespace karst::cli {

class TreeLines {
 public:
  /// With `plain` lines are names alone, of any width. `screen` and `clock` must outlive it.
  TreeLines(Screen& screen, const Clock& clock, bool plain);

  std::size_t width() const { return width_; }  ///< 0: any
  Output& output() { return screen_.output(); }

  /// A whole line that is no call's.
  void line(const std::string& text, Style style);
  /// What stands before a call's name: its time, and how it began and ended.
  void call_time(const reader::Calls& calls, std::uint32_t row);
  /// The same of a time alone, or as much blank space.
  void time(std::uint64_t ticks);
  void no_time();
  /// `text` behind the indentation of its level, cut so that `behind` fits.
  void name(const std::string& text, std::uint64_t level, const std::string& behind);
  /// The same of a name with values in it, which is cut at its end alone.
  void name_with_values(const std::string& text, std::uint64_t level, const std::string& behind);
  /// What is said of the call above it, behind its time: goes on below itself where it is too long.
  void remark(const std::string& text, std::uint32_t level, Style style);
  /// A function that the compiler made part of the one above it; its level is not told in numbers.
  void inlined(const std::string& text, std::uint64_t level, const std::string& behind);
  void end() { output().append("\n"); }

 private:
  std::string fit(const std::string& text, std::size_t used) const;
  /// The indentation of a level; returns how many columns are used then, those of `behind` with them.
  std::size_t before_name(std::uint64_t level, const std::string& behind);
  void indent(std::uint64_t level);
  std::uint64_t shift_of(std::uint64_t level) const;

  Screen& screen_;
  const Clock& clock_;
  const bool plain_;
  const std::size_t width_;
  const std::uint32_t most_indented_;
};

/// How a call began and ended in words, "  [open, resumed]"; empty where both are as usual.
std::string tree_marks_text(std::uint8_t marks);

}  // namespace karst::cli
