// SPDX-License-Identifier: MIT
// The options of format/option_table.h as a command is given them: by KARST_OPTIONS, and by its command line, which
// wins.
#pragma once
#include <array>
#include <bitset>
#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/options.h"
#include "format/option_text.h"

namespace karst::cli {

/// What was said, read. Options are named by format::option_index().
class GivenOptions {
 public:
  /// What libkarst acts by.
  format::RuntimeOptions runtime;

  /// Values of an option of karst's own, those of the environment first; one at most if it does not repeat.
  const std::vector<std::string>& values(std::size_t option) const { return values_[option]; }
  /// By the environment or the command line.
  bool has(std::size_t option) const { return given_[option]; }
  bool has_flag(std::size_t option) const { return flags_[option]; }
  /// The command line asks for what only traced calls can tell.
  bool asks_for_calls() const;
  /// The command line's flags about calls, with commas between.
  std::string flags() const;

 private:
  friend class OptionFlags;
  /// False: the value is none.
  bool take(const format::OptionRow& row, const std::string& value);

  std::array<std::vector<std::string>, format::kOptionCount> values_;
  std::bitset<format::kOptionCount> given_;
  std::bitset<format::kOptionCount> flags_;
};

/// A command's flags for options of the table.
class OptionFlags {
 public:
  /// Adds those of a group of the help. This must live until the command line was parsed.
  void add(const Command& command, const char* group);
  /// Reads KARST_OPTIONS, of which it says what it does not understand, and then what the command line had. Error: the
  /// flag whose value is none.
  Result<GivenOptions> read() const;

 private:
  std::array<std::vector<std::string>, format::kOptionCount> values_;
};

/// Adds the option's flag, which takes values; one at most if it does not repeat. They must live until the command line
/// was parsed.
void add_flag_of(const Command& command, std::size_t option, std::vector<std::string>& values);

/// Error: why the text is no value of the option, which it names by its flag.
Status check_flag(std::size_t option, const std::string& text);
/// Reads a value of libkarst's. Errors are those of check_flag().
Status read_flag(std::size_t option, const std::string& text, format::RuntimeOptions& to);

}  // namespace karst::cli
