// karst ps: which processes are traced.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "base/output.h"
#include "cli/command.h"
#include "cli/live.h"
#include "cli/target.h"
#include "cli/text.h"
#include "cli/trace_input.h"

namespace karst::cli {
namespace {

struct Options {
  bool json = false;
};

int ps(const Options& options) {
  std::vector<Error> refused;
  const auto all = collect::find_traced(&refused);
  for (const Error& error : refused) fail(error);
  Output out = Output::to_stdout();
  const bool root = geteuid() == 0;
  if (options.json) {
    Json json;
    json.open('{').key("processes").open('[');
    for (const collect::Attached& a : all) write_live(json.line(), a, live_facts(a));
    json.close(']').close('}');
    out.append(json.take() + "\n");
    return finish_output(out);
  }
  if (all.empty()) {
    out.append("no traced process\n");
    return finish_output(out);
  }
  out.append(fmt::format("{:>8}  {}{:<16} {:<22} {:>7} {:>15} {:>7} {:>12}\n", "pid", root ? "user       " : "", "name",
                         "state", "threads", "functions", "cost", "calls/s"));
  for (const collect::Attached& a : all) {
    const LiveFacts facts = live_facts(a);
    out.append(fmt::format("{:>8}  {}{:<16} {:<22} {:>7} {:>15} {:>7} {:>12}\n", a.process.pid,
                           root ? fmt::format("{:<11}", printable(collect::user_name(a.process.uid))) : "",
                           printable(a.process.name), state_text(a), facts.threads,
                           fmt::format("{}/{}", facts.control.patched, facts.control.functions),
                           cost_text(facts.control), count_text(facts.calls_per_second)));
  }
  return finish_output(out);
}

}  // namespace

void register_ps(CLI::App& app, int& status) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("ps", "List traced processes: whether tracing is on, what it costs, calls a second");
  command->footer(
      "Your own processes, root's view: all. 'partly': some functions are switched off, or kept out by the budget.\n"
      "'cost' is the share of the program's time that tracing takes, as far as it is known. 'no control': the process\n"
      "can be looked into, but not switched while it runs.");
  command->add_flag("--json", options->json, "Print JSON");
  command->callback([options, &status] { status = ps(*options); });
}

}  // namespace karst::cli
