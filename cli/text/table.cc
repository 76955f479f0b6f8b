// SPDX-License-Identifier: MIT
#include "cli/text/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/text/names.h"
#include "cli/text/text.h"

namespace karst::cli {
namespace {

constexpr std::size_t kLeastElastic = 20;  // what the elastic column needs to be of use
constexpr std::string_view kGap = "  ";    // before the elastic column

std::string padded(std::string_view text, std::size_t width, bool left) {
  const std::size_t used = text_width(text);
  const std::string spaces(width > used ? width - used : 0, ' ');
  return left ? std::string(text) + spaces : spaces + std::string(text);
}

}  // namespace

std::string shorten(std::string_view text, std::size_t width, Shorten how) {
  if (width == 0) return std::string(text);
  if (how == Shorten::kName) return fit_name(text, width);
  return how == Shorten::kEnd ? fit_text(text, width) : fit_tail(text, width);
}

Table::Table(std::vector<Column> columns, Shorten shorten, std::string indent)
    : columns_(std::move(columns)), shorten_(shorten), indent_(std::move(indent)) {}

std::string Table::keys() const {
  std::string text;
  for (const Column& column : columns_) text += (text.empty() ? "" : ", ") + column.key;
  return text;
}

Status Table::choose(std::string_view keys) {
  chosen_.clear();
  while (!keys.empty()) {
    const std::string_view key = keys.substr(0, keys.find(','));
    keys.remove_prefix(std::min(key.size() + 1, keys.size()));
    const auto found =
        std::find_if(columns_.begin(), columns_.end(), [&](const Column& column) { return column.key == key; });
    if (found == columns_.end()) return Error{fmt::format("there is no column '{}'; there are: {}", key, this->keys())};
    const auto number = static_cast<std::size_t>(found - columns_.begin());
    if (number + 1 != columns_.size()) chosen_.push_back(number);
  }
  chosen_.push_back(columns_.size() - 1);
  return Unit{};
}

void Table::add(std::vector<std::string> cells, std::string more) {
  rows_.push_back({std::move(cells), std::move(more)});
}

std::vector<std::size_t> Table::shown_columns(std::size_t width, const std::vector<std::size_t>& widths) const {
  std::vector<std::size_t> shown = chosen_;
  if (shown.empty())
    for (std::size_t i = 0; i < columns_.size(); ++i)
      if (width == 0 || columns_[i].narrow) shown.push_back(i);
  const auto taken = [&] {
    std::size_t sum = indent_.size() + kGap.size();
    for (const std::size_t i : shown) sum += i + 1 == columns_.size() ? kLeastElastic : widths[i] + 1;
    return sum;
  };
  while (width != 0 && shown.size() > 1 && taken() > width) {
    const auto first = std::max_element(shown.begin(), shown.end() - 1, [&](std::size_t a, std::size_t b) {
      return columns_[a].rank < columns_[b].rank;
    });
    if (columns_[*first].rank == 0 && chosen_.empty()) break;
    shown.erase(first);
  }
  return shown;
}

std::vector<std::string> Table::lines(std::size_t width) const {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    std::size_t widest = std::max(text_width(columns_[i].title), width == 0 ? columns_[i].least_width : 0);
    for (const Row& row : rows_) widest = std::max(widest, text_width(row.cells[i]));
    widths.push_back(widest);
  }
  std::vector<std::size_t> shown = shown_columns(width, widths);
  shown.pop_back();
  const auto line_of = [&](const auto& text) {
    std::string line = indent_;
    for (std::size_t i = 0; i < shown.size(); ++i)
      line += (i == 0 ? "" : " ") + padded(text(shown[i]), widths[shown[i]], columns_[shown[i]].left);
    return line + (shown.empty() ? std::string() : std::string(kGap));
  };
  std::vector<std::string> lines;
  const std::string head = line_of([&](std::size_t i) { return columns_[i].title; }) + columns_.back().title;
  lines.push_back(width == 0 ? head : fit_text(head, width));
  const std::size_t used = head.size() - columns_.back().title.size();
  for (const Row& row : rows_) {
    std::string line = line_of([&](std::size_t i) { return row.cells[i]; });
    if (width == 0) {
      line += row.cells.back() + row.more;
    } else if (used < width) {
      line += shorten(row.cells.back(), width - used, shorten_);
    } else {
      line = fit_text(line, width);  // the cells alone are too wide
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

void Table::print(Screen& screen) const {
  Style style = Style::kStrong;
  for (const std::string& line : lines(screen.width())) {
    if (screen.output().failed()) return;
    screen.output().append(screen.paint(std::exchange(style, Style::kPlain), line) + "\n");
  }
}

std::string wrap(std::string_view text, std::size_t width, std::size_t indent) {
  if (width == 0) return std::string(text);
  std::string lines;
  const std::size_t room = width > indent ? width - indent : 1;
  std::size_t used = 0;
  bool first = true;  // of its line
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    const std::size_t wide = text_width(word);
    if (!first && used + 1 + wide > room) {
      lines += "\n" + std::string(indent, ' ');
      used = 0;
      first = true;
    }
    lines += (first ? "" : " ") + fit_text(word, room);
    used += (first ? 0 : 1) + std::min(wide, room);
    first = false;
  }
  return lines;
}

std::string fact(std::string_view label, std::string_view text, std::size_t width) {
  constexpr std::size_t kLabel = 13;
  return padded(label, kLabel, true) + wrap(text, width, kLabel) + "\n";
}

}  // namespace karst::cli
