// SPDX-License-Identifier: MIT
// karst report --hist: how the durations of a function's calls spread, as bars in the terminal.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "analysis/report.h"
#include "answers/functions.h"
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

void print_one(const answers::SpreadRow& row, Screen& screen) {
  const analysis::FunctionReport& f = row.of;
  Output& output = screen.output();
  const std::size_t width = screen.width();
  const auto ns = [&](std::uint64_t ticks) { return duration_text(row.times.ns(ticks)); };
  const std::string open = f.open_calls == 0 ? "" : fmt::format(", {} of them open", count_text(f.open_calls));
  output.append(
      screen.paint(Style::kStrong, shorten(printable(f.name), width, Shorten::kName)) + "\n" +
      wrap(fmt::format("  {}{}, {} in all", plural(f.calls, "call"), open, duration_text(f.total_ns)), width, 2) +
      "\n");
  if (row.histogram.counts.empty()) {
    output.append(wrap("  no call is complete: durations are not known", width, 2) + "\n");
    return;
  }
  columns::Histogram of = row.histogram;
  output.append(
      wrap(fmt::format("  p50 {}  p90 {}  p99 {}  max {}", ns(of.of.p50), ns(row.p90), ns(of.of.p99), ns(of.max)),
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

/// How the calls of each function of a report spread. All must outlive it.
class Spreads {
 public:
  Spreads(const analysis::Report& report, const analysis::ReportBuilder& builder, const reader::Trace& trace)
      : context_(report) {
    const answers::Times times(trace);
    histograms_.reserve(report.functions.size());
    rows_.reserve(report.functions.size());
    for (const analysis::FunctionReport& f : report.functions) {
      std::vector<std::uint64_t> durations = builder.durations_of(f.number);
      const std::uint64_t p90 = durations.empty() ? 0 : columns::percentile(durations, 90);
      histograms_.push_back(durations.empty() ? columns::Histogram() : columns::histogram_of(durations));
      rows_.push_back({context_, f, p90, histograms_.back(), times});
    }
  }
  const std::vector<answers::SpreadRow>& rows() const { return rows_; }

 private:
  answers::ReportContext context_;
  std::vector<columns::Histogram> histograms_;
  std::vector<answers::SpreadRow> rows_;
};

void print_pictures(const Input& input, const Answer& answer, std::size_t found, Screen& screen) {
  say_partial(screen, input);
  for (const void* row : answer.rows()) {
    if (row != answer.rows().front()) screen.output().append("\n");
    print_one(*static_cast<const answers::SpreadRow*>(row), screen);
  }
  if (found > answer.shown())
    screen.output().append("\n" +
                           wrap(fmt::format("{}; --function REGEX chooses, --limit N shows more",
                                            plural(found - answer.shown(), "more function")),
                                screen.width(), 0) +
                           "\n");
  say_cost(screen, input);
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
Percentiles are exact; open calls are left out. json has finer steps, in ns.
--columns makes it a table, of calls, open_calls, total, min, mean, p50, p90, p99
and max; csv has these.)";

int show_histograms(const FunctionView& options) {
  auto input = open_input(options.input);
  if (!input) return fail(input.error());
  const reader::Trace& trace = (*input)->trace;
  analysis::ReportBuilder builder(trace, (*input)->function_set());
  (*input)->each_piece("adding up calls",
                       [&](const reader::Thread& thread, const reader::Piece& piece) { builder.add(thread, piece); });
  analysis::Report report = builder.finish();
  if (report.functions.empty()) return fail(nothing_passes(**input));
  analysis::sort_by_total(report);
  const std::size_t found = report.functions.size();
  AnswerOptions shown = options.answer;
  const bool is_picture = shown.is_text() && shown.columns.empty();
  if (is_picture && !shown.has_limit) shown.limit = kUsualFunctions;
  // Of those that are not shown nothing needs to be known.
  if (is_picture && shown.sort == kUsualSort && shown.limit != 0 && found > shown.limit)
    report.functions.resize(shown.limit);
  const Spreads spreads(report, builder, trace);
  const Answer answer(trace, answers::spreads(), shown, addresses(spreads.rows()));
  if (!is_picture) return print_table_or_data(shown, **input, answer);
  if (Status sorted = answer.known(); !sorted) return fail(sorted.error());
  Screen screen(shown.text);
  print_pictures(**input, answer, found, screen);
  return screen.finish(&trace);
}

}  // namespace karst::cli
