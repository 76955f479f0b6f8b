// SPDX-License-Identifier: MIT
// What karst on, off and ps do besides their own: one process in detail, levels of handlers, and letting go of it.
#pragma once
#include <string>
#include <vector>

#include "cli/commands/answer.h"
#include "cli/text/terminal.h"

namespace karst::cli {

/// All that is known of one process, for karst ps PID. `target`: as add_target() has it. Returns the exit status, as
/// the others do.
int show_process(const std::string& target, bool json, const TextOptions& text);

struct LevelOptions {
  std::string target;
  std::vector<std::string> functions;  ///< patterns; empty: all that have handlers
  std::string level;                   ///< a whole number; empty: the functions are listed
  AnswerOptions answer;
};

/// Functions with handlers of a process that runs, and how much these are to do.
int list_or_set_levels(const LevelOptions& options);

/// The process runs on with the code that its files have, until it is attached to again.
int detach(const std::string& target);

}  // namespace karst::cli
