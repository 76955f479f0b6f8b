// SPDX-License-Identifier: MIT
#include "cli/commands/order.h"

#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/order.h"
#include "base/output.h"
#include "base/result.h"
#include "cli/command.h"
#include "cli/text/help.h"
#include "cli/text/table.h"
#include "cli/text/text.h"
#include "reader/trace.h"

namespace karst::cli {
namespace {

/// The path of the module that was asked for. Error: the trace has functions of no such module, or of several.
Result<std::string> module_of(const OrderOptions& options, const reader::Trace& trace) {
  const auto modules = analysis::modules_with_functions(trace);
  if (modules.empty()) return Error{trace.name() + " has no functions"};
  if (options.module.empty()) {
    const std::string& program = trace.processes().front().executable;
    for (const auto& [path, count] : modules)
      if (path == program) return path;
    return modules.front().first;
  }
  std::vector<std::string> found;
  for (const auto& [path, count] : modules)
    if (path == options.module || std::filesystem::path(path).filename() == options.module) found.push_back(path);
  if (found.size() == 1) return found[0];
  std::string list;
  constexpr std::size_t kMostListed = 10;
  for (std::size_t i = 0; i < modules.size() && i < kMostListed; ++i)
    list += (list.empty() ? "" : ", ") + printable(modules[i].first);
  if (modules.size() > kMostListed) list += fmt::format(" and {} more", modules.size() - kMostListed);
  return Error{fmt::format("{} has functions of {} module named {}; it has {}", trace.name(),
                           found.empty() ? "no" : "more than one", options.module, list)};
}

void print(const analysis::LinkOrder& order, const OrderOptions& options, Output& output) {
  if (options.format == "callgraph") {
    for (const analysis::LinkOrder::Edge& edge : order.edges())
      output.append(fmt::format("{} {} {}\n", edge.caller, edge.callee, edge.calls));
    return;
  }
  const bool sections = options.format == "sections";
  for (const analysis::LinkOrder::Function& function : options.by == "calls" ? order.by_calls() : order.by_first_call())
    // gcc puts some functions into .text.startup.NAME, .text.hot.NAME and others.
    output.append(fmt::format("{}{}\n", sections ? ".text*." : "", function.name));
}

}  // namespace

const char* const kOrderHelp = R"(order: the functions that were called, one on a line by its linker's name, for
a linker that lays them out in that order. Build with -ffunction-sections and

  symbols    lld: -Wl,--symbol-ordering-file=ORDER
  sections   gold: -Wl,--section-ordering-file=ORDER (in gcc -fuse-ld=gold)
  callgraph  lld: -Wl,--call-graph-ordering-file=ORDER; lines are caller, callee
             and number of calls, and lld puts together what calls each other

There is no profile for clang's -fprofile-sample-use or gcc's -fauto-profile:
they want samples by line of source, and a trace knows calls of functions.
GNU ld and mold have no such option in Debian 12. Functions that were not called
are not listed: lld puts them behind the others, gold in front. Trace all
functions (--min-instructions 0 --budget off where karst run patches them) of
what the program does when it matters:

  karst run -o start.karst ./app --version
  karst export --to order start.karst > app.order         for its start
  karst export --to order --format callgraph app.karst -o app.order    for all)";

void add_order_options(Command command, OrderOptions& options) {
  in_group(command, "With --to order", [&] {
    command.add_option("--by", options.by, "first: by first call (the default); calls: those called most first")
        .check(one_of({"first", "calls"}))
        .type_name("first|calls");
    command.add_option("--format", options.format, "symbols (the default), sections or callgraph; see below")
        .check(one_of({"symbols", "sections", "callgraph"}))
        .type_name("symbols|sections|callgraph");
    command.add_option("--module", options.module, "Functions of this file (default: the program itself)")
        .type_name("FILE");
  });
}

int export_order(const InputOptions& of, const OrderOptions& options, const std::string& file) {
  if (options.format == "callgraph" && !options.by.empty())
    return usage_error("--by does not go with --format callgraph: the linker orders its functions", "export");
  auto input = open_input(of);
  if (!input) return fail(input.error());
  const auto module = module_of(options, (*input)->trace);
  if (!module) return fail(module.error());
  analysis::LinkOrder order((*input)->trace, *module, (*input)->function_set());
  (*input)->each_thread("ordering functions",
                        [&](const reader::Thread& thread, const reader::Calls& calls) { order.add(thread, calls); });
  const std::size_t count = order.by_first_call().size();
  if (count == 0)
    return fail(
        {order.nameless() == 0
             ? fmt::format("no function of {} was called in what was asked for", *module)
             : fmt::format("the functions of {} have no linker's names: it had no symbols when the trace was made",
                           *module)});
  auto output = Output::create(file.empty() ? "-" : file);
  if (!output) return fail(output.error());
  print(order, options, *output);
  const int status = finish_output(*output, (*input)->trace);
  if (status == kExitOk && !file.empty() && file != "-")
    say(fmt::format("{}: {} of {}{}", printable(file), plural(count, "function"), printable(*module),
                    order.nameless() == 0 ? "" : "; " + count_text(order.nameless()) + " have no linker's name"));
  return status;
}

}  // namespace karst::cli
