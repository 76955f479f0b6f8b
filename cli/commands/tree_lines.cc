// SPDX-License-Identifier: MIT
#include "cli/commands/tree_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "cli/text/names.h"
#include "cli/text/table.h"
#include "cli/text/text.h"

namespace karst::cli {
namespace {

constexpr std::uint32_t kMostIndented = 100;
constexpr std::size_t kBeforeIndent = 14;  // columns of a call's time and marks
constexpr std::size_t kLeastName = 30;     // columns that indentation leaves to a name

std::uint32_t most_indented(std::size_t width) {
  if (width == 0) return kMostIndented;
  return width > kBeforeIndent + kLeastName ? static_cast<std::uint32_t>((width - kBeforeIndent - kLeastName) / 2) : 0;
}

}  // namespace

TreeLines::TreeLines(Screen& screen, const Clock& clock, bool plain)
    : screen_(screen),
      clock_(clock),
      plain_(plain),
      width_(plain ? 0 : screen.width()),
      most_indented_(most_indented(width_)) {}

void TreeLines::line(const std::string& text, Style style) {
  output().append(screen_.paint(style, shorten(text, width_, Shorten::kEnd)) + "\n");
}

void TreeLines::call_time(const reader::Calls& calls, std::uint32_t row) {
  const std::uint8_t marks = calls.marks[row];
  const char begin = (marks & reader::kCallResumed) != 0 ? '(' : (marks & reader::kCallOpenBegin) != 0 ? '<' : ' ';
  const char end = (marks & reader::kCallSwitched) != 0  ? ')'
                   : (marks & reader::kCallOpenEnd) != 0 ? '>'
                   : (marks & reader::kCallUnwound) != 0 ? '!'
                   : reader::call_is_left(marks)         ? '/'
                   : (marks & reader::kCallJumped) != 0  ? '~'
                   : (marks & reader::kCallTail) != 0    ? '='
                                                         : ' ';
  fmt::memory_buffer text;
  fmt::format_to(std::back_inserter(text), "{:>10} {}{} ", duration_text(clock_.to_ns(calls.time(row))), begin, end);
  output().append({text.data(), text.size()});
}

void TreeLines::time(std::uint64_t ticks) {
  output().append(fmt::format("{:>10}    ", duration_text(clock_.to_ns(ticks))));
}

void TreeLines::no_time() { output().append(std::string(kBeforeIndent, ' ')); }

void TreeLines::indent(std::uint64_t level) {
  static constexpr std::string_view kSpaces = "                                                                ";
  for (std::uint64_t left = level * 2; left != 0 && !output().failed();) {
    const std::uint64_t some = std::min<std::uint64_t>(left, kSpaces.size());
    output().append(kSpaces.substr(0, some));
    left -= some;
  }
}

std::uint64_t TreeLines::shift_of(std::uint64_t level) const {
  return plain_ ? level : std::min<std::uint64_t>(level, most_indented_);
}

std::string TreeLines::fit(const std::string& text, std::size_t used) const {
  return width_ == 0 ? text : fit_name(text, width_ > used ? width_ - used : 1);
}

std::size_t TreeLines::before_name(std::uint64_t level, const std::string& behind) {
  const std::uint64_t shift = shift_of(level);
  indent(shift);
  const std::string deep = level > shift ? fmt::format("[{}] ", level) : "";
  output().append(deep);
  return kBeforeIndent + 2 * shift + deep.size() + behind.size();
}

void TreeLines::name(const std::string& text, std::uint64_t level, const std::string& behind) {
  const std::size_t used = before_name(level, behind);
  output().append(fit(text, used) + behind);
}

void TreeLines::name_with_values(const std::string& text, std::uint64_t level, const std::string& behind) {
  const std::size_t used = before_name(level, behind);
  output().append((width_ == 0 ? text : fit_text(text, width_ > used ? width_ - used : 1)) + behind);
}

void TreeLines::inlined(const std::string& text, std::uint64_t level, const std::string& behind) {
  if (!plain_) output().append("   inlined    ");
  const std::uint64_t shift = shift_of(level);
  indent(shift);
  if (plain_) output().append("[inlined] ");
  output().append(fit(text, kBeforeIndent + 2 * shift + behind.size()) + behind + "\n");
}

void TreeLines::remark(const std::string& text, std::uint32_t level, Style style) {
  const std::uint64_t shift = shift_of(level);
  indent(shift);
  const std::size_t used = kBeforeIndent + 2 * shift;
  const std::size_t width = width_ == 0 ? 0 : std::max(width_, used + 20);
  output().append(screen_.paint(style, wrap(text, width, used + 1)) + "\n");
}

std::string tree_marks_text(std::uint8_t marks) {
  static constexpr std::pair<std::uint8_t, std::string_view> kWords[] = {
      {reader::kCallResumed, "resumed"}, {reader::kCallOpenBegin, "begun before"}, {reader::kCallSwitched, "switched"},
      {reader::kCallOpenEnd, "open"},    {reader::kCallUnwound, "unwound"},        {reader::kCallJumped, "jumped"},
      {reader::kCallTail, "tail"},       {reader::kCallInherited, "inherited"},
  };
  std::string text;
  // The words of a switch say more than those of an open end.
  if ((marks & reader::kCallResumed) != 0) marks &= static_cast<std::uint8_t>(~reader::kCallOpenBegin);
  if ((marks & reader::kCallSwitched) != 0) marks &= static_cast<std::uint8_t>(~reader::kCallOpenEnd);
  std::string_view before = "  [";
  if (reader::call_is_cut(marks)) {
    marks &= static_cast<std::uint8_t>(~reader::kCallCut);
    text += "  [cut";
    before = ", ";
  } else if (reader::call_is_left(marks)) {
    marks &= static_cast<std::uint8_t>(~reader::kCallLeft);
    text += "  [left";
    before = ", ";
  }
  for (const auto& [mark, word] : kWords) {
    if ((marks & mark) == 0) continue;
    text += before;
    text += word;
    before = ", ";
  }
  return before == ", " ? text + "]" : text;
}

}  // namespace karst::cli
