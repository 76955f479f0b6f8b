// SPDX-License-Identifier: MIT
#include "base/process_status.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <utility>

namespace karst {
namespace {

constexpr std::string_view kBlanks = " \t";

std::string_view without_blanks(std::string_view text) {
  const auto begin = text.find_first_not_of(kBlanks);
  return begin == std::string_view::npos ? std::string_view() : text.substr(begin);
}

}  // namespace

ProcessStatus ProcessStatus::read(const std::string& file) {
  std::ifstream in(file);
  std::string text;
  std::getline(in, text, '\0');  // an iterator would throw when the process vanishes meanwhile
  return ProcessStatus(std::move(text));
}

std::string_view ProcessStatus::field(std::string_view name) const {
  std::string_view rest = text_;
  while (!rest.empty()) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (line.size() <= name.size() || !line.starts_with(name) || line[name.size()] != ':') continue;
    return without_blanks(line.substr(name.size() + 1));
  }
  return {};
}

std::vector<std::uint64_t> ProcessStatus::numbers(std::string_view name, int base) const {
  std::vector<std::uint64_t> all;
  for (std::string_view rest = field(name); !rest.empty();) {
    std::uint64_t number = 0;
    const auto read = std::from_chars(rest.data(), rest.data() + rest.size(), number, base);
    const char* const end = rest.data() + rest.size();
    if (read.ec != std::errc() || (read.ptr != end && kBlanks.find(*read.ptr) == std::string_view::npos)) break;
    all.push_back(number);
    rest = without_blanks({read.ptr, static_cast<std::size_t>(end - read.ptr)});
  }
  return all;
}

std::optional<std::uint64_t> ProcessStatus::number(std::string_view name, int base) const {
  const auto all = numbers(name, base);
  return all.empty() ? std::nullopt : std::optional(all.front());
}

}  // namespace karst
