// SPDX-License-Identifier: MIT
#include "cli/commands/stacks.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/output.h"
#include "cli/input/trace_input.h"
#include "cli/text/names.h"
#include "cli/text/table.h"
#include "cli/text/terminal.h"
#include "cli/text/text.h"

namespace karst::cli {
namespace {

constexpr std::uint32_t kMostIndented = 100;

}  // namespace

const char* const kStacksHelp = R"(text: a line for each path, below that of its caller; the longest first:

     total       self        calls  function
  2.000 ms   497.5 us            1  main
  1.503 ms   1.503 ms            2    work(int)
     50 ns      50 ns            1      leaf()

  total   time in this path, with all that is listed below it
  self    the same without what it called
Calls of all threads are merged. A path stands for all calls with the same
functions above them: a recursion's levels are lines of their own.
By bytes of memory, total and self are bytes, in json total_bytes, self_bytes.)";

void add_stack_options(Command command, StackOptions& options) {
  command.add_option("--depth", options.depth, "text: show only N levels").type_name("N").check(positive());
  command.add_option("--share", options.share, "text: add up paths below PERCENT of all (default: 0.5)")
      .type_name("PERCENT")
      .check([](const std::string& text) {
        double number = -1;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
        const bool right = error == std::errc() && end == text.data() + text.size() && number >= 0 && number <= 100;
        return right ? std::string() : "'" + text + "' is no number from 0 to 100";
      });
}

void print_stacks(const Paths& paths, const StackOptions& options, Screen& screen) {
  const columns::FlameView view = columns::prune(paths.tree, 0, options.share / 100);
  Output& output = screen.output();
  const std::size_t width = screen.width();
  const std::uint32_t most_indented =
      width == 0 ? kMostIndented : static_cast<std::uint32_t>(std::max<std::size_t>(width / 8, 2));
  const columns::FlameNode::Side& all = paths.tree.nodes()[0].side[0];
  output.append(
      shorten(fmt::format("{}: {} on {}, {}", printable(paths.input.trace.name()), plural(all.calls, paths.counted()),
                          plural(paths.tree.nodes().size() - 1, "path"), paths.weight(all.total)),
              width, Shorten::kPath) +
      "\n");
  const auto print = [&](std::string_view total, std::string_view self, std::string_view calls, std::uint32_t level,
                         std::string_view name, bool is_name) {
    std::string line = fmt::format("{:>10} {:>10} {:>12}  ", total, self, calls);
    line += std::string(std::size_t{2} * std::min(level, most_indented), ' ');
    if (level > most_indented) line += fmt::format("[{}] ", level);
    if (width == 0) {
      line += name;
    } else if (is_name && line.size() < width) {
      line += fit_name(name, width - line.size());
    } else {
      line = fit_text(line + std::string(name), width);
    }
    output.append(line + "\n");
  };
  print("total", "self", paths.by == Weight::kBytes ? "allocations" : "calls", 0, "function", false);
  std::vector<std::uint32_t> levels(view.nodes.size());
  for (std::size_t i = 1; i < view.nodes.size() && !output.failed(); ++i) {
    const columns::FlameView::Node& node = view.nodes[i];
    const std::uint32_t level = node.parent == 0 ? 0 : levels[static_cast<std::size_t>(node.parent)] + 1;
    levels[i] = level;
    if (level >= options.depth) continue;
    const columns::FlameNode::Side& of = node.side[0];
    if (node.function == columns::kFlameMerged) {
      print(paths.weight(of.total), "", "", level, fmt::format("({} smaller)", count_text(node.merged)), false);
    } else {
      print(paths.weight(of.total), paths.weight(of.self),
            Paths::is_sampled(static_cast<std::uint32_t>(node.function)) ? "sampled" : count_text(of.calls), level,
            printable(paths.name(static_cast<std::uint32_t>(node.function))), true);
    }
  }
}

void print_stacks_json(const Paths& paths, Output& output) {
  const auto& nodes = paths.tree.nodes();
  Json json;
  json.open('{').field("trace", paths.input.trace.name()).key("paths").open('[');
  for (std::uint32_t i = 1; i < nodes.size() && !output.failed(); ++i) {
    json.line().open('{').key("caller");
    if (nodes[i].parent == 0) {
      json.null();
    } else {
      json.value(nodes[i].parent - 1);
    }
    json.field("function", paths.name(nodes[i].function)).field("calls", nodes[i].side[0].calls);
    if (Paths::is_sampled(nodes[i].function)) json.field("sampled", true);
    const bool bytes = paths.by == Weight::kBytes;
    json.field(bytes ? "total_bytes" : "total_ns", paths.number(nodes[i].side[0].total));
    json.field(bytes ? "self_bytes" : "self_ns", paths.number(nodes[i].side[0].self));
    json.close('}').flush(output);
  }
  json.close(']').close('}').flush(output);
  output.append("\n");
}

}  // namespace karst::cli
