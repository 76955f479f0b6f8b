// SPDX-License-Identifier: MIT
#include "cli/commands/run_options.h"

#include <fmt/format.h>

#include "cli/commands/samples.h"
#include "cli/input/patched.h"
#include "cli/text/help.h"
#include "format/option_table.h"

namespace karst::cli {
namespace {

/// Heading of --sched, --sample and the like.
constexpr const char* kStateGroup = "Running and waiting";

}  // namespace

Status check_counting(const RunOptions& options, const Command& given) {
  if (!options.counting.count) {
    const std::string of_counts = given.given_of(kCountGroup);
    return of_counts.empty() ? Status(Unit{}) : Error{of_counts + " goes with --count alone"};
  }
  for (const char* group : {format::kTraceOptions, format::kCostOptions, format::kValueOptions, format::kMomentOptions,
                            format::kBadEndOptions, kStateGroup})
    if (const std::string of_traces = given.given_of(group, "--output"); !of_traces.empty())
      return Error{of_traces + " and --count do not go together: no trace is written"};
  return options.exec ? Status(Error{"--exec and --count do not go together"}) : Status(Unit{});
}

void add_run_options(Command& command, RunOptions& options) {
  command.footer(
      "Usage: karst run [OPTIONS] [--] PROGRAM [ARG...]\n\n"
      "Examples:\n"
      "  karst run ./app --its-own-option          writes app.karst\n"
      "  karst run --slowest 'serve.*:3' ./server  keeps the three slowest requests\n"
      "  karst run --budget 5% -o now.karst make   what make starts, at 5% cost\n"
      "  karst run --count ./app                   counts of calls, and no trace\n\n"
      "PROGRAM may be any; built with karst-gcc or karst-g++, all its functions can be\n"
      "seen, and at the least cost. One that was not is patched as it is loaded, at a\n"
      "budget of 5%. Its standard streams and signals are its own. karst run ends with\n"
      "its exit status (127: not found, 128+n: killed by signal n) and says on stderr\n"
      "what was kept. Ctrl-C ends the program and keeps the trace. While the trace is\n"
      "being written Ctrl-C leaves names out, which 'karst resolve' adds; a second one\n"
      "ends karst. A trace that FILE holds already is kept as FILE.old.\n\n"
      "These may also stand in the environment, as in\n"
      "KARST_OPTIONS=\"memory=256M,off=1,no-trace=list.txt\": " +
      std::string(format::kRuntimeOptionNames.text) + ", " + format::kKarstOptionNames.text + ".");
  in_group(command, format::kTraceOptions, [&] {
    command
        .add_option("-o,--output", options.output,
                    "Trace file to write (default: PROGRAM.karst); --count: where the counts go")
        .type_name("FILE");
    options.program.flags.add(command, format::kTraceOptions);
    command.add_flag("--no-source", options.no_source, "Leave the source text of the functions out of the trace");
    options.all.add(command);
    command.add_flag(fmt::format("--live{{{}}}", kLiveToStderr), options.live,
                     "Print the calls while they are made, as karst tail does, on stderr; --live=FILE: into FILE");
    command.add_flag("--view", options.view,
                     "Look at the trace in the browser then, as karst view does; with --all while the program runs");
  });
  in_group(command, format::kCostOptions, [&] {
    options.program.flags.add(command, format::kCostOptions);
    command
        .add_option("--fail-overhead", options.fail_overhead,
                    "Exit with 3 if tracing cost more than this share of the program's CPU time, like 5%; a program "
                    "that fails keeps its own status")
        .type_name("SHARE");
    command.add_flag(
        fmt::format("--fibers{{{}}}", kFibersOfBoost), options.fibers,
        "Show fibers of Boost.Context and Boost.Fiber each in a lane of its own, if the program has "
        "libboost_context as a shared library and does not say itself what its fibers are; "
        "--fibers=stack: all stacks that the program switches to, found by the stack pointer. That is "
        "so for programs with Boost.Context, libco, minicoro, PHP or Ruby in them; --fibers=none: it is not");
    command.add_flag(fmt::format("--coroutines{{{}}}", kAllCoroutines), options.coroutines,
                     "Note at each resumption of a C++20 coroutine which one it is, for 'karst flows'. That is so for "
                     "programs whose symbols have coroutines; with this also where only libraries have some; "
                     "--coroutines=none: it is not");
  });
  in_group(command, format::kValueOptions, [&] {
    options.program.flags.add(command, format::kValueOptions);
    add_system_option(command, options.system);
    command
        .add_option("--plugin", options.plugins,
                    "Load this shared library with the program, for code of its own at functions' enter and leave "
                    "(karst_handle in karst/karst.h)")
        .type_name("FILE")
        .allow_extra_args(false);
    command
        .add_option("--probes", options.probes,
                    "Note each time that a probe is passed which the program's or a library's authors put into it "
                    "(sys/sdt.h), with its values: like 'python:*'. Values may be named and typed: "
                    "'db:query(id:uint,text:str)'; int, hex and type (of a std::type_info) are the other types. "
                    "'karst places --probes FILE' lists what FILE has")
        .type_name("PROVIDER:NAME")
        .allow_extra_args(false);
  });
  in_group(command, format::kMomentOptions, [&] {
    options.program.flags.add(command, format::kMomentOptions);
    command
        .add_option("--trigger", options.triggers,
                    "Keep what all threads did before PLACE was reached, with the arguments in its registers: a "
                    "function, traced or not, FILE:LINE, 0xADDRESS in the executable, MODULE+0xADDRESS; :N behind it "
                    "for the first N times (default 1). 'karst info' lists what was kept, --kept N shows it")
        .type_name("PLACE")
        .allow_extra_args(false);
    command.add_flag("--multi", options.multi, "A trigger's name may be that of several functions");
    command.add_option("--last", options.last, "How much of what came before a trigger is kept (default 200ms)")
        .type_name("TIME");
  });
  in_group(command, format::kBadEndOptions, [&] { options.program.flags.add(command, format::kBadEndOptions); });
  add_program_options(command, options.program);
  in_group(command, format::kProcessOptions, [&] {
    command.add_flag("--exec", options.exec,
                     "The program takes karst's place: it has the process number that karst was started with, and its "
                     "end and status are seen at once. Another process of karst, which is not its child, writes the "
                     "trace after that; its stderr is open until then");
  });
  in_group(command, kStateGroup, [&] {
    add_state_options(command, options.states);
    add_sample_option(command, options.sample,
                      " (default: 1000 of a program of which nothing can be traced; 0: never)");
  });
  add_count_options(command, options.counting);
}

}  // namespace karst::cli
