// SPDX-License-Identifier: MIT
// karst export: a trace in another tool's format.
#include "export/export.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/output.h"
#include "cli/command.h"
#include "cli/commands/export_tables.h"
#include "cli/commands/order.h"
#include "cli/input/chosen_part.h"
#include "cli/text/progress.h"
#include "cli/text/table.h"
#include "cli/text/text.h"
#include "engine/cut/exported_page.h"
#include "engine/index/index.h"
#include "engine/server/page.h"

namespace karst::cli {
namespace {

struct Options {
  InputOptions input;
  std::string format;
  std::string output;
  bool aggregated = false;
  OrderOptions order;
};

constexpr const char* kHtml = "html";
constexpr const char* kViewer = "viewer";
constexpr const char* kOrder = "order";

std::string format_list() {
  constexpr std::size_t kWidth = 80;
  constexpr std::size_t kIndent = 12;
  std::string list;
  const auto add = [&list](const char* name, const char* description) {
    list += fmt::format("  {:<10}{}\n", name, wrap(description, kWidth, kIndent));
  };
  for (const exporting::Format& format : exporting::formats()) add(format.name, format.description);
  for (const TableFormat& format : table_formats()) add(format.name, format.description);
  add(kHtml, "the page of karst view in one file, for any browser, without server");
  add(kOrder, "in which order a linker should lay out functions, for fewer pages; see below");
  add(kViewer, "that page without a trace: it opens .karst files by itself; takes no FILE");
  return list;
}

// As type names of options stand in the help: chrome|perfetto.
std::string format_names() {
  std::string names;
  for (const exporting::Format& format : exporting::formats()) {
    names += fmt::format("{}{}", names.empty() ? "" : "|", format.name);
  }
  for (const TableFormat& format : table_formats()) names += fmt::format("|{}", format.name);
  return names + "|" + kHtml + "|" + kOrder + "|" + kViewer;
}

std::string_view page() {
  const engine::PageFile* page = engine::find_page_file("export.html");
  return page == nullptr ? std::string_view() : page->bytes;
}

int export_html(const Options& options) {
  engine::HtmlOptions wanted;
  wanted.aggregated = options.aggregated;
  wanted.version = KARST_VERSION;
  if (options.input.has_function || !options.input.not_function.empty())
    return usage_error("--function and --not-function do not go with --to html, which has a search of its own",
                       "export");
  if (!options.input.below.empty() || !options.input.min_duration.empty() || options.input.request)
    return usage_error("--below, --request and --min-duration do not go with --to html, which has all calls of a range",
                       "export");
  auto input = open_input(options.input);
  if (!input) return fail(input.error());
  auto part = chosen_part(**input, "exporting calls");
  if (!part) return fail(part.error());
  const engine::TraceIndex& index = *part->index;
  if (part->range) {
    const std::uint64_t first = analysis::first_ticks(index.trace());
    wanted.begin = index.since_origin(std::max(part->range->begin, first));
    wanted.end = index.since_origin(std::min(part->range->end, index.last_ticks()));
  }
  wanted.threads = std::move(part->threads);
  auto output = Output::create(options.output);
  if (!output) return fail(output.error());
  const auto status = engine::export_html(index, page(), wanted, *output);
  if (!status) return fail(status.error());
  return finish_output(*output);
}

int export_viewer(const Options& options) {
  if (!options.input.file.empty())
    return usage_error("--to viewer takes no FILE: the page opens any; --to html puts a trace into the page", "export");
  if (options.input.has_filters())
    return usage_error("--to viewer takes -o alone: the page shows all of what it opens", "export");
  auto output = Output::create(options.output);
  if (!output) return fail(output.error());
  const auto status = engine::export_viewer(page(), *output);
  if (!status) return fail(status.error());
  return finish_output(*output);
}

int export_trace(const Options& options) {
  if (options.format == kViewer && !options.aggregated) return export_viewer(options);
  if (options.input.file.empty() && options.format != kViewer)
    return usage_error("FILE is missing: which trace?", "export");
  if (options.format == kOrder && !options.aggregated)
    return export_order(options.input, options.order, options.output);
  if (options.order.any()) return usage_error("--by, --format and --module go with --to order alone", "export");
  if (options.output.empty()) return usage_error("--output is missing", "export");
  if (options.format == kHtml) return export_html(options);
  if (options.aggregated) return usage_error("--aggregated goes with --to html alone", "export");
  if (const TableFormat* tables = find_table_format(options.format); tables != nullptr)
    return export_tables(*tables, options.input, options.output);
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
  auto output = Output::create(options.output);
  if (!output) return fail(output.error());
  {
    Progress progress("exporting calls", (*input)->events / 2);
    exporting::Options wanted;
    wanted.threads = (*input)->threads;
    wanted.others = (*input)->has_all_threads;
    wanted.functions = (*input)->function_set();
    wanted.calls_done = &progress.done;
    wanted.filter = (*input)->filter;
    chosen->exporter((*input)->trace, wanted, *output);
  }
  return finish_output(*output, (*input)->trace);
}

}  // namespace

void register_export(Command app, int& status) {
  auto options = std::make_shared<Options>();
  Command command = app.add_subcommand("export", "Write a trace in another tool's format");
  command.footer("Formats:\n" + format_list() +
                 "\nThe output gets its name only when it is whole; '-o -' writes to standard output.\n\n" +
                 kOrderHelp);
  command.add_option("FILE", options->input.file, "The trace, as 'karst run' wrote it; none for viewer").type_name("");
  command.add_option("--to", options->format, "The format; see below").type_name(format_names()).required();
  command
      .add_option("-o,--output", options->output,
                  "Where to write it; - is standard output. Needed but for order, which goes there without it")
      .type_name("OUT");
  command.add_flag("--aggregated", options->aggregated, "html: sums and one picture instead of every call");
  add_order_options(command, options->order);
  add_selection_options(command, options->input,
                        "Export only calls of functions whose name matches, with what they called");
  command.callback([options, &status] { status = export_trace(*options); });
}

}  // namespace karst::cli
