// SPDX-License-Identifier: MIT
// karst flame: calls merged by their path, as a flame graph, folded stacks for other tools, or a tree.
//
// Folded: one line for each path with its own weight, which Brendan Gregg's flamegraph.pl, inferno and speedscope read.
// SVG: a picture, HTML: a page with it (flame_svg.h). Text: a tree with times (stacks.h). All come of the same
// weighed tree.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/output.h"
#include "cli/command.h"
#include "cli/commands/flame_svg.h"
#include "cli/commands/paths.h"
#include "cli/commands/stacks.h"
#include "cli/input/trace_input.h"
#include "cli/text/terminal.h"
#include "cli/text/text.h"

namespace karst::cli {
namespace {

struct Options {
  InputOptions input;
  std::string format = "folded";
  std::string by = "wall";
  std::string output;  // empty: stdout
  StackOptions stacks;
};

constexpr const char* kFooter = R"(Formats:
  folded   a line for each path: its functions with ';' between, a space, and
           its own time in ns (calls, bytes); what ran within callees counts
           for those. For flamegraph.pl, inferno, speedscope and your scripts.
           A ';' in a name is \x3b. Where samples were taken (karst run --sample),
           frames that they saw below a call are marked [sampled]; they are
           no calls, and their times are estimates.
  svg      a picture; callers are below, and a frame's width is its time
  html     the same as a page of one file, to zoom and search in
  text     a tree with counts and times, for the terminal
  json     the same, of all paths

  karst flame app.karst --format html -o app.html    then open it in a browser
  karst flame app.karst --by blocked | flamegraph.pl > waits.svg
  karst flame app.karst --format text --depth 3      where the time went, at a glance

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
std::vector<std::uint32_t> children_of(const columns::FlameTree& tree, std::uint32_t node) {
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
    const columns::FlameNode& node = paths.tree.nodes()[at.node];
    line.resize(at.length);
    if (!line.empty()) line += ';';
    line += folded_name(paths.name(node.function));
    if (Paths::is_sampled(node.function)) line += " [sampled]";
    print("", node.side[0].self);
    if (at.depth < kDeepest) {
      add_children(at.node, at.depth + 1);
    } else {
      print(";(deeper)", node.side[0].total - node.side[0].self);
    }
  }
}

/// For the terminal; JSON of the same goes where the other formats go.
int show_stacks(const Paths& paths, const Options& options) {
  Screen screen(options.stacks.text);
  print_stacks(paths, options.stacks, screen);
  if (paths.by == Weight::kTime) say_cost(screen, paths.input);
  return screen.finish(&paths.input.trace);
}

int flame(const Options& options) {
  const bool is_text = options.format == "text";
  if (is_text && !options.output.empty())
    return usage_error("--output goes with the other formats; text is for the terminal", "flame");
  auto input = open_input(options.input);
  if (!input) return fail(input.error());
  const auto paths = paths_of(**input, options.by, true);
  if (!paths) return fail(paths.error());
  if (is_text) return show_stacks(**paths, options);
  auto output = options.output.empty() ? Result<Output>(Output::to_stdout()) : Output::create(options.output);
  if (!output) return fail(output.error());
  warn_partial(**input);
  if (options.format == "svg") {
    print_flame_svg(**paths, *output);
  } else if (options.format == "html") {
    print_flame_page(**paths, *output);
  } else if (options.format == "json") {
    print_stacks_json(**paths, *output);
  } else {
    print_folded(**paths, *output);
  }
  return finish_output(*output, (*input)->trace);
}

}  // namespace

void register_flame(Command app, int& status) {
  auto options = std::make_shared<Options>();
  Command command =
      app.add_subcommand("flame", "Merge calls by their path: a flame graph, or a tree with counts and times");
  command.footer(fmt::format("{}\n\n{}", kFooter, kStacksHelp));
  add_file_option(command, options->input);
  // karst stacks is this: a tree, unless another format is asked for.
  command
      .add_flag(
          "--stacks", [options](std::int64_t) { options->format = "text"; }, "")
      .unlisted();
  add_format_options(command, options->format, {"folded", "svg", "html", "text", "json"});
  add_by_option(command, options->by, true);
  command.add_option("-o,--output", options->output, "Write this file; stdout when it is left out").type_name("FILE");
  add_selection_options(command, options->input, "Only paths that end in functions whose name matches");
  add_raw_option(command, options->input);
  add_stack_options(command, options->stacks);
  add_text_options(command, options->stacks.text);
  command.callback([options, &status] { status = flame(*options); });
}

}  // namespace karst::cli
