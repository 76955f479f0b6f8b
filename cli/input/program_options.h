// SPDX-License-Identifier: MIT
// What `karst run` does with --count and without: which functions and processes, and how a program is made ready to be
// started.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/input/given_options.h"
#include "cli/options.h"
#include "collect/launch/launch.h"
#include "collect/launch/program.h"

namespace CLI {
class App;
}

namespace karst::cli {

/// What tracing may cost of a program that was not built for it, unless --budget says otherwise; in millionths of time.
inline constexpr std::uint32_t kPlainBudget = 50'000;

struct ProgramOptions {
  OptionFlags flags;
  std::vector<std::string> libraries;
  bool no_patch = false;
  std::vector<std::string> map_paths;
  std::vector<std::string> debug_dirs;
  bool debuginfod = false;
  std::optional<std::string> user;
  bool no_wait = false;
};

/// `options` must live until the command line was parsed.
void add_program_options(Command command, ProgramOptions& options);

/// libkarst.so beside this program: ../lib as installed and as built. Error: it is not there.
Result<std::string> find_runtime();
/// The same of another library of ours, by its file's name.
Result<std::string> find_library(const std::string& name);

/// Fills in what collect::launch() needs for `command`, which is not empty. `given`: what options.flags read. Returns
/// kExitOk, or the exit status when it said what is wrong.
int prepare_launch(const ProgramOptions& options, const GivenOptions& given, const std::vector<std::string>& command,
                   const char* subcommand, collect::LaunchOptions& launch);

/// Says on stderr what went wrong while the program ran, and which programs are `missing` ("not counted"). False: there
/// is nothing to show, which was said too; `what` ("count") there would be.
bool say_how_it_ran(const collect::LaunchOptions& launch, const collect::LaunchResult& run, const char* what,
                    const char* missing);
/// The exit status that passes on how a program ended.
int exit_status(std::int32_t wait_status);
/// What to end with when the program ran and nothing of it was recorded: its own status, which karst was asked to see
/// what it can. 1 in place of 0 where tracing was to be had and failed, or was forbidden to patch (--no-patch).
int status_without_trace(const collect::LaunchOptions& launch, const collect::LaunchResult& run);

/// --debuginfod, for which DebugSearch::ask_servers() is asked; kNoServers says that it named none.
void add_debuginfod_option(Command command, bool& debuginfod);
inline constexpr const char* kNoServers =
    "--debuginfod: DEBUGINFOD_URLS names no servers; set it to their addresses, with spaces between";

}  // namespace karst::cli
