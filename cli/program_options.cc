#include "cli/program_options.h"

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

#include "cli/command.h"
#include "cli/help.h"
#include "cli/patched.h"
#include "cli/text.h"
#include "cli/trace_input.h"
#include "cli/watch_options.h"
#include "format/filter_list.h"
#include "symbols/function_filter.h"

namespace karst::cli {
namespace {

constexpr int kNotFound = 127;
constexpr int kNotExecutable = 126;

/// What the command line and the environment say about which functions to trace.
struct Choice {
  std::vector<std::string> functions;
  std::vector<std::string> not_functions;
  std::vector<std::string> no_trace;
  std::vector<std::string> only;
  std::vector<std::string> keep;
  std::vector<std::string> arguments;
  std::vector<std::string> returned;
  WatchArguments watch;
  std::string min_instructions;
  std::string carried_lists = "1";
};

/// Entries of KARST_OPTIONS, unescaped (the grammar is that of runtime/system/options.h).
std::vector<std::string> split_options(const char* text) {
  std::vector<std::string> entries;
  std::string entry;
  for (; text != nullptr && *text != '\0'; ++text) {
    if (*text == ',') {
      if (!entry.empty()) entries.push_back(std::exchange(entry, {}));
      continue;
    }
    if (*text == '\\' && text[1] != '\0') ++text;
    entry += *text;
  }
  if (!entry.empty()) entries.push_back(std::move(entry));
  return entries;
}

void append_option(std::string& all, const std::string& entry) {
  if (!all.empty()) all += ',';
  for (const char c : entry) {
    if (c == ',' || c == '\\') all += '\\';
    all += c;
  }
}

/// True if the entry is of the choice of functions, which is made here: names need a demangler, which the runtime has
/// not. Where one value is needed, the last one counts.
bool take_choice(const std::string& entry, Choice& choice) {
  const auto equals = entry.find('=');
  const std::string_view name = std::string_view(entry).substr(0, equals);
  const std::string value = equals == std::string::npos ? std::string() : entry.substr(equals + 1);
  if (name == "functions") {
    choice.functions.push_back(value);
  } else if (name == "not-functions") {
    choice.not_functions.push_back(value);
  } else if (name == "no-trace") {
    choice.no_trace.push_back(value);
  } else if (name == "only") {
    choice.only.push_back(value);
  } else if (name == "keep") {
    choice.keep.push_back(value);
  } else if (name == "args") {
    choice.arguments.push_back(value);
  } else if (name == "returns") {
    choice.returned.push_back(value);
  } else if (name == "slowest") {
    choice.watch.slowest.push_back(value);
  } else if (name == "over") {
    choice.watch.over.push_back(value);
  } else if (name == "margin") {
    choice.watch.margin = value;
  } else if (name == "min-instructions") {
    choice.min_instructions = value;
  } else if (name == "carried-lists") {
    choice.carried_lists = value;
  } else {
    return false;
  }
  return true;
}

void append(std::vector<std::string>& to, const std::vector<std::string>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

/// What the environment says first, the command line behind it, so that it wins.
std::string all_options(const ProgramOptions& options, const std::vector<std::string>& entries, Choice& choice) {
  std::string all;
  for (const std::string& entry : split_options(std::getenv("KARST_OPTIONS")))
    if (!take_choice(entry, choice) && !entry.starts_with("session=")) append_option(all, entry);
  for (const std::string& entry : entries)
    if (!take_choice(entry, choice)) append_option(all, entry);
  if (options.no_follow) append_option(all, "follow=0");
  append(choice.functions, options.functions);
  append(choice.not_functions, options.not_functions);
  append(choice.no_trace, options.no_trace);
  append(choice.only, options.only);
  if (options.min_instructions) choice.min_instructions = *options.min_instructions;
  if (options.no_carried_lists) choice.carried_lists = "0";
  return all;
}

Result<collect::FunctionChoice> make_choice(const Choice& choice) {
  symbols::ListChoice lists;
  for (const std::string& file : choice.no_trace)
    if (auto problem = format::read_glob_list(file, lists.no_trace)) return Error{"--no-trace: " + *problem};
  for (const std::string& file : choice.only) {
    if (auto problem = format::read_glob_list(file, lists.only)) return Error{"--only: " + *problem};
    if (lists.only.empty()) return Error{"--only: " + file + " has no globs, so nothing would be traced"};
  }
  if (!choice.min_instructions.empty()) {
    lists.min_instructions = format::parse_min_instructions(choice.min_instructions);
    if (!lists.min_instructions)
      return Error{"--min-instructions " + choice.min_instructions + ": a number up to 1000000 is needed"};
  }
  if (choice.carried_lists != "0" && choice.carried_lists != "1")
    return Error{"carried-lists=" + choice.carried_lists + ": 0 or 1 is needed"};
  // What is looked for as it stands and is in no name would leave nothing out without a word.
  for (const std::string& pattern : choice.not_functions)
    if (const symbols::FunctionFilter filter({pattern}); !filter.complaint().empty())
      fail({"--not-function leaves out names that have '" + pattern + "' in them as it stands" + filter.complaint()});
  auto made = collect::FunctionChoice::make(symbols::FunctionFilter(choice.functions, choice.not_functions),
                                            std::move(lists), choice.carried_lists == "1");
  if (!made) return made;
  made->keep(choice.keep);
  made->note(collect::ValueChoice(choice.arguments, choice.returned));
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
std::string explain_none(const symbols::FunctionFilter& filter, const std::set<std::string>& names) {
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
  for (const reader::Problem& p : run.problems) fail({p.message});
  for (const auto& u : run.untraced) fail({fmt::format("{}: {} {}", missing, u.program, u.reason)});
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
    fail({explain_none(launch.choice.filter(), run.names_off)});
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

int prepare_launch(const ProgramOptions& options, const std::vector<std::string>& entries,
                   const std::vector<std::string>& command, const char* subcommand, collect::LaunchOptions& launch) {
  Choice choice;
  launch.runtime_options = all_options(options, entries, choice);
  if (options.user) {
    auto user = collect::User::find(*options.user);
    if (!user) return usage_error("--user " + *options.user + ": " + user.error().message, subcommand);
    launch.user = std::move(*user);
  }
  auto made = make_choice(choice);
  if (!made) return usage_error(made.error().message, subcommand);
  launch.choice = std::move(*made);
  auto watch = watch_options(choice.watch);
  if (!watch) return usage_error(watch.error().message, subcommand);
  launch.watch = std::move(*watch);
  if (!launch.watch.rules.empty() && launch.runtime_options.find("kept-memory=") == std::string::npos)
    append_option(launch.runtime_options, "kept-memory=256M");
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
  const auto rights = launch.user ? launch.user->rights : symbols::Credentials{geteuid(), getegid()};
  if (const Status traceable = collect::check_traceable(*program, rights, launch.may_be_static); !traceable)
    return fail(traceable.error());
  auto runtime = find_runtime();
  if (!runtime) return fail(runtime.error());
  if (const collect::DeadSleds& sleds = program->dead_sleds; sleds.dead != 0)
    fail(
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
    auto library = collect::LibraryChoice::parse(text);
    if (!library) return usage_error("--library " + library.error().message, subcommand);
    launch.plain.libraries.push_back(std::move(*library));
  }
  launch.choice.name_libraries(launch.plain.libraries);
  if (!choice.min_instructions.empty())
    launch.plain.min_instructions = *format::parse_min_instructions(choice.min_instructions);
  return kExitOk;
}

void add_program_options(Command command, ProgramOptions& options) {
  in_group(command, "Which functions", [&] {
    command.add_option("-f,--function", options.functions, "Trace only functions whose demangled name matches")
        .type_name("REGEX")
        .allow_extra_args(false);
    command.add_option("--not-function", options.not_functions, "Do not trace functions whose demangled name matches")
        .type_name("REGEX")
        .allow_extra_args(false);
    command
        .add_option("--no-trace", options.no_trace,
                    "Do not trace functions that a glob in FILE (one a line) matches: by demangled name, or with a "
                    "slash in it by source path")
        .type_name("FILE")
        .allow_extra_args(false);
    command.add_option("--only", options.only, "Trace only functions that a glob in FILE matches")
        .type_name("FILE")
        .allow_extra_args(false);
    command
        .add_option("--min-instructions", options.min_instructions,
                    "Do not trace functions of fewer machine instructions that have no loop (default 12 in code "
                    "that was not built for tracing, else 0)")
        .type_name("N");
    command.add_flag("--no-carried-lists", options.no_carried_lists,
                     "Ignore the lists that programs carry, given to the compiler as --karst-no-trace= and the like");
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
  in_group(command, "Which processes", [&] {
    command
        .add_option("--user", options.user,
                    "Run the program as this user, with the user's groups and HOME; for root, as under sudo")
        .type_name("NAME");
    command.add_flag("--no-follow", options.no_follow, "Trace the program alone, not the processes that it makes");
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
