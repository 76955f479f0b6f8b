// SPDX-License-Identifier: MIT
// What the commands have in common about thread states: options of karst run, words for people.
#pragma once
#include <optional>
#include <string>

#include "base/result.h"
#include "cli/options.h"
#include "cli/text/terminal.h"
#include "kernel/recorder.h"
#include "reader/states.h"
#include "reader/trace.h"

namespace karst::cli {

struct StateArguments {
  std::string sched = "auto";
  bool syscalls = false;
  bool cpus = false;
  std::optional<std::string> memory;

  /// By their name, and not as what there is anyway.
  bool are_asked_for() const { return sched == "ftrace" || sched == "perf" || cpus || syscalls; }
};

/// Adds --sched, --syscalls, --cpus and --sched-memory; `arguments` outlives the parse.
void add_state_options(Command command, StateArguments& arguments);
/// Error: a value that cannot be, in words for the user.
Result<kernel::StateOptions> state_options(const StateArguments& arguments);

/// Says on stderr that states are missing: if they were asked for by name, or else the first time that this user
/// gets none.
void report_missing_states(const StateArguments& arguments, const reader::StateSource& source);

/// How a trace's thread states were recorded, or why not: lines of karst info.
void print_states(const reader::Trace& trace, Screen& screen);

}  // namespace karst::cli
