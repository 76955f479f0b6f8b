#include "cli/commands/count.h"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/output.h"
#include "choice/function_filter.h"
#include "cli/command.h"
#include "cli/input/trace_input.h"
#include "cli/text/csv.h"
#include "cli/text/help.h"
#include "cli/text/table.h"
#include "cli/text/text.h"
#include "collect/launch/launch.h"
#include "collect/record/counts.h"
#include "format/options.h"

namespace karst::cli {
namespace {

std::string base_name(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

using Shown = std::vector<const collect::FunctionCount*>;

Table table_of(const collect::Counts& counts, const Shown& shown) {
  Table table({{"calls", "calls", false, true, 0, 15}, {"share", "share", false, true, 1, 7}, {"function", "function"}},
              Shorten::kName);
  for (const collect::FunctionCount* f : shown) {
    std::string more = fmt::format("  [{}]", printable(base_name(f->module)));
    if (!f->file.empty()) more += fmt::format("  {}:{}", printable(f->file), f->line);
    const double share = 100.0 * static_cast<double>(f->calls) / static_cast<double>(counts.calls);
    table.add({count_text(f->calls), fmt::format("{:.2f}%", share), printable(f->name)}, std::move(more));
  }
  return table;
}

void print_csv(const Shown& shown, Output& out) {
  out.append("function,module,file,line,calls\n");
  for (const collect::FunctionCount* f : shown)
    out.append(fmt::format("{},{},{},{},{}\n", csv_field(f->name), csv_field(f->module), csv_field(f->file), f->line,
                           f->calls));
}

void print_json(const collect::Counts& counts, const Shown& shown, double cpu_ns, Output& out) {
  Json json;
  json.open('{').key("functions").open('[');
  for (const collect::FunctionCount* f : shown) {
    json.line().open('{').field("function", f->name).field("module", f->module).field("file", f->file);
    json.field("line", f->line).field("calls", f->calls).close('}').flush(out);
  }
  json.line().close(']').field("calls", counts.calls).field("uncounted_calls", counts.uncounted);
  json.field("processes", counts.processes).key("cpu_ns").value(cpu_ns, 0).close('}').flush(out);
  out.append("\n");
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
    add_format_options(command, options.format, {"text", "json", "csv"});
    command.add_option("--show", options.show, "Only functions whose demangled name matches").type_name("REGEX");
    command.add_option("-n,--limit", options.limit, "Only the N functions called most")
        .type_name("N")
        .check(positive());
    command
        .add_option("--suggest", options.suggest,
                    "Write a list of functions to leave out of tracing, so that it costs less than SHARE, like 5%")
        .type_name("SHARE");
    add_text_options(command, options.text);
  });
}

int count_calls(const CountOptions& options, const ProgramOptions& program, const std::string& output,
                const std::vector<std::string>& command) {
  std::uint32_t ppm = 0;
  if (options.suggest && !format::parse_budget(options.suggest->c_str(), ppm))
    return usage_error("--suggest " + *options.suggest + ": a share of time from 0.1% to 100% is needed, like 5%",
                       "run");
  if (options.suggest && !options.format.empty() && options.format != "text")
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
  Shown shown;
  for (const collect::FunctionCount& f : counts.functions)
    if (show.keeps(f.name) && (options.limit == 0 || shown.size() < options.limit)) shown.push_back(&f);
  const double cpu_ns = ran->cpu_ns;
  if (options.suggest) {
    print_suggestion(counts, options, ppm / 1e6, cpu_ns, *out);
  } else if (options.format == "json") {
    print_json(counts, shown, cpu_ns, *out);
  } else if (options.format == "csv") {
    print_csv(shown, *out);
  } else if (output.empty()) {
    Screen screen(options.text);
    table_of(counts, shown).print(screen);
    if (screen.finish() != kExitOk) return failed;
  } else {
    for (const std::string& line : table_of(counts, shown).lines(0)) out->append(line + "\n");
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
