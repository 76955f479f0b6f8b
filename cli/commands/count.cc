// SPDX-License-Identifier: MIT
#include "cli/commands/count.h"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "answers/programs.h"
#include "base/json.h"
#include "base/output.h"
#include "choice/function_filter.h"
#include "cli/command.h"
#include "cli/commands/answer.h"
#include "cli/input/trace_input.h"
#include "cli/text/help.h"
#include "cli/text/table.h"
#include "cli/text/text.h"
#include "collect/launch/launch.h"
#include "collect/record/counts.h"
#include "format/options.h"

namespace karst::cli {
namespace {

/// Text for people: to a screen, or of any width to a file. The exit status.
int print_text(const Answer& answer, const CountOptions& options, bool to_screen, Output& out) {
  if (to_screen) {
    Screen screen(options.answer.text);
    if (const Status printed = answer.print_table(screen); !printed) return fail(printed.error());
    return screen.finish();
  }
  const Result<Table> table = answer.table(true);
  if (!table) return fail(table.error());
  for (const std::string& line : table->lines(0)) out.append(line + "\n");
  return kExitOk;
}

/// A glob (format/filter_list.h) that matches this name alone.
std::string glob_of(const std::string& name) {
  std::string glob;
  for (const char c : name) {
    if (std::string_view("\\*?[/#").find(c) != std::string_view::npos) glob += '\\';
    glob += c;
  }
  return glob;
}

void print_suggestion(const collect::Counts& counts, const CountOptions& options, double share, double cpu_ns,
                      Output& out) {
  const double call_ns = collect::call_cost_ns();
  const collect::Suggestion s = collect::suggest(counts, share, call_ns, cpu_ns);
  out.append(
      fmt::format("# Functions to leave out, so that tracing costs less than {} of the program's CPU time:\n"
                  "# for --karst-no-trace= at compile time, or --no-trace of karst run.\n"
                  "# Estimated: {} calls in {}, at {:.1f} ns a call, are {:.1f}%; without these, {:.1f}%.\n",
                  *options.suggest, count_text(counts.calls), duration_text(static_cast<std::uint64_t>(cpu_ns)),
                  call_ns, 100 * s.share_now, 100 * s.share_then));
  if (s.share_then >= share)
    out.append("# It cannot be less: what is left is marked KARST_ALWAYS, which lists do not leave out.\n");
  for (const collect::FunctionCount* f : s.functions)
    out.append(fmt::format("{}  # {} calls\n", glob_of(printable(f->name)), count_text(f->calls)));
}

}  // namespace

void add_count_options(Command command, CountOptions& options) {
  in_group(command, kCountGroup, [&] {
    command.add_flag("--count", options.count,
                     "Count the calls of each function instead of recording them: exactly, for a tenth of the cost. "
                     "The counts go to standard output, or to --output; no trace is written");
    command.add_option("--show", options.show, "Only functions whose demangled name matches").type_name("REGEX");
    command
        .add_option("--suggest", options.suggest,
                    "Write a list of functions to leave out of tracing, so that it costs less than SHARE, like 5%")
        .type_name("SHARE");
    add_answer_options(command, options.answer, answers::counted_functions(), "functions", "calls", 0);
  });
}

int count_calls(const CountOptions& options, const ProgramOptions& program, const std::string& output,
                const std::vector<std::string>& command) {
  std::uint32_t ppm = 0;
  if (options.suggest && !format::parse_budget(options.suggest->c_str(), ppm))
    return usage_error("--suggest " + *options.suggest + ": a share of time from 0.1% to 100% is needed, like 5%",
                       "run");
  if (options.suggest && !options.answer.is_text())
    return usage_error("--suggest makes a list of its own: it takes no --format", "run");
  const choice::FunctionFilter show(options.show ? std::vector{*options.show} : std::vector<std::string>());
  collect::LaunchOptions launch;
  const auto given = program.flags.read();
  if (!given) return usage_error(given.error().message, "run");
  if (const int wrong = prepare_launch(program, *given, command, "run", launch); wrong != 0) return wrong;
  launch.runtime_options.count = true;
  auto out = Output::create(output.empty() ? "-" : output);
  if (!out) return fail(out.error());
  auto ran = collect::launch(launch);
  if (!ran) return fail(ran.error());

  const int status = exit_status(ran->wait_status);
  const int failed = status != 0 ? status : kExitFailed;
  if (!say_how_it_ran(launch, *ran, "count", "not counted")) return status_without_trace(launch, *ran);
  const collect::Counts counts = collect::count_calls(ran->processes, launch.resolve);
  for (const reader::Problem& p : counts.problems) say(p.message);
  if (counts.uncounted != 0)
    say(count_text(counts.uncounted) + " calls were not counted: there was no memory for their counters");
  std::vector<answers::CountedFunctionRow> rows;
  for (const collect::FunctionCount& f : counts.functions)
    if (show.keeps(f.name)) rows.push_back({f.name, f.module, f.file, f.line, f.calls, counts.calls});
  const Answer answer(answers::counted_functions(), options.answer, addresses(rows));
  if (options.suggest) {
    print_suggestion(counts, options, ppm / 1e6, ran->cpu_ns, *out);
  } else if (!options.answer.is_text()) {
    write_answer(options.answer, answer, *out, [&](Json& json) {
      json.field("calls", counts.calls).field("uncounted_calls", counts.uncounted);
      json.field("processes", counts.processes).key("cpu_ns").value(ran->cpu_ns, 0);
    });
  } else if (print_text(answer, options, output.empty(), *out) != kExitOk) {
    return failed;
  }
  if (const Status done = out->finish(); !done) {
    fail(done.error());
    return failed;
  }
  say(fmt::format("{}, {} of {}", plural(counts.processes, "process", "es"), plural(counts.calls, "call"),
                  plural(counts.functions.size(), "function")));
  return status;
}

}  // namespace karst::cli
