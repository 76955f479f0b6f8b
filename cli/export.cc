// karst export: a trace in another tool's format.
#include "export/export.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "cli/command.h"
#include "cli/progress.h"
#include "cli/trace_input.h"
#include "export/output.h"

namespace karst::cli {
namespace {

struct Options {
  InputOptions input;
  std::string format;
  std::string output;
};

std::string format_list() {
  std::string list;
  for (const exporting::Format& format : exporting::formats()) {
    list += fmt::format("  {:<10}{}\n", format.name, format.description);
  }
  return list;
}

// As type names of options stand in the help: chrome|perfetto.
std::string format_names() {
  std::string names;
  for (const exporting::Format& format : exporting::formats()) {
    names += fmt::format("{}{}", names.empty() ? "" : "|", format.name);
  }
  return names;
}

int export_trace(const Options& options) {
  const exporting::Format* chosen = nullptr;
  for (const exporting::Format& format : exporting::formats()) {
    if (options.format == format.name) chosen = &format;
  }
  if (chosen == nullptr) {
    return usage_error(fmt::format("there is no export format '{}'; there are:\n{}", options.format, format_list()),
                       "export");
  }
  auto input = open_input(options.input);
  if (!input) return fail(input.error());
  auto output = exporting::Output::create(options.output);
  if (!output) return fail(output.error());
  {
    Progress progress("exporting calls", (*input)->events / 2);
    exporting::Options wanted;
    wanted.threads = (*input)->threads;
    wanted.functions = (*input)->function_set();
    wanted.calls_done = &progress.done;
    chosen->exporter((*input)->trace, wanted, *output);
  }
  return finish_output(*output);
}

}  // namespace

void register_export(CLI::App& app, int& status) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("export", "Write a trace in another tool's format");
  command->footer("Formats:\n" + format_list() +
                  "\nThe output gets its name only when it is whole; '-o -' writes to standard output.");
  add_file_option(*command, options->input);
  command->add_option("--to", options->format, "The format; see below")->type_name(format_names())->required();
  command->add_option("-o,--output", options->output, "Where to write it; - is standard output")
      ->type_name("OUT")
      ->required();
  add_selection_options(*command, options->input,
                        "Export only calls of functions whose name matches, with what they called");
  command->callback([options, &status] { status = export_trace(*options); });
}

}  // namespace karst::cli
