// SPDX-License-Identifier: MIT
// karst import: another tool's trace as a .karst file.
#include "import/import.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "cli/command.h"
#include "cli/text/text.h"

namespace karst::cli {
namespace {

struct Options {
  std::string file;
  std::string output;
};

std::string format_list() {
  std::string list;
  for (const importing::Format& format : importing::formats())
    list += fmt::format("  {:<10}{}\n", format.name, format.description);
  return list;
}

/// FILE.json.gz becomes FILE.karst, in the current directory.
std::string default_output(const std::string& file) {
  std::filesystem::path name = std::filesystem::path(file).filename();
  if (name.extension() == ".gz") name.replace_extension();
  name.replace_extension(".karst");
  return name.string();
}

void say(const std::string& output, const importing::Summary& summary) {
  std::fprintf(stderr, "karst: wrote %s: %s of %s in %s, %s\n", printable(output).c_str(),
               plural(summary.calls, "call").c_str(), plural(summary.threads, "thread").c_str(),
               plural(summary.processes, "process", "es").c_str(), plural(summary.notes, "note").c_str());
  if (summary.open != 0)
    std::fprintf(stderr, "karst: the end of %s is not in it\n", plural(summary.open, "call").c_str());
  if (summary.aside != 0)
    std::fprintf(stderr, "karst: %s overlap others of their thread; they are in threads of their own\n",
                 plural(summary.aside, "call").c_str());
  for (const auto& [what, count] : summary.left_out)
    std::fprintf(stderr, "karst: left out: %s %s\n", count_text(count).c_str(), what.c_str());
}

int import_trace(const Options& options) {
  auto bytes = importing::read_foreign(options.file);
  if (!bytes) return fail(bytes.error());
  const auto formats = importing::formats();
  const auto format = std::find_if(formats.begin(), formats.end(),
                                   [&](const importing::Format& known) { return known.may_be(*bytes); });
  if (format == formats.end())
    return fail({options.file + " is of no format that can be imported; there are:\n" + format_list()});
  const std::string output = options.output.empty() ? default_output(options.file) : options.output;
  auto writer = writing::TraceWriter::create(output);
  if (!writer) return fail(writer.error());
  auto trace = format->importer(std::move(*bytes));
  if (!trace) return fail({"cannot import " + options.file + ": " + trace.error().message});
  const auto summary = importing::write_trace(std::move(*trace), *writer);
  if (!summary) return fail({"cannot import " + options.file + ": " + summary.error().message});
  if (const auto finished = writer->finish(); !finished) return fail(finished.error());
  say(output, *summary);
  return kExitOk;
}

}  // namespace

void register_import(Command app, int& status) {
  auto options = std::make_shared<Options>();
  Command command = app.add_subcommand("import", "Make a trace of another tool's");
  command.footer("Formats, told by their contents:\n" + format_list() +
                 "\nWhat a trace of Karst has no place for is left out, and counted.");
  command.add_option("FILE", options->file, "The other tool's trace; it may be packed by gzip")
      .type_name("")
      .required();
  command.add_option("-o,--output", options->output, "Trace file to write (default: FILE's name with .karst, here)")
      .type_name("OUT");
  command.callback([options, &status] { status = import_trace(*options); });
}

}  // namespace karst::cli
