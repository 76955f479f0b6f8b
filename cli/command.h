// SPDX-License-Identifier: MIT
// The contract between main() and the subcommands.
//
// A subcommand is one file that holds its help, its options and what it does, and a line of cli/command_list.h. Its
// register_NAME() adds an App named after it, and a callback that runs after the whole command line was parsed and
// stores the process's exit status.
//
//   void register_info(Command app, int& status) {
//     auto options = std::make_shared<Options>();
//     Command command = app.add_subcommand("info", "Show what a trace holds");
//     command.add_option("FILE", options->file, "...").required();
//     command.callback([options, &status] { status = info(*options); });
//   }
//
// `status` outlives the parse. Only cli/ prints and exits; libraries return a Result.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/command_list.h"
#include "cli/options.h"

namespace karst::cli {

/// Exit statuses. `karst run` passes on the program's own instead.
enum Exit : int {
  kExitOk = 0,
  kExitFailed = 1,  ///< a file, the machine, a trace
  kExitUsage = 2,   ///< the command line itself
  kExitOver = 3,    ///< what was asked to stay below a limit is above it
};

#define KARST_DECLARE_COMMAND(name, group, first) void register_##name(Command app, int& status);
KARST_COMMANDS(KARST_DECLARE_COMMAND)
#undef KARST_DECLARE_COMMAND
/// Not for people: `karst describe`.
void register_describe(Command app);
/// The same: `karst asked`, which the page's server runs.
void register_asked(Command app);

/// What `karst view` does, once its command line is read; returns the exit status when the page was closed.
int view_traces(const std::vector<std::string>& files, bool keep, bool no_browser, std::uint32_t kept = 0);
/// `karst resolve --strip all FILE` means --strip=all: the option's value may be left out, so a parser cannot tell.
void join_strip(std::vector<std::string>& words);

/// All of karst but the process around it: runs the command of a command line, and returns the exit status. Throws what
/// is not foreseen.
int run_command_line(int argc, const char* const* argv);

/// Prints "karst: MESSAGE" on stderr, with control characters made visible: what went well, or what is to be known of
/// it.
void say(std::string_view message);
/// The same of a failure; returns kExitFailed.
int fail(const Error& error);
/// The same for a command line that cannot be understood, with a hint at the help; returns kExitUsage.
int usage_error(std::string_view message, std::string_view command = {});

}  // namespace karst::cli
