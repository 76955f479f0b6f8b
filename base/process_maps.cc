// SPDX-License-Identifier: MIT
#include "base/process_maps.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <utility>

namespace karst {
namespace {

constexpr std::size_t kMostMappings = 1 << 20;  // sixteen times what the kernel allows, unless it was told to
constexpr std::size_t kRights = 4;

/// Takes words off a line, each with the character behind it.
class MapsLine {
 public:
  explicit MapsLine(std::string_view line) : rest_(line) {}
  std::string_view word(char end) {
    const auto at = rest_.find(end);
    const std::string_view found = rest_.substr(0, at);
    rest_.remove_prefix(at == std::string_view::npos ? rest_.size() : at + 1);
    return found;
  }
  template <typename Number>
  bool number(char end, int base, Number& to) {
    const std::string_view text = word(end);
    const auto read = std::from_chars(text.data(), text.data() + text.size(), to, base);
    return read.ec == std::errc() && read.ptr == text.data() + text.size();
  }
  /// Without the blanks that the kernel puts before a path. No path begins with one.
  std::string_view rest() const { return rest_.substr(std::min(rest_.size(), rest_.find_first_not_of(' '))); }

 private:
  std::string_view rest_;
};

std::optional<Mapping> parse_mapping(std::string_view text) {
  MapsLine line(text);
  Mapping m;
  if (!line.number('-', 16, m.begin) || !line.number(' ', 16, m.end) || m.begin >= m.end) return std::nullopt;
  m.rights = line.word(' ');
  if (m.rights.size() != kRights || !line.number(' ', 16, m.offset) || !line.number(':', 16, m.device_major) ||
      !line.number(' ', 16, m.device_minor) || !line.number(' ', 10, m.inode))
    return std::nullopt;
  m.path = line.rest();
  return m;
}

}  // namespace

std::string Mapping::link() const { return fmt::format("map_files/{:x}-{:x}", begin, end); }

std::vector<Mapping> parse_maps(std::string_view text) {
  std::vector<Mapping> all;
  while (!text.empty() && all.size() < kMostMappings) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (auto mapping = parse_mapping(line)) all.push_back(std::move(*mapping));
  }
  return all;
}

std::vector<Mapping> read_maps(const std::string& file) {
  std::vector<Mapping> all;
  std::ifstream in(file);
  for (std::string line; all.size() < kMostMappings && std::getline(in, line);)
    if (auto mapping = parse_mapping(line)) all.push_back(std::move(*mapping));
  return all;
}

}  // namespace karst
