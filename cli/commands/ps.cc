// karst ps: which processes are traced, or one of them in detail.
#include <fmt/format.h>
#include <unistd.h>

#include <memory>

#include "base/output.h"
#include "cli/command.h"
#include "cli/commands/live.h"
#include "cli/commands/process_views.h"
#include "cli/input/target.h"
#include "cli/input/trace_input.h"
#include "cli/text/table.h"
#include "cli/text/text.h"

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
  if (options.json) {
    Output out = Output::to_stdout();
    Json json;
    json.open('{').key("processes").open('[');
    for (const collect::Attached& a : all) write_live(json.line(), a, live_facts(a));
    json.close(']').close('}');
    out.append(json.take() + "\n");
    return finish_output(out);
  }
  Screen screen(options.text);
  if (all.empty()) {
    screen.output().append("no traced process\n");
    return screen.finish();
  }
  Table table({{"pid", "pid", false, true, 0, 8},
               {"user", "user", true, geteuid() == 0, 4, 10},
               {"state", "state", true, true, 0, 22},
               {"threads", "threads", false, true, 5, 7},
               {"functions", "functions", false, true, 3, 15},
               {"cost", "cost", false, true, 1, 7},
               {"calls", "calls/s", false, true, 2, 12},
               {"name", "name", true}},
              Shorten::kEnd);
  for (const collect::Attached& a : all) {
    const LiveFacts facts = live_facts(a);
    table.add({std::to_string(a.process.pid), printable(collect::user_name(a.process.uid)), state_text(a),
               std::to_string(facts.threads), fmt::format("{}/{}", facts.control.patched, facts.control.functions),
               cost_text(facts.control), count_text(facts.calls_per_second), printable(a.process.name)});
  }
  table.print(screen);
  return screen.finish();
}

int ps(const Options& options) {
  if (options.levels) return list_or_set_levels(options.of);
  if (!options.of.functions.empty()) return usage_error("--function goes with --levels", "ps");
  if (!options.of.level.empty()) return usage_error("'" + options.of.level + "' is one argument too many", "ps");
  const bool one = options.one || !options.of.target.empty();
  return one ? show_process(options.of.target, options.of.json, options.of.text) : list(options.of);
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
  command.add_flag("-j,--json", options->of.json, "Print JSON");
  add_text_options(command, options->of.text);
  command.callback([options, &status] { status = ps(*options); });
}

}  // namespace karst::cli
