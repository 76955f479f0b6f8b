// karst flame: a flame graph, as folded stacks for other tools or as a picture.
//
// Folded: one line for each path with its own weight, which Brendan Gregg's flamegraph.pl, inferno and speedscope read.
// SVG: a picture without scripts; who points at a frame is told its whole name. Both come of the same weighed tree.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/output.h"
#include "cli/command.h"
#include "cli/names.h"
#include "cli/paths.h"
#include "cli/text.h"
#include "cli/trace_input.h"

namespace karst::cli {
namespace {

struct Options {
  InputOptions input;
  std::string format = "folded";
  std::string by = "wall";
  std::string output;  // empty: stdout
};

constexpr const char* kFooter = R"(Formats:
  folded   a line for each path: its functions with ';' between, a space, and
           its own time in ns (or its calls); what ran within callees counts
           for those. For flamegraph.pl, inferno, speedscope and your scripts.
           A ';' in a name is \x3b.
  svg      a picture; callers are below, and a frame's width is its time

  karst flame app.karst --format svg -o app.svg      then open it in a browser
  karst flame app.karst --by blocked | flamegraph.pl > waits.svg

All threads are added up. Paths deeper than 1,000 calls end in '(deeper)'.
'cpu' and 'blocked' need thread states: record with 'karst run --sched auto'.)";

/// Calls below each other that are told apart: a recursion's lines would grow with the square of its depth.
constexpr std::size_t kDeepest = 1000;

std::string folded_name(std::string_view name) {
  std::string text;
  for (const char c : printable(name)) {
    if (c == ';') {
      text += "\\x3b";
    } else {
      text += c;
    }
  }
  return text;
}

/// First child first: the tree links the latest one first.
std::vector<std::uint32_t> children_of(const query::FlameTree& tree, std::uint32_t node) {
  std::vector<std::uint32_t> children;
  for (std::uint32_t child = tree.nodes()[node].first_child; child != 0; child = tree.nodes()[child].next_sibling)
    children.push_back(child);
  std::reverse(children.begin(), children.end());
  return children;
}

void print_folded(const Paths& paths, Output& output) {
  struct Todo {
    std::uint32_t node;
    std::size_t depth;
    std::size_t length;  // of the line up to its caller
  };
  std::vector<Todo> todo;
  std::string line;
  const auto add_children = [&](std::uint32_t node, std::size_t depth) {
    const std::vector<std::uint32_t> children = children_of(paths.tree, node);
    for (auto child = children.rbegin(); child != children.rend(); ++child)
      todo.push_back({*child, depth, line.size()});
  };
  const auto print = [&](std::string_view text, std::uint64_t weight) {
    if (const std::uint64_t number = paths.number(weight); number != 0)
      output.append(fmt::format("{}{} {}\n", line, text, number));
  };
  add_children(0, 1);
  while (!todo.empty() && !output.failed()) {
    const Todo at = todo.back();
    todo.pop_back();
    const query::FlameNode& node = paths.tree.nodes()[at.node];
    line.resize(at.length);
    if (!line.empty()) line += ';';
    line += folded_name(paths.name(node.function));
    print("", node.side[0].self);
    if (at.depth < kDeepest) {
      add_children(at.node, at.depth + 1);
    } else {
      print(";(deeper)", node.side[0].total - node.side[0].self);
    }
  }
}

std::string xml(std::string_view text) {
  std::string result;
  for (const char c : printable(text)) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

/// A warm colour that is the same for the same name each time.
std::string colour_of(std::string_view name) {
  std::uint32_t hash = 2166136261;  // FNV-1a
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619;
  return fmt::format("rgb({},{},{})", 205 + hash % 50, 90 + (hash >> 8U) % 120, 40 + (hash >> 16U) % 50);
}

constexpr double kWidth = 1200, kRow = 17, kMargin = 10, kHead = 30;
constexpr double kCharacter = 6.7;  // of the font, in px
constexpr std::size_t kMostRows = 256;

void print_svg(const Paths& paths, Output& output) {
  // What is narrower than half a pixel is not drawn one by one.
  const query::FlameView view = query::prune(paths.tree, 0, 0.5 / kWidth);
  const double whole = static_cast<double>(std::max<std::uint64_t>(1, view.nodes.front().side[0].total));
  struct Place {
    double x = 0, next = 0;  // own left edge, that of the next child
    std::size_t row = 0;
  };
  std::vector<Place> places(view.nodes.size());
  std::size_t rows = 0, hidden = 0;
  for (std::size_t i = 1; i < places.size(); ++i) {
    Place& above = places[static_cast<std::size_t>(view.nodes[i].parent)];
    places[i] = {above.next, above.next, above.row + 1};
    above.next += static_cast<double>(view.nodes[i].side[0].total) / whole * kWidth;
    if (places[i].row >= kMostRows) {
      ++hidden;
    } else {
      rows = std::max(rows, places[i].row);
    }
  }
  const double height = kHead + static_cast<double>(rows + 1) * kRow + kMargin;
  const std::string what = paths.by_calls ? "calls" : "time";
  output.append(
      fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
                  "font-family=\"ui-monospace, monospace\" font-size=\"11\">\n"
                  "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n<text x=\"{2}\" y=\"19\" "
                  "font-size=\"13\">{3}: {4}{5}</text>\n",
                  kWidth + 2 * kMargin, height, kMargin, xml(paths.input.trace.name()),
                  paths.weight(view.nodes.front().side[0].total),
                  hidden == 0 ? "" : fmt::format("; calls deeper than {} levels are not drawn", kMostRows - 1)));
  for (std::size_t i = 0; i < places.size() && !output.failed(); ++i) {
    const query::FlameView::Node& node = view.nodes[i];
    if (places[i].row >= kMostRows) continue;
    const double width = static_cast<double>(node.side[0].total) / whole * kWidth;
    const bool merged = node.function == query::kFlameMerged;
    const std::string_view name =
        merged ? "" : paths.name(i == 0 ? query::FlameTree::kRoot : static_cast<std::uint32_t>(node.function));
    const std::string title = merged ? plural(node.merged, "smaller path") : xml(name);
    const double x = kMargin + places[i].x;
    const double y = height - kMargin - static_cast<double>(places[i].row + 1) * kRow;
    output.append(fmt::format(
        "<g><title>{}: {} ({} of all {}){}</title><rect x=\"{:.1f}\" y=\"{:.0f}\" width=\"{:.1f}\" height=\"{:.0f}\" "
        "fill=\"{}\" rx=\"1\"/>",
        title, paths.weight(node.side[0].total), percent_text(node.side[0].total, view.nodes.front().side[0].total),
        what, paths.by_calls ? "" : ", " + plural(node.side[0].calls, "call"), x, y, std::max(width - 0.5, 0.2),
        kRow - 1, i == 0 || merged ? "#ddd" : colour_of(name)));
    const auto room = static_cast<std::size_t>(std::max(0.0, width - 6) / kCharacter);
    if (room >= 3 && !merged)
      output.append(fmt::format("<text x=\"{:.1f}\" y=\"{:.0f}\">{}</text>", x + 3, y + 12,
                                xml(fit_name(printable(name), room))));
    output.append("</g>\n");
  }
  output.append("</svg>\n");
}

int flame(const Options& options) {
  auto input = open_input(options.input);
  if (!input) return fail(input.error());
  const auto paths = paths_of(**input, options.by);
  if (!paths) return fail(paths.error());
  auto output = options.output.empty() ? Result<Output>(Output::to_stdout()) : Output::create(options.output);
  if (!output) return fail(output.error());
  if (options.format == "svg") {
    print_svg(**paths, *output);
  } else {
    print_folded(**paths, *output);
  }
  return finish_output(*output, (*input)->trace);
}

}  // namespace

void register_flame(CLI::App& app, int& status) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("flame", "Make a flame graph: folded stacks, or a picture");
  command->footer(kFooter);
  add_newest_file_option(*command, options->input);
  command->add_option("--format", options->format, "folded (the default) or svg")
      ->check(one_of({"folded", "svg"}))
      ->type_name("folded|svg");
  add_by_option(*command, options->by, true);
  command->add_option("-o,--output", options->output, "Write this file; stdout when it is left out")->type_name("FILE");
  add_selection_options(*command, options->input, "Only paths that end in functions whose name matches");
  add_raw_option(*command, options->input);
  command->callback([options, &status] { status = flame(*options); });
}

}  // namespace karst::cli
