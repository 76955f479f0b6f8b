// karst ps: which processes are traced.
#include <fmt/format.h>
#include <unistd.h>

#include <memory>

#include "base/output.h"
#include "cli/command.h"
#include "cli/live.h"
#include "cli/table.h"
#include "cli/target.h"
#include "cli/text.h"
#include "cli/trace_input.h"

namespace karst::cli {
namespace {

struct Options {
  bool json = false;
  TextOptions text;
};

int ps(const Options& options) {
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

}  // namespace

void register_ps(Command app, int& status) {
  auto options = std::make_shared<Options>();
  Command command =
      app.add_subcommand("ps", "List traced processes: whether tracing is on, what it costs, calls a second");
  command.footer(
      "Your own processes, root's view: all. 'partly': some functions are switched\n"
      "off, or kept out by the budget. 'cost' is the share of the program's time that\n"
      "tracing takes, as far as it is known. 'no control': the process can be looked\n"
      "into, but not switched while it runs.");
  command.add_flag("-j,--json", options->json, "Print JSON");
  add_text_options(command, options->text);
  command.callback([options, &status] { status = ps(*options); });
}

}  // namespace karst::cli
