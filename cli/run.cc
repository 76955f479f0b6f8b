// karst run: runs a program traced and writes its trace.
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/progress.h"
#include "cli/states.h"
#include "cli/text.h"
#include "collect/choose_functions.h"
#include "collect/launch.h"
#include "collect/program.h"
#include "collect/recording.h"
#include "collect/trace_writer.h"
#include "format/filter_list.h"
#include "format/options.h"
#include "symbols/function_filter.h"

namespace karst::cli {
namespace {

constexpr int kNotFound = 127;
constexpr int kNotExecutable = 126;

struct RunOptions {
  std::string output;
  std::optional<std::string> memory;
  std::optional<std::string> budget;
  bool view = false;
  bool off = false;
  bool prefault = false;
  bool no_follow = false;
  bool no_wait = false;
  bool stats = false;
  bool no_source = false;
  std::vector<std::string> functions;
  std::vector<std::string> not_functions;
  std::vector<std::string> no_trace;  // files
  std::vector<std::string> only;
  std::optional<std::string> min_instructions;
  std::vector<std::string> keep;
  bool no_carried_lists = false;
  std::vector<std::string> map_paths;
  std::vector<std::string> debug_dirs;
  StateArguments states;
};

/// What the command line and the environment say about which functions to trace.
struct Choice {
  std::vector<std::string> functions;
  std::vector<std::string> not_functions;
  std::vector<std::string> no_trace;
  std::vector<std::string> only;
  std::vector<std::string> keep;
  std::string min_instructions;
  std::string carried_lists = "1";
};

/// Entries of KARST_OPTIONS, unescaped (the grammar is that of runtime/core/options.h).
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
std::string runtime_options(const RunOptions& options, Choice& choice) {
  std::string all;
  for (const std::string& entry : split_options(std::getenv("KARST_OPTIONS")))
    if (!take_choice(entry, choice) && !entry.starts_with("session=")) append_option(all, entry);
  if (options.memory) append_option(all, "memory=" + *options.memory);
  if (options.budget) append_option(all, "budget=" + *options.budget);
  if (options.off) append_option(all, "off=1");
  if (options.prefault) append_option(all, "prefault=1");
  if (options.no_follow) append_option(all, "follow=0");
  if (options.stats) append_option(all, "stats=1");
  append(choice.functions, options.functions);
  append(choice.not_functions, options.not_functions);
  append(choice.no_trace, options.no_trace);
  append(choice.only, options.only);
  append(choice.keep, options.keep);
  if (options.min_instructions) choice.min_instructions = *options.min_instructions;
  if (options.no_carried_lists) choice.carried_lists = "0";
  return all;
}

Result<collect::FunctionChoice> make_choice(const Choice& choice) {
  auto filter = symbols::FunctionFilter::compile(choice.functions, choice.not_functions);
  if (!filter) return filter.error();
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
  auto made = collect::FunctionChoice::make(std::move(*filter), std::move(lists), choice.carried_lists == "1");
  if (!made) return made;
  if (const Status kept = made->keep(choice.keep); !kept) return kept.error();
  return made;
}

bool is_budget(const std::string& text) {
  std::uint32_t ppm = 0;
  return format::parse_budget(text.c_str(), ppm);
}

bool is_size(const std::string& text) {
  std::uint64_t bytes = 0;
  return format::parse_memory_size(text.c_str(), bytes);
}

/// libkarst.so beside this program: ../lib as installed and as built.
Result<std::string> find_runtime() {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  const auto runtime = self.parent_path().parent_path() / "lib" / "libkarst.so.0";
  if (error || !std::filesystem::exists(runtime, error))
    return Error{"the tracing runtime " + runtime.string() + " is missing; is Karst installed whole?"};
  return runtime.string();
}

std::string plural(std::uint64_t count, const char* what, const char* ending = "s") {
  return count_text(count) + " " + what + (count == 1 ? "" : ending);
}

std::string summary_line(const std::string& file, const collect::RecordingSummary& s) {
  std::string line = fmt::format("{}: {}, {}, {} kept over {}", file, plural(s.processes, "process", "es"),
                                 plural(s.threads, "thread"), plural(s.calls, "call"), duration_text(s.span_ns));
  // A call is two events; those cut at the edge of what is kept make this inexact by a few.
  line += s.overwritten == 0 ? std::string(", none overwritten")
                             : fmt::format(", about {} overwritten (memory was full; see --memory)",
                                           plural(s.overwritten / 2, "call"));
  if (s.lost != 0) line += fmt::format(", {} lost", plural(s.lost, "event"));
  return line;
}

constexpr const char* kHowToBuild =
    "Build it with karst-gcc or karst-g++ in the compiler's place, for example\n"
    "  karst-g++ -O2 -g app.cpp -o app      make CXX=karst-g++ CC=karst-gcc      cmake -DCMAKE_CXX_COMPILER=karst-g++";

/// Why there is nothing to write.
std::string explain_nothing(const std::string& name, const collect::Program& program,
                            const collect::LaunchResult& run) {
  if (run.impossible) return "no trace was written";
  if (!program.interpreter.empty())
    return fmt::format("{} is a script, run by {}, and nothing that it ran has sleds, so there is no trace.\n{}", name,
                       program.interpreter, kHowToBuild);
  if (!run.reached && program.has_sleds)
    return fmt::format("{} did not load the tracing runtime (LD_PRELOAD was not honoured), so there is no trace", name);
  return fmt::format("{} has no sleds, nor has any library or program that it loaded, so there is no trace.\n{}", name,
                     kHowToBuild);
}

int exit_status(std::int32_t wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

collect::RecordingSummary write_trace(const RunOptions& options, const collect::LaunchOptions& launch,
                                      collect::LaunchResult& ran, const std::string& output,
                                      collect::TraceWriter& writer) {
  Progress progress("writing " + printable(output), collect::work_of(ran.processes));
  return collect::record(ran.processes, ran.pairs, {!options.no_source, launch.resolve, &progress.done, &ran.states}, writer);
}

int run(const RunOptions& options, const std::vector<std::string>& command) {
  if (command.empty()) return usage_error("which program shall be run?", "run");
  if (options.memory && !is_size(*options.memory))
    return usage_error("--memory " + *options.memory + ": a size from 64K to 64G is needed, like 256M", "run");
  if (options.budget && !is_budget(*options.budget))
    return usage_error("--budget " + *options.budget + ": a share of time from 0.1% to 100% is needed, like 5%", "run");
  collect::LaunchOptions launch;
  Choice choice;
  launch.runtime_options = runtime_options(options, choice);
  auto made = make_choice(choice);
  if (!made) return usage_error(made.error().message, "run");
  launch.choice = std::move(*made);
  for (const std::string& text : options.map_paths) {
    auto mapping = symbols::PathMapping::parse(text);
    if (!mapping) return usage_error(mapping.error().message, "run");
    launch.resolve.map_paths.push_back(std::move(*mapping));
  }
  // Before those of the environment.
  launch.resolve.debug.directories.insert(launch.resolve.debug.directories.begin(), options.debug_dirs.begin(),
                                          options.debug_dirs.end());

  auto states = state_options(options.states);
  if (!states) return usage_error(states.error().message, "run");
  launch.states = *states;

  auto program = collect::find_program(command[0]);
  if (!program) {
    fail({command[0] + ": there is no such program" + (command[0].find('/') == std::string::npos ? " in PATH" : "")});
    return kNotFound;
  }
  if (!program->executable) {
    fail({program->path.string() + " is not executable (chmod +x?)"});
    return kNotExecutable;
  }
  if (const Status traceable = collect::check_traceable(*program); !traceable) return fail(traceable.error());
  auto runtime = find_runtime();
  if (!runtime) return fail(runtime.error());
  launch.program = *program;
  launch.arguments = command;
  launch.runtime = *runtime;
  launch.wait = !options.no_wait;
  if (isatty(STDERR_FILENO) == 1)
    launch.on_left_behind = [](std::size_t count) {
      std::fprintf(stderr, "karst: waiting for %s that the program left behind; Ctrl-C writes the trace now\n",
                   plural(count, "traced process", "es").c_str());
    };

  const std::string output =
      options.output.empty() ? std::filesystem::path(command[0]).filename().string() + ".karst" : options.output;
  auto writer = collect::TraceWriter::create(output);  // finds an unwritable place before the program has run
  if (!writer) return fail(writer.error());
  auto ran = collect::launch(launch);
  if (!ran) return fail(ran.error());

  const int status = exit_status(ran->wait_status);
  const int failed = status != 0 ? status : kExitFailed;
  for (const reader::Problem& p : ran->problems) fail({p.message});
  if (ran->processes.empty()) {
    fail({explain_nothing(command[0], *program, *ran)});
    return failed;
  }
  const collect::RecordingSummary summary = write_trace(options, launch, *ran, output, *writer);
  if (const Status done = writer->finish(); !done) {
    fail(done.error());
    return failed;
  }
  if (ran->functions != 0 && ran->functions_off == ran->functions)
    fail({"the patterns and lists of functions to trace leave none"});
  for (const reader::Problem& p : summary.problems) fail({p.message});
  report_missing_states(options.states, ran->states.source);
  std::fprintf(stderr, "karst: %s\n", printable(summary_line(output, summary)).c_str());
  if (options.view) view_traces({output}, false, false);  // says itself what goes wrong; the status stays the program's
  return status;
}

}  // namespace

int split_program(const CLI::App& run, int argc, char** argv, std::vector<std::string>& program) {
  int at = 2;
  for (; at < argc; ++at) {
    const std::string_view word = argv[at];
    if (word == "--" || word == "-" || !word.starts_with('-')) break;
    const bool is_long = word.starts_with("--");
    const std::string name(word.substr(0, is_long ? word.find('=') : 2));
    const CLI::Option* option = run.get_option_no_throw(name);
    const bool whole = word == name;  // no value attached: --memory=1M, -oFILE
    if (option != nullptr && option->get_items_expected_max() > 0 && whole) ++at;
  }
  if (at > argc) return argc;  // the last option lacks its value: the parser says so
  program.assign(argv + (at < argc && std::string_view(argv[at]) == "--" ? at + 1 : at), argv + argc);
  return at;
}

void register_run(CLI::App& app, int& status, const std::vector<std::string>& program) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command = app.add_subcommand("run", "Run a program and trace its calls");
  command->footer(
      "Usage: karst run [OPTIONS] [--] PROGRAM [ARG...]\n\n"
      "PROGRAM, or libraries or programs that it starts, must be built with karst-gcc or karst-g++. Its standard\n"
      "streams and signals are its own; karst run ends with its exit status (127: not found, 128+n: killed by\n"
      "signal n) and says one line about the trace on stderr. Ctrl-C ends the program and keeps the trace.\n"
      "The options memory, budget, keep, off, prefault, stats, functions, not-functions, no-trace, only,\n"
      "min-instructions and carried-lists may also stand in the environment: "
      "KARST_OPTIONS=\"memory=256M,off=1,no-trace=list.txt\".");
  command->add_option("-o,--output", options->output, "Trace file to write (default: PROGRAM.karst)")
      ->type_name("FILE");
  command
      ->add_option(
          "--memory", options->memory,
          "Memory for the history of all threads of a process; when it is full, the oldest calls go (default 64M)")
      ->type_name("SIZE");
  command
      ->add_option("--budget", options->budget,
                   "Share of time that tracing may cost, like 5%: functions that cost most and tell least are left\n"
                   "out while it would be more, which the trace says")
      ->type_name("SHARE");
  command
      ->add_option("--keep", options->keep,
                   "A budget leaves no function out whose demangled name matches; nor one marked KARST_ALWAYS")
      ->type_name("REGEX")
      ->allow_extra_args(false);
  add_state_options(*command, options->states);
  command->add_flag("--off", options->off, "Start with tracing off: every sled stays a NOP");
  command->add_option("--functions", options->functions, "Trace only functions whose demangled name matches")
      ->type_name("REGEX")
      ->allow_extra_args(false);
  command->add_option("--not-functions", options->not_functions, "Do not trace functions whose demangled name matches")
      ->type_name("REGEX")
      ->allow_extra_args(false);
  command
      ->add_option(
          "--no-trace", options->no_trace,
          "Do not trace functions that a glob in FILE (one a line) matches: by demangled name, or with a slash\n"
          "in it by source path")
      ->type_name("FILE")
      ->allow_extra_args(false);
  command->add_option("--only", options->only, "Trace only functions that a glob in FILE matches")
      ->type_name("FILE")
      ->allow_extra_args(false);
  command
      ->add_option("--min-instructions", options->min_instructions,
                   "Do not trace functions of fewer machine instructions that have no loop")
      ->type_name("N");
  command->add_flag("--no-carried-lists", options->no_carried_lists,
                    "Ignore the lists that programs carry, given to the compiler as --karst-no-trace= and the like");
  command->add_flag("--no-source", options->no_source, "Leave the source text of the functions out of the trace");
  command
      ->add_option("--debug-dir", options->debug_dirs,
                   "Look for separate debug files in DIR too, as in /usr/lib/debug (also: KARST_DEBUG_DIR)")
      ->type_name("DIR")
      ->allow_extra_args(false);
  command->add_option("--map-path", options->map_paths, "Sources under FROM are under TO now")
      ->type_name("FROM=TO")
      ->allow_extra_args(false);
  command->add_flag("--no-follow", options->no_follow, "Trace the program alone, not the processes that it makes");
  command->add_flag(
      "--wait,!--no-wait", [options](std::int64_t count) { options->no_wait = count < 0; },
      "Wait for all traced processes (the default), or write the trace when the program itself has ended");
  command->add_flag(
      "--prefault", options->prefault,
      "Take all memory at start, for programs that forbid themselves system calls later (seccomp filters)");
  command->add_flag("--view", options->view, "Look at the trace in the browser then, as karst view does");
  command->add_flag("--stats", options->stats, "Let the runtime say how many sleds it found and how long that took");
  command->callback([options, &status, &program] { status = run(*options, program); });
}

}  // namespace karst::cli
