// SPDX-License-Identifier: MIT
// What the kernel says of a process in /proc/PID/status: the one reader of that file for tools.
//
// A line is "Name:\tvalue". A process chooses its own name alone, in which the kernel writes a newline as \n. So no
// process can make up a line.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace karst {

/// As it was when it was read.
class ProcessStatus {
 public:
  /// Of a file like /proc/PID/status. Empty: it cannot be read, or the process has ended.
  static ProcessStatus read(const std::string& file);
  explicit ProcessStatus(std::string text) : text_(std::move(text)) {}

  bool empty() const { return text_.empty(); }
  /// What stands behind "name:" and blanks. It lives as long as this. Empty: there is no such line, or nothing in it.
  std::string_view field(std::string_view name) const;
  /// All numbers of the field, up to a word that is none. Those of masks are hexadecimal.
  std::vector<std::uint64_t> numbers(std::string_view name, int base = 10) const;
  /// The first of them.
  std::optional<std::uint64_t> number(std::string_view name, int base = 10) const;

 private:
  std::string text_;
};

}  // namespace karst
