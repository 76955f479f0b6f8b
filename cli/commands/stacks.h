// SPDX-License-Identifier: MIT
// Calls merged by their path as a tree for people, with counts and times, and as JSON.
#pragma once
#include <cstdint>
#include <limits>

#include "base/output.h"
#include "cli/commands/paths.h"
#include "cli/options.h"
#include "cli/text/terminal.h"

namespace karst::cli {

struct StackOptions {
  std::uint32_t depth = std::numeric_limits<std::uint32_t>::max();  ///< levels
  double share = 0.5;                                               ///< per cent of all: paths below that are added up
  TextOptions text;
};

/// What the help says of the tree.
extern const char* const kStacksHelp;

/// `options` must live until the command line was parsed.
void add_stack_options(Command command, StackOptions& options);

/// A line for each path, below that of its caller.
void print_stacks(const Paths& paths, const StackOptions& options, Screen& screen);
/// All paths, whatever their share.
void print_stacks_json(const Paths& paths, Output& output);

}  // namespace karst::cli
