// The contract between main() and the subcommands.
//
// A subcommand is one file that holds its help, its options and what it does. It registers itself
// in a function of its own below: it adds an App named after it, and a callback that runs after the
// whole command line was parsed and stores the process's exit status.
//
//   void register_info(CLI::App& app, int& status) {
//     auto options = std::make_shared<Options>();
//     CLI::App* command = app.add_subcommand("info", "Show what a trace holds");
//     command->add_option("FILE", options->file, "...")->required();
//     command->callback([options, &status] { status = info(*options); });
//   }
//
// `status` outlives the parse. Only cli/ prints and exits; libraries return a Result.
#pragma once
#include <string_view>

#include "reader/result.h"

namespace CLI {
class App;
}

namespace karst::cli {

/// Exit statuses. `karst run` passes on the program's own instead.
enum Exit : int {
  kExitOk = 0,
  kExitFailed = 1,  ///< a file, the machine, a trace
  kExitUsage = 2,   ///< the command line itself
};

void register_run(CLI::App& app, int& status);
void register_info(CLI::App& app, int& status);
void register_tree(CLI::App& app, int& status);
void register_report(CLI::App& app, int& status);
void register_export(CLI::App& app, int& status);

/// Prints "karst: MESSAGE" on stderr, with control characters made visible; returns kExitFailed.
int fail(const Error& error);
/// The same for a command line that cannot be understood, with a hint at the help; returns kExitUsage.
int usage_error(std::string_view message, std::string_view command = {});

}  // namespace karst::cli
