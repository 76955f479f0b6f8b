// SPDX-License-Identifier: MIT
// karst report --callers: functions with their callers and callees.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analysis/report.h"
#include "answers/data.h"
#include "answers/functions.h"
#include "base/json.h"
#include "base/output.h"
#include "cli/command.h"
#include "cli/commands/function_views.h"
#include "cli/text/names.h"
#include "cli/text/table.h"
#include "cli/text/text.h"
#include "columns/edges.h"

namespace karst::cli {
namespace {

constexpr std::size_t kUsualLimit = 20;

struct Graph {
  analysis::Report report;                                  // of those that were asked for, by falling total
  std::vector<columns::Edge> edges;                         // to or from one of those, by falling total
  std::unordered_map<std::uint32_t, std::size_t> place_of;  // in the report, by number
  const analysis::FunctionList* functions = nullptr;
  const Clock* clock = nullptr;
  std::size_t left_out = 0;  // functions behind the limit

  const std::string& name(std::uint32_t number) const { return functions->functions()[number].name; }
  std::uint64_t total_ns(const columns::Edge& edge) const { return clock->to_ns(edge.total); }
  std::uint64_t self_ns(const columns::Edge& edge) const { return clock->to_ns(edge.self); }
  bool has(std::uint32_t number) const { return place_of.contains(number); }
};

/// `edges`: rows of answers::edges(), in order.
void print_text(const Graph& graph, const Answer& edges, Screen& screen) {
  Output& output = screen.output();
  const std::size_t width = screen.width();
  const auto print = [&](const columns::Edge& edge, char sign, std::string_view name) {
    const std::string line = fmt::format("  {:>10} {:>10} {:>12}  {} ", duration_text(graph.total_ns(edge)),
                                         duration_text(graph.self_ns(edge)), count_text(edge.calls), sign);
    output.append(line +
                  (width == 0            ? std::string(name)
                   : line.size() < width ? fit_name(name, width - line.size())
                                         : "") +
                  "\n");
  };
  // Edges by function, each list in the order of all of them.
  std::vector<std::vector<const columns::Edge*>> callers(graph.report.functions.size()), callees(callers.size());
  for (const void* row : edges.rows()) {
    const columns::Edge& edge = static_cast<const answers::EdgeRow*>(row)->of;
    if (const auto at = graph.place_of.find(edge.callee); at != graph.place_of.end() && edge.caller != edge.callee)
      callers[at->second].push_back(&edge);
    if (const auto at = graph.place_of.find(edge.caller); at != graph.place_of.end())
      callees[at->second].push_back(&edge);
  }
  for (std::size_t i = 0; i < callers.size() && !output.failed(); ++i) {
    const analysis::FunctionReport& f = graph.report.functions[i];
    const bool complete = f.open_calls < f.calls;
    const std::string facts = fmt::format(
        "{}, total {}, self {}{}", plural(f.calls, "call"), duration_text(f.total_ns), duration_text(f.self_ns),
        complete ? fmt::format(", p50 {}, p99 {}", duration_text(f.p50_ns), duration_text(f.p99_ns)) : "");
    const std::string name = printable(f.name);
    output.append((i == 0 ? "" : "\n") + screen.paint(Style::kStrong, shorten(name, width, Shorten::kName)) + "\n" +
                  wrap("  " + facts, width, 2) + "\n");
    for (const columns::Edge* edge : callers[i])
      print(*edge, '<',
            edge->caller == columns::kNoFunction ? "(nothing traced)" : printable(graph.name(edge->caller)));
    for (const columns::Edge* edge : callees[i]) {
      const bool own = edge->caller == edge->callee;
      print(*edge, own ? '@' : '>', own ? "calls of itself" : printable(graph.name(edge->callee)));
    }
  }
  if (graph.left_out != 0)
    output.append(
        "\n" +
        wrap(fmt::format("{}; --function REGEX chooses, --limit N shows more", plural(graph.left_out, "more function")),
             width, 0) +
        "\n");
}

/// Quotes and what else a label gives a meaning to.
std::string dot_text(std::string_view text) {
  std::string result;
  for (const char c : printable(text)) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result;
}

std::string mermaid_text(std::string_view text) {
  std::string result;
  for (const char c : printable(text)) {
    if (std::string_view("\"#<>&`[]{}|;\\*_~").find(c) != std::string_view::npos) {
      result += fmt::format("#{};", static_cast<int>(c));
    } else {
      result += c;
    }
  }
  return result;
}

/// dot and mermaid: the functions of the report, and calls between them.
void print_picture(const Graph& graph, bool dot, Output& output) {
  output.append(dot ? "digraph calls {\n  node [shape=box, fontname=monospace];\n" : "flowchart TD\n");
  for (std::size_t i = 0; i < graph.report.functions.size() && !output.failed(); ++i) {
    const analysis::FunctionReport& f = graph.report.functions[i];
    const std::string name = plain_name(f.name), calls = plural(f.calls, "call");
    const std::string total = duration_text(f.total_ns), self = duration_text(f.self_ns);
    output.append(
        dot ? fmt::format("  f{} [label=\"{}\\n{}, total {}, self {}\"];\n", i, dot_text(name), calls, total, self)
            : fmt::format("  f{}[\"{}<br>{}, total {}, self {}\"]\n", i, mermaid_text(name), calls, total, self));
  }
  for (const columns::Edge& edge : graph.edges) {
    if (edge.caller == columns::kNoFunction || !graph.has(edge.caller) || !graph.has(edge.callee)) continue;
    const std::string label = fmt::format("{}, {}", plural(edge.calls, "call"), duration_text(graph.total_ns(edge)));
    const std::size_t from = graph.place_of.at(edge.caller), to = graph.place_of.at(edge.callee);
    output.append(dot ? fmt::format("  f{} -> f{} [label=\"{}\"];\n", from, to, label)
                      : fmt::format("  f{} -->|\"{}\"| f{}\n", from, label, to));
  }
  if (dot) output.append("}\n");
}

/// A field of an object that is open: the functions of the report.
void write_functions(Json& json, const Graph& graph, const reader::Trace& trace) {
  const answers::ReportContext context(graph.report);
  json.key(answers::functions().name).open('[');
  for (const analysis::FunctionReport& f : graph.report.functions) {
    const answers::FunctionRow row{context, f};
    answers::write_row(json, trace, answers::functions(), &row);
  }
  json.line().close(']');
}

}  // namespace

const char* const kCallersHelp = R"(--callers: functions, that with the greatest total first; below each its callers
(<) and what it called (>):

  work(int)
    4 calls, total 1.504 ms, self 1.504 ms, p50 2.500 us, p99 1.500 ms
    1.503 ms   1.503 ms            2  < main
    1.310 us   1.100 us            2  < (nothing traced)
      260 ns     260 ns            3  > leaf()
      120 ns     120 ns            9  @ calls of itself

Lines of calls have their time with all they called, their own time without
that, and their number. A call within another one of the same line adds nothing
to the first.
A recursion is one function that calls itself; through others it is a ring.
dot is for Graphviz (karst report --callers --format dot | dot -Tsvg > calls.svg),
mermaid for Markdown. csv, and a table with --columns, have a row for each two
functions of which one called the other: calls, total, self, caller, function.
json has these, and all functions.)";

int show_callers(const FunctionView& options) {
  auto input = open_input(options.input);
  if (!input) return fail(input.error());
  const reader::Trace& trace = (*input)->trace;
  analysis::ReportBuilder builder(trace, (*input)->function_set());
  columns::EdgeSums sums;
  Graph graph;
  (*input)->each_piece("adding up calls", [&](const reader::Thread& thread, const reader::Piece& piece) {
    builder.add(thread, piece);
    if (!piece.last) sums.add(builder.parts().latest());
  });
  sums.settle();
  graph.report = builder.finish();
  if (graph.report.functions.empty()) return fail(nothing_passes(**input));
  graph.functions = &builder.parts().functions();
  graph.clock = &trace.clock();
  analysis::sort_by_total(graph.report);
  const std::size_t found = graph.report.functions.size();
  const std::string& format = options.answer.format;
  const bool is_data = format == "csv" || format == "json";
  const std::size_t most = options.answer.has_limit ? options.answer.limit : is_data ? 0 : kUsualLimit;
  const std::size_t limit = most == 0 ? found : most;
  if (found > limit) {
    graph.report.functions.resize(limit);
    graph.left_out = found - limit;
  }
  for (std::size_t i = 0; i < graph.report.functions.size(); ++i) graph.place_of[graph.report.functions[i].number] = i;
  for (const columns::Edge& edge : sums.edges())
    if (graph.has(edge.caller) || graph.has(edge.callee)) {
      graph.edges.push_back(edge);
      std::uint64_t& total = graph.edges.back().total;
      if (static_cast<std::int64_t>(total) < 0) total = 0;
    }
  std::stable_sort(graph.edges.begin(), graph.edges.end(),
                   [](const columns::Edge& a, const columns::Edge& b) { return a.total > b.total; });

  std::vector<answers::EdgeRow> rows;
  rows.reserve(graph.edges.size());
  const answers::Times times(trace);
  for (const columns::Edge& edge : graph.edges) {
    const bool known = edge.caller != columns::kNoFunction;
    rows.push_back({edge, known ? &graph.name(edge.caller) : nullptr, graph.name(edge.callee), times});
  }
  AnswerOptions shown = options.answer;
  shown.limit = 0;  // it is of functions
  const Answer answer(trace, answers::edges(), shown, addresses(rows));
  if (format == "json")
    return print_answer(shown, **input, answer, [&](Json& json) { write_functions(json, graph, trace); });
  if (format == "csv" || (format == "text" && !shown.columns.empty()))
    return print_table_or_data(shown, **input, answer);
  if (Status sorted = answer.known(); !sorted) return fail(sorted.error());
  if (format == "text") {
    Screen screen(shown.text);
    say_partial(screen, **input);
    print_text(graph, answer, screen);
    say_cost(screen, **input);
    return screen.finish(&trace);
  }
  warn_partial(**input);
  Output output = Output::to_stdout();
  print_picture(graph, format == "dot", output);
  return finish_output(output, trace);
}

}  // namespace karst::cli
