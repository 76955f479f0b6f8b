// SPDX-License-Identifier: MIT
// karst ps: which processes are traced, or one of them in detail.
#include <fmt/format.h>

#include <memory>

#include "answers/programs.h"
#include "cli/command.h"
#include "cli/commands/answer.h"
#include "cli/commands/live.h"
#include "cli/commands/process_views.h"
#include "cli/input/target.h"
#include "cli/input/trace_input.h"

namespace karst::cli {
namespace {

struct Options {
  LevelOptions of;      // the process, how it is shown; with --levels: which functions
  bool levels = false;  // its functions with handlers
  bool one = false;     // one process, though none is named: a choice on a terminal
};

int list(const LevelOptions& options) {
  std::vector<Error> refused;
  const auto all = collect::find_traced(&refused);
  for (const Error& error : refused) say(error.message);
  if (all.empty() && options.answer.is_text()) {
    Screen screen(options.answer.text);
    screen.output().append("no traced process\n");
    return screen.finish();
  }
  std::vector<LiveRow> rows;
  for (const collect::Attached& a : all) rows.push_back({a, live_facts(a)});
  return print_answer(options.answer, Answer(live_processes(), options.answer, addresses(rows)));
}

int ps(const Options& options) {
  if (options.levels) return list_or_set_levels(options.of);
  if (!options.of.functions.empty()) return usage_error("--function goes with --levels", "ps");
  if (!options.of.level.empty()) return usage_error("'" + options.of.level + "' is one argument too many", "ps");
  const bool one = options.one || !options.of.target.empty();
  if (one && options.of.answer.format == "csv") return usage_error("one process is text or json", "ps");
  return one ? show_process(options.of.target, options.of.answer.format == "json", options.of.answer.text)
             : list(options.of);
}

}  // namespace

void register_ps(Command app, int& status) {
  auto options = std::make_shared<Options>();
  Command command =
      app.add_subcommand("ps", "List traced processes, or show one: what is traced, what it costs, its history");
  command.footer(
      "  karst ps                list them: whether tracing is on, calls a second\n"
      "  karst ps PID            one of them in detail\n"
      "  karst ps PID --levels   its functions with handlers (karst_handle() in\n"
      "                          karst/karst.h), their calls and levels\n\n"
      "Processes are only looked at. Listed are your own, for root all. 'partly': some\n"
      "functions are switched off, or kept out by the budget. 'cost' is the share of\n"
      "the program's time that tracing takes, as far as it is known. 'no control': the\n"
      "process can be looked into, but not switched while it runs. Of one process,\n"
      "numbers of calls are of the last second, or of as much of it as is kept.");
  command.add_option("PID", options->of.target, "Process, by number or by name (of its executable)");
  command.add_option("LEVEL", options->of.level, "").unlisted();  // of karst level
  command.add_flag("--one", options->one, "").unlisted();         // karst status is this
  command.add_flag("--levels", options->levels, "List its functions with handlers, and their levels");
  command.add_option("--function", options->of.functions, "--levels: only functions whose names match")
      .type_name("REGEX");
  add_answer_options(command, options->of.answer, {&live_processes(), &answers::handled_functions()}, "rows", "", 0);
  command.callback([options, &status] { status = ps(*options); });
}

}  // namespace karst::cli
