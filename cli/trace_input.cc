#include "cli/trace_input.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <utility>

#include "cli/command.h"
#include "cli/kept.h"
#include "cli/text.h"
#include "symbols/function_filter.h"
#include "symbols/open_trace.h"

namespace karst::cli {

void add_file_option(CLI::App& command, InputOptions& options) {
  command.add_option("FILE", options.file, "The trace, as 'karst run' wrote it")->type_name("")->required();
}

void add_selection_options(CLI::App& command, InputOptions& options, const char* function_help) {
  command.add_option("--thread", options.selection.thread, "Only threads of this name or thread id")
      ->type_name("NAME|TID");
  command.add_option("--process", options.selection.process, "Only the process with this id")->type_name("PID");
  command.add_option("--kept", options.kept, "Only the time of kept moment N, as 'karst info' numbers them")
      ->check(positive())
      ->type_name("N");
  command.add_option("--function", options.function, function_help)
      ->type_name("REGEX")
      ->each([&options](const std::string&) { options.has_function = true; });
}

CLI::Validator positive() { return CLI::Validator(CLI::PositiveNumber).description(""); }
CLI::Validator one_of(const std::vector<std::string>& words) { return CLI::IsMember(words).description(""); }

Result<std::unique_ptr<Input>> open_input(const InputOptions& options) {
  // Before the file is read: a bad pattern is told at once.
  auto filter = symbols::FunctionFilter::compile({options.function}, {});
  if (options.has_function && !filter) return filter.error();

  std::vector<reader::Problem> unnamed;
  auto trace = symbols::open_trace(options.file, {}, &unnamed);
  if (!trace) return trace.error();
  for (const reader::Problem& problem : unnamed) fail({problem.message});
  std::vector<std::byte> bytes;
  const bool damaged = !trace->problems().empty();
  if (options.kept != 0) {
    auto cut = cut_to_moment(std::move(*trace), options.kept, bytes);
    if (!cut) return cut.error();
    const symbols::ResolveOptions names;
    symbols::name_functions(*cut, names.with(symbols::Credentials::of_file(options.file)), nullptr);
    trace = std::move(*cut);
  }
  auto input = std::make_unique<Input>(Input{std::move(bytes), std::move(*trace), {}, {}});
  if (damaged) {
    std::fprintf(stderr,
                 "karst: %s is damaged or incomplete; this shows what could be read ('karst info' tells more)\n",
                 printable(options.file).c_str());
  }
  auto threads = analysis::select_threads(input->trace, options.selection);
  if (!threads) return threads.error();
  input->threads = std::move(*threads);
  for (const reader::Thread* thread : input->threads) {
    for (const reader::BlockView& block : input->trace.blocks(*thread)) input->events += block.events.size();
  }
  if (options.has_function) {
    const auto keeper = std::make_shared<symbols::FunctionFilter>(std::move(*filter));
    input->functions.emplace(input->trace, [keeper](std::string_view name) { return keeper->keeps(name); });
    if (input->functions->empty()) {
      return Error{fmt::format("no function of {} has a name that matches '{}'", options.file, options.function)};
    }
  }
  return input;
}

int finish_output(Output& output) {
  const Status status = output.finish();
  if (status) return kExitOk;
  return output.closed_pipe() ? kExitFailed : fail(status.error());
}

int finish_output(Output& output, const reader::Trace& read) {
  const Status status = read.unchanged();
  return status ? finish_output(output) : fail(status.error());
}

}  // namespace karst::cli
