// karst report --hist: how the durations of a function's calls spread, as bars in the terminal.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "analysis/report.h"
#include "answers/data.h"
#include "answers/functions.h"
#include "base/json.h"
#include "base/output.h"
#include "cli/command.h"
#include "cli/commands/function_views.h"
#include "cli/text/table.h"
#include "cli/text/text.h"
#include "columns/table.h"

namespace karst::cli {
namespace {

constexpr std::size_t kMostLines = 20;
constexpr std::size_t kUsualBars = 60;  // columns, where lines have no end
constexpr std::size_t kUsualFunctions = 3;

/// Adds neighbours up so that no more than so many lines are left.
void coarsen(columns::Histogram& of) {
  const std::size_t step = (of.counts.size() + kMostLines - 1) / kMostLines;
  std::vector<std::uint64_t> edges, counts;
  for (std::size_t i = 0; i < of.counts.size(); ++i) {
    if (i % step == 0) {
      edges.push_back(of.edges[i]);
      counts.push_back(0);
    }
    counts.back() += of.counts[i];
  }
  edges.push_back(of.edges.back());
  of.edges = std::move(edges);
  of.counts = std::move(counts);
}

void print_one(const analysis::FunctionReport& f, std::vector<std::uint64_t> durations, const Clock& clock,
               Screen& screen) {
  Output& output = screen.output();
  const std::size_t width = screen.width();
  const auto ns = [&](std::uint64_t ticks) { return duration_text(clock.to_ns(ticks)); };
  const std::string open = f.open_calls == 0 ? "" : fmt::format(", {} of them open", count_text(f.open_calls));
  output.append(
      screen.paint(Style::kStrong, shorten(printable(f.name), width, Shorten::kName)) + "\n" +
      wrap(fmt::format("  {}{}, {} in all", plural(f.calls, "call"), open, duration_text(f.total_ns)), width, 2) +
      "\n");
  if (durations.empty()) {
    output.append(wrap("  no call is complete: durations are not known", width, 2) + "\n");
    return;
  }
  const std::uint64_t p90 = columns::percentile(durations, 90);
  columns::Histogram of = columns::histogram_of(durations);
  output.append(wrap(fmt::format("  p50 {}  p90 {}  p99 {}  max {}", ns(of.of.p50), ns(p90), ns(of.of.p99), ns(of.max)),
                     width, 0) +
                "\n");
  coarsen(of);
  const std::uint64_t most = *std::max_element(of.counts.begin(), of.counts.end());
  constexpr std::size_t kBefore = 2 + 10 + 1 + 11 + 2;
  const std::size_t room = width == 0 ? kUsualBars : width > kBefore + 1 ? std::min(width - kBefore, kUsualBars) : 1;
  for (std::size_t i = 0; i < of.counts.size(); ++i) {
    const std::uint64_t count = of.counts[i];
    // One call is to be seen beside a million.
    const auto bar =
        static_cast<std::size_t>(static_cast<double>(count) / static_cast<double>(most) * static_cast<double>(room));
    std::string line = fmt::format("  {:>10} {:>11}", ns(of.edges[i]), count_text(count));
    if (count != 0) line += "  " + std::string(std::max<std::size_t>(bar, 1), '#');
    output.append(line + "\n");
  }
}

void print_json(const analysis::Report& report, const analysis::ReportBuilder& builder, const reader::Trace& trace,
                Output& output) {
  const answers::ReportContext context(report);
  const answers::Times times(trace);
  Json json;
  json.open('{').field("trace", trace.name()).key(answers::spreads().name).open('[');
  for (const analysis::FunctionReport& f : report.functions) {
    std::vector<std::uint64_t> durations = builder.durations_of(f.number);
    const std::uint64_t p90 = durations.empty() ? 0 : columns::percentile(durations, 90);
    const columns::Histogram histogram = durations.empty() ? columns::Histogram() : columns::histogram_of(durations);
    const answers::SpreadRow row{context, f, p90, histogram, times};
    answers::write_row(json, trace, answers::spreads(), &row);
    json.flush(output);
  }
  json.close(']').close('}').flush(output);
  output.append("\n");
}

}  // namespace

const char* const kHistogramsHelp = R"(--hist: a picture for each function, that with the greatest total first:

  work(int)
    400 calls, 1.200 ms in all
    p50 2.500 us  p90 3.100 us  p99 40.00 us  max 1.500 ms
     2.048 us        310  ########################
     4.096 us         88  #######
     8.192 us          0
     16.38 us          2  #

Each line counts the calls that lasted at least so long, and less than the next
line says. Lines are equal steps of the logarithm, at most 20 of them.
Percentiles are exact; open calls are left out. json has finer steps, in ns.)";

int show_histograms(const FunctionView& options) {
  auto input = open_input(options.input);
  if (!input) return fail(input.error());
  const reader::Trace& trace = (*input)->trace;
  analysis::ReportBuilder builder(trace, (*input)->function_set());
  (*input)->each_thread("adding up calls",
                        [&](const reader::Thread& thread, const reader::Calls& calls) { builder.add(thread, calls); });
  analysis::Report report = builder.finish();
  if (report.functions.empty()) return fail(nothing_passes(**input));
  analysis::sort_by_total(report);
  const std::size_t found = report.functions.size();
  const std::size_t limit = options.limit != 0 ? options.limit : options.format == "text" ? kUsualFunctions : found;
  if (found > limit) report.functions.resize(limit);
  if (options.format == "json") {
    warn_partial(**input);
    Output output = Output::to_stdout();
    print_json(report, builder, trace, output);
    return finish_output(output, trace);
  }
  Screen screen(options.text);
  say_partial(screen, **input);
  for (const analysis::FunctionReport& f : report.functions) {
    if (&f != &report.functions.front()) screen.output().append("\n");
    print_one(f, builder.durations_of(f.number), trace.clock(), screen);
  }
  if (found > limit)
    screen.output().append(
        "\n" +
        wrap(fmt::format("{}; --function REGEX chooses, --limit N shows more", plural(found - limit, "more function")),
             screen.width(), 0) +
        "\n");
  say_cost(screen, **input);
  return screen.finish(&trace);
}

}  // namespace karst::cli
