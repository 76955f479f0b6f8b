// SPDX-License-Identifier: MIT
#include "base/process_stat.h"

#include <charconv>
#include <fstream>

namespace karst {

ProcessStat ProcessStat::read(const std::string& file) {
  std::ifstream in(file);
  std::string text;
  std::getline(in, text, '\0');  // an iterator would throw when the process vanishes meanwhile
  return ProcessStat(text);
}

ProcessStat::ProcessStat(const std::string& text) {
  const auto behind_name = text.rfind(") ");
  if (behind_name != std::string::npos) rest_ = text.substr(behind_name + 2);
}

std::optional<std::uint64_t> ProcessStat::number(Field field) const {
  constexpr int kState = 3;
  std::size_t at = 0;
  for (int before = kState; before < field; ++before) {
    at = rest_.find(' ', at);
    if (at == std::string::npos) return std::nullopt;
    ++at;
  }
  std::uint64_t number = 0;
  const auto read = std::from_chars(rest_.data() + at, rest_.data() + rest_.size(), number);
  return read.ec == std::errc() ? std::optional(number) : std::nullopt;
}

}  // namespace karst
