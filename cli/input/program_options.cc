// SPDX-License-Identifier: MIT
#include "cli/input/program_options.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <set>
#include <string_view>
#include <utility>

#include "choice/function_filter.h"
#include "cli/command.h"
#include "cli/input/patched.h"
#include "cli/input/trace_input.h"
#include "cli/input/watch_options.h"
#include "cli/text/help.h"
#include "cli/text/text.h"
#include "format/filter_list.h"

namespace karst::cli {
namespace {

using format::option_index;

constexpr int kNotFound = 127;
constexpr int kNotExecutable = 126;
/// Of programs in which calls are watched for, unless somebody says otherwise; --kept-memory tells of it.
constexpr std::uint64_t kKeptMemory = std::uint64_t{256} << 20;

constexpr std::size_t kMinInstructions = option_index("min-instructions");

std::optional<std::uint32_t> min_instructions(const GivenOptions& given) {
  if (!given.has(kMinInstructions)) return std::nullopt;
  return format::parse_min_instructions(given.values(kMinInstructions).front());
}

Result<choice::FunctionChoice> make_choice(const GivenOptions& given) {
  choice::ListChoice lists;
  for (const std::string& file : given.values(option_index("no-trace")))
    if (auto problem = format::read_glob_list(file, lists.no_trace)) return Error{"--no-trace: " + *problem};
  for (const std::string& file : given.values(option_index("only"))) {
    if (auto problem = format::read_glob_list(file, lists.only)) return Error{"--only: " + *problem};
    if (lists.only.empty()) return Error{"--only: " + file + " has no globs, so nothing would be traced"};
  }
  lists.min_instructions = min_instructions(given);
  const std::vector<std::string>& not_functions = given.values(option_index("not-functions"));
  // What is looked for as it stands and is in no name would leave nothing out without a word.
  for (const std::string& pattern : not_functions)
    if (const choice::FunctionFilter filter({pattern}); !filter.complaint().empty())
      say("--not-function leaves out names that have '" + pattern + "' in them as it stands" + filter.complaint());
  const bool takes_carried = given.values(option_index("carried-lists")) != std::vector<std::string>{"0"};
  auto made = choice::FunctionChoice::make(
      choice::FunctionFilter(given.values(option_index("functions")), not_functions), std::move(lists), takes_carried);
  if (!made) return made;
  made->keep(given.values(option_index("keep")));
  made->note(choice::ValueChoice(given.values(option_index("args")), given.values(option_index("returns"))));
  return made;
}

}  // namespace

Result<std::string> find_runtime() { return find_library("libkarst.so.0"); }

Result<std::string> find_library(const std::string& name) {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return Error{"karst cannot tell where it is installed: /proc/self/exe cannot be read; is /proc mounted?"};
  const auto library = self.parent_path().parent_path() / "lib" / name;
  if (!std::filesystem::exists(library, error))
    return Error{"the tracing runtime " + library.string() + " is missing; is Karst installed whole?"};
  return library.string();
}

namespace {

constexpr const char* kHowToBuild =
    "Build it with karst-gcc or karst-g++ in the compiler's place, for example\n"
    "  karst-g++ -O2 -g app.cpp -o app\n"
    "  make CXX=karst-g++ CC=karst-gcc\n"
    "  cmake -DCMAKE_CXX_COMPILER=karst-g++ -DCMAKE_C_COMPILER=karst-gcc";

std::string explain_nothing(const std::string& name, const collect::Program& program, const collect::LaunchResult& run,
                            const char* what) {
  if (run.impossible) return fmt::format("no {} was written", what);
  if (program.why_foreign != nullptr) return fmt::format("{} ran untraced, so there is no {}", name, what);
  if (!program.interpreter.empty())
    return fmt::format(
        "{} is a script, run by {}, and nothing that it ran was built for tracing, so there is no {}.\n{}", name,
        program.interpreter, what, kHowToBuild);
  if (!run.reached && WIFSIGNALED(run.wait_status))
    return fmt::format("{} was ended by signal {} ({}) before it had loaded the tracing runtime, so there is no {}",
                       name, WTERMSIG(run.wait_status), strsignal(WTERMSIG(run.wait_status)), what);
  if (!run.reached && program.has_sleds)
    return fmt::format("{} did not load the tracing runtime (LD_PRELOAD was not honoured), so there is no {}", name,
                       what);
  if (say_what_was_patched(run.plain, "as it was loaded")) return fmt::format("there is no {}.\n{}", what, kHowToBuild);
  return fmt::format(
      "{} was not built for tracing, nor was a library or program that it loaded, so there is no {}.\n{}", name, what,
      kHowToBuild);
}

/// No function is left to trace.
std::string explain_none(const choice::FunctionFilter& filter, const std::set<std::string>& names) {
  std::string words = "the patterns and lists of functions to trace leave none";
  const std::vector<std::string>& patterns = filter.only();
  const bool any_matches = std::any_of(
      names.begin(), names.end(), [&](const std::string& name) { return filter.keeps(name) || filter.excludes(name); });
  if (patterns.empty() || names.empty() || any_matches) return words;
  words += ": no name matches ";
  for (const std::string& pattern : patterns) words += (&pattern == &patterns[0] ? "'" : " or '") + pattern + "'";
  return words + filter.complaint() + (patterns.size() == 1 ? did_you_mean(patterns[0], function_words(names)) : "");
}

}  // namespace

bool say_how_it_ran(const collect::LaunchOptions& launch, const collect::LaunchResult& run, const char* what,
                    const char* missing) {
  for (const reader::Problem& p : run.problems) say(p.message);
  for (const auto& u : run.untraced) say(fmt::format("{}: {} {}", missing, u.program, u.reason));
  if (!run.failure.empty()) {
    fail({fmt::format("no {} was written: {}", what, run.failure)});
    return false;
  }
  if (run.processes.empty()) {
    fail({explain_nothing(launch.arguments[0], launch.program, run, what)});
    say_what_was_not_named(launch.plain.libraries, run.plain, run.loaded, run.built_libraries);
    return false;
  }
  if (run.functions != 0 && run.functions_off == run.functions)
    say(explain_none(launch.choice.filter(), run.names_off));
  say_what_was_not_named(launch.plain.libraries, run.plain, run.loaded, run.built_libraries);
  return true;
}

int exit_status(std::int32_t wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

int status_without_trace(const collect::LaunchOptions& launch, const collect::LaunchResult& run) {
  const int status = exit_status(run.wait_status);
  const bool may_have_none = launch.plain.programs && !launch.program.has_sleds;
  return status == 0 && (run.impossible || !may_have_none) ? kExitFailed : status;
}

int prepare_launch(const ProgramOptions& options, const GivenOptions& given, const std::vector<std::string>& command,
                   const char* subcommand, collect::LaunchOptions& launch) {
  launch.runtime_options = given.runtime;
  if (options.user) {
    auto user = collect::User::find(*options.user);
    if (!user) return usage_error("--user " + *options.user + ": " + user.error().message, subcommand);
    launch.user = std::move(*user);
  }
  auto made = make_choice(given);
  if (!made) return usage_error(made.error().message, subcommand);
  launch.choice = std::move(*made);
  auto watch = watch_options({given.values(option_index("slowest")), given.values(option_index("over")),
                              given.values(option_index("margin"))});
  if (!watch) return usage_error(watch.error().message, subcommand);
  launch.watch = std::move(*watch);
  if (!launch.watch.rules.empty() && !given.has(option_index("kept-memory")))
    launch.runtime_options.kept_memory = kKeptMemory;
  for (const std::string& text : options.map_paths) {
    auto mapping = symbols::PathMapping::parse(text);
    if (!mapping) return usage_error(mapping.error().message, subcommand);
    launch.resolve.map_paths.push_back(std::move(*mapping));
  }
  // Before those of the environment.
  launch.resolve.debug.directories.insert(launch.resolve.debug.directories.begin(), options.debug_dirs.begin(),
                                          options.debug_dirs.end());
  if (options.debuginfod && !launch.resolve.debug.ask_servers()) return usage_error(kNoServers, subcommand);

  auto program = collect::find_program(command);
  if (!program) {
    fail({command[0] + ": there is no such program" + (command[0].find('/') == std::string::npos ? " in PATH" : "")});
    return kNotFound;
  }
  if (!program->executable) {
    fail({program->path.string() + " is not executable (chmod +x?)"});
    return kNotExecutable;
  }
  const auto rights = launch.user ? launch.user->rights : sandbox::Credentials{geteuid(), getegid()};
  if (const Status traceable = collect::check_traceable(*program, rights, launch.may_be_static); !traceable)
    return fail(traceable.error());
  auto runtime = find_runtime();
  if (!runtime) return fail(runtime.error());
  if (const collect::DeadSleds& sleds = program->dead_sleds; sleds.dead != 0)
    say(
        {fmt::format("{}: {} of its {} functions with sleds are not traced: a tool that rewrote it behind the linker "
                     "(llvm-bolt?) left their sleds in code that is not executed; trace what the linker wrote",
                     program->path.string(), sleds.dead, sleds.functions)});
  launch.program = *program;
  launch.arguments = command;
  launch.runtime = *runtime;
  launch.wait = !options.no_wait;
  // Who built the program for Karst means that one, and not the shells and tools that it starts.
  launch.plain.programs = !options.no_patch && (!program->has_sleds || program->has_plain_part);
  launch.plain.beside_sleds_alone = program->has_sleds;
  for (const std::string& text : options.libraries) {
    auto library = choice::LibraryChoice::parse(text);
    if (!library) return usage_error("--library " + library.error().message, subcommand);
    launch.plain.libraries.push_back(std::move(*library));
  }
  launch.choice.name_libraries(launch.plain.libraries);
  if (const auto least = min_instructions(given)) launch.plain.min_instructions = *least;
  return kExitOk;
}

void add_program_options(Command command, ProgramOptions& options) {
  in_group(command, format::kFunctionOptions, [&] {
    options.flags.add(command, format::kFunctionOptions);
    command
        .add_option("--library", options.libraries,
                    "Trace the functions of loaded libraries whose file's name matches, too, though they were not "
                    "built for tracing: like 'libssl*', or 'libssl*:SSL_*' for those functions alone, whatever their "
                    "size")
        .type_name("GLOB[:FUNCTIONS]")
        .allow_extra_args(false);
    command.add_flag("--no-patch", options.no_patch,
                     "Leave programs alone that were not built for tracing; without it their functions are patched as "
                     "they are loaded, as far as that is safe. What --library names is patched all the same");
  });
  in_group(command, format::kProcessOptions, [&] {
    command
        .add_option("--user", options.user,
                    "Run the program as this user, with the user's groups and HOME; for root, as under sudo")
        .type_name("NAME");
    options.flags.add(command, format::kProcessOptions);
    command.add_flag(
        "--wait", [&options](std::int64_t) { options.no_wait = false; },
        "Wait for all traced processes that the program leaves behind (the default)");
    command.add_flag("--no-wait", options.no_wait, "Write the trace when the program itself has ended");
  });
  in_group(command, "Names and sources", [&] {
    command
        .add_option("--debug-dir", options.debug_dirs,
                    "Look for separate debug files in DIR too, as in /usr/lib/debug (also: KARST_DEBUG_DIR)")
        .type_name("DIR")
        .allow_extra_args(false);
    add_debuginfod_option(command, options.debuginfod);
    command.add_option("--map-path", options.map_paths, "Sources under FROM are under TO now")
        .type_name("FROM=TO")
        .allow_extra_args(false);
  });
}

void add_debuginfod_option(Command command, bool& debuginfod) {
  command.add_flag("--debuginfod", debuginfod,
                   "Ask the servers of DEBUGINFOD_URLS for debug files that are not here (also: KARST_DEBUGINFOD=1);\n"
                   "it tells them the build-ids of what was traced");
}

}  // namespace karst::cli
