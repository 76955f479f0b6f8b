// karst report: time by function.
#include "analysis/report.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "base/json.h"
#include "base/output.h"
#include "cli/command.h"
#include "cli/csv.h"
#include "cli/progress.h"
#include "cli/text.h"
#include "cli/trace_input.h"
#include "reader/trace.h"

namespace karst::cli {
namespace {

struct Options {
  InputOptions input;
  std::string sort = "total";
  std::string format = "text";
  std::size_t limit = 0;  // 0: all
};

constexpr const char* kFooter = R"(Columns:
  total   time with the function on the stack; recursion counts once
  self    the same without the traced functions it called
  calls   behind the name '+N open': N of them with a begin or an end that is not known;
          '+N unwound', '+N jumped', '+N tail': ended by an exception, a longjmp, a tail call
  min mean p50 p99 max   of the complete calls; percentiles are exact (nearest rank)
Where the trace has thread states (karst run --sched), total and self are told apart:
  cpu       on a CPU
  runnable  could run, but had no CPU
  blocked   waited for something: a lock, a disk, another thread
  What is missing from the sum was not recorded; csv and json have it as unknown.
Threads add up: four threads busy for a second make four seconds.
csv and json give all times in whole nanoseconds.)";

std::string place(const analysis::FunctionReport& f) {
  if (f.file.empty()) return {};
  return f.line == 0 ? printable(f.file) : fmt::format("{}:{}", printable(f.file), f.line);
}

std::string base_name(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

// Total and self by state, in the order of kStateColumns.
std::array<std::uint64_t, 8> state_times(const analysis::FunctionReport& f) {
  const analysis::StateReport& t = f.total_states;
  const analysis::StateReport& s = f.self_states;
  return {t.cpu_ns, t.runnable_ns, t.blocked_ns, t.unknown_ns, s.cpu_ns, s.runnable_ns, s.blocked_ns, s.unknown_ns};
}
constexpr std::array<const char*, 8> kStateColumns = {"cpu_ns",          "runnable_ns",    "blocked_ns",
                                                      "unknown_ns",      "self_cpu_ns",    "self_runnable_ns",
                                                      "self_blocked_ns", "self_unknown_ns"};
constexpr bool shown_in_text(std::size_t column) { return column % 4 != 3; }

void print_text(const analysis::Report& report, const reader::Trace& trace, Output& out) {
  out.append(fmt::format("{}: {} calls by {} threads in {}\n", printable(trace.name()), count_text(report.calls),
                         count_text(report.threads), duration_text(report.span_ns)));
  out.append(fmt::format("{:>10} {:>10} {:>13} {:>10} {:>10} {:>10} {:>10} {:>10}", "total", "self", "calls", "min",
                         "mean", "p50", "p99", "max"));
  if (report.has_states) {
    out.append(fmt::format(" {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}", "cpu", "runnable", "blocked", "self cpu",
                           "s.runnable", "s.blocked"));
  }
  out.append("  function  [module]  file:line\n");
  for (const analysis::FunctionReport& f : report.functions) {
    const bool complete = f.open_calls < f.calls;
    auto of_complete = [&](std::uint64_t ns) { return complete ? duration_text(ns) : std::string("-"); };
    out.append(fmt::format("{:>10} {:>10} {:>13} {:>10} {:>10} {:>10} {:>10} {:>10}", duration_text(f.total_ns),
                           duration_text(f.self_ns), count_text(f.calls), of_complete(f.min_ns), of_complete(f.mean_ns),
                           of_complete(f.p50_ns), of_complete(f.p99_ns), of_complete(f.max_ns)));
    const auto states = state_times(f);
    for (std::size_t i = 0; report.has_states && i < states.size(); ++i) {
      if (shown_in_text(i)) out.append(fmt::format(" {:>10}", duration_text(states[i])));
    }
    out.append("  " + printable(f.name));
    if (!f.module.empty()) out.append(fmt::format("  [{}]", printable(base_name(f.module))));
    if (!f.file.empty()) out.append("  " + place(f));
    const std::pair<std::uint64_t, const char*> marked[] = {
        {f.open_calls, "open"}, {f.unwound_calls, "unwound"}, {f.jumped_calls, "jumped"}, {f.tail_calls, "tail"}};
    for (const auto& [count, how] : marked) {
      if (count != 0) out.append(fmt::format("  +{} {}", count_text(count), how));
    }
    out.append("\n");
  }
}

void print_csv(const analysis::Report& report, Output& out) {
  out.append(
      "name,module,file,line,calls,open_calls,unwound_calls,jumped_calls,tail_calls,total_ns,self_ns,min_ns,mean_ns,"
      "p50_ns,p99_ns,max_ns");
  for (const char* column : kStateColumns) {
    if (report.has_states) out.append(fmt::format(",{}", column));
  }
  out.append("\n");
  for (const analysis::FunctionReport& f : report.functions) {
    out.append(fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}", csv_field(f.name), csv_field(f.module),
                           csv_field(f.file), f.line, f.calls, f.open_calls, f.unwound_calls, f.jumped_calls,
                           f.tail_calls, f.total_ns, f.self_ns, f.min_ns, f.mean_ns, f.p50_ns, f.p99_ns, f.max_ns));
    for (const std::uint64_t ns : state_times(f)) {
      if (report.has_states) out.append(fmt::format(",{}", ns));
    }
    out.append("\n");
  }
}

void print_json(const analysis::Report& report, const reader::Trace& trace, Output& out) {
  Json json;
  json.open('{').key("functions").open('[');
  for (const analysis::FunctionReport& f : report.functions) {
    json.line().open('{').field("name", f.name).field("module", f.module).field("file", f.file).field("line", f.line);
    json.field("calls", f.calls).field("open_calls", f.open_calls).field("unwound_calls", f.unwound_calls);
    json.field("jumped_calls", f.jumped_calls).field("tail_calls", f.tail_calls).field("total_ns", f.total_ns);
    json.field("self_ns", f.self_ns).field("min_ns", f.min_ns).field("mean_ns", f.mean_ns).field("p50_ns", f.p50_ns);
    json.field("p99_ns", f.p99_ns).field("max_ns", f.max_ns);
    const auto states = state_times(f);
    for (std::size_t i = 0; report.has_states && i < states.size(); ++i) json.field(kStateColumns[i], states[i]);
    json.close('}').flush(out);
  }
  json.line().close(']').key("trace").open('{').field("file", trace.name()).field("threads", report.threads);
  json.field("calls", report.calls).field("events", report.events).field("span_ns", report.span_ns);
  json.field("complete", trace.complete()).field("out_of_order", report.out_of_order);
  json.field("unmatched_exits", report.unmatched_exits).field("missing_exits", report.missing_exits);
  json.field("unknown_ids", report.unknown_ids).field("missing_blocks", report.missing_blocks);
  json.close('}').close('}').flush(out);
  out.append("\n");
}

int report_command(const Options& options) {
  auto input = open_input(options.input);
  if (!input) return fail(input.error());
  const reader::Trace& trace = (*input)->trace;

  analysis::ReportBuilder builder(trace, (*input)->function_set());
  analysis::Report report;
  {
    Progress progress("adding up calls", (*input)->events);
    for (const reader::Thread* thread : (*input)->threads) {
      const reader::Calls calls = reader::rebuild_calls(trace, *thread);
      builder.add(*thread, calls);
      progress.done += calls.events;
    }
    report = builder.finish();
  }
  if (!report.has_states && (options.sort == "cpu" || options.sort == "runnable" || options.sort == "blocked")) {
    return fail({trace.name() +
                 " has no thread states to sort by: see 'karst info', and record with 'karst run --sched auto'"});
  }
  analysis::sort_report(report, options.sort == "self"       ? analysis::ReportOrder::kSelf
                                : options.sort == "calls"    ? analysis::ReportOrder::kCalls
                                : options.sort == "max"      ? analysis::ReportOrder::kMax
                                : options.sort == "cpu"      ? analysis::ReportOrder::kCpu
                                : options.sort == "runnable" ? analysis::ReportOrder::kRunnable
                                : options.sort == "blocked"  ? analysis::ReportOrder::kBlocked
                                                             : analysis::ReportOrder::kTotal);
  if (options.limit != 0 && report.functions.size() > options.limit) report.functions.resize(options.limit);

  Output out = Output::to_stdout();
  if (options.format == "json") {
    print_json(report, trace, out);
  } else if (options.format == "csv") {
    print_csv(report, out);
  } else {
    print_text(report, trace, out);
  }
  return finish_output(out, trace);
}

}  // namespace

void register_report(CLI::App& app, int& status) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("report", "Show which functions were called how often and took how long");
  command->footer(kFooter);
  add_file_option(*command, options->input);
  command
      ->add_option("--sort", options->sort,
                   "Greatest first by total (the default), self, calls or max; with thread states by cpu, runnable or "
                   "blocked time")
      ->check(one_of({"total", "self", "calls", "max", "cpu", "runnable", "blocked"}))
      ->type_name("total|self|calls|max|cpu|runnable|blocked");
  command->add_option("--format", options->format, "text (the default), csv or json")
      ->check(one_of({"text", "csv", "json"}))
      ->type_name("text|csv|json");
  command->add_option("--limit", options->limit, "Show only the first N functions")->type_name("N")->check(positive());
  add_selection_options(*command, options->input, "Show only functions whose name matches");
  command->callback([options, &status] { status = report_command(*options); });
}

}  // namespace karst::cli
