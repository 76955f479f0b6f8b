// SPDX-License-Identifier: MIT
// karst run --count: runs a program and counts the calls of each of its functions, exactly, and records nothing else.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "cli/commands/answer.h"
#include "cli/input/program_options.h"
#include "cli/options.h"

namespace karst::cli {

struct CountOptions {
  bool count = false;
  std::optional<std::string> show;
  std::optional<std::string> suggest;
  AnswerOptions answer;
};

/// Heading of these options in the help.
inline constexpr const char* kCountGroup = "Counting calls";

/// `options` must live until the command line was parsed.
void add_count_options(Command command, CountOptions& options);

/// The counts go to `output`, or to standard output if it is empty. Returns the exit status, the program's own if
/// nothing failed.
int count_calls(const CountOptions& options, const ProgramOptions& program, const std::string& output,
                const std::vector<std::string>& command);

}  // namespace karst::cli
