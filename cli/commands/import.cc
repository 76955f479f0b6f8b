// SPDX-License-Identifier: MIT
// karst import: another tool's trace as a .karst file.
#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>
#include <memory>
#include <string>

#include "cli/command.h"
#include "cli/input/foreign.h"
#include "format/trace.h"
#include "import/import_file.h"
#include "reader/mapping.h"
#include "write/output_file.h"

namespace karst::cli {
namespace {

struct Options {
  std::string file;
  std::string output;
  std::string program;
};

/// FILE.json.gz becomes FILE.karst, in the current directory.
std::string default_output(const std::string& file) {
  const std::filesystem::path path = std::filesystem::path(file).lexically_normal();
  std::filesystem::path name = path.has_filename() ? path.filename() : path.parent_path().filename();
  if (name.extension() == ".gz") name.replace_extension();
  name.replace_extension(".karst");
  return name.string();
}

/// The trace, which has no name yet, as a file of this name. Error: that cannot be written.
Status write_as(const std::string& output, int trace) {
  auto file = writing::OutputFile::create(output);
  if (!file) return file.error();
  struct stat info {};
  if (::fstat(trace, &info) != 0) info = {};
  const auto mapped = reader::Mapping::of(trace, static_cast<std::size_t>(info.st_size));
  if (!mapped || mapped->bytes().size() < sizeof(format::FileHeader))
    return Error{"there is no memory for the trace of " + output};
  file->append(mapped->bytes());
  return file->commit(mapped->bytes().first(sizeof(format::FileHeader)));
}

int import_trace(const Options& options) {
  auto imported = importing::import_file(options.file, options.program);
  if (!imported) return fail(imported.error());
  if (!imported->has_value())
    return fail({options.file + " is of no format that can be imported; there are:\n" + importing::format_list()});
  const std::string output = options.output.empty() ? default_output(options.file) : options.output;
  const importing::ImportedFile& file = **imported;
  if (const auto written = write_as(output, file.trace.get()); !written) return fail(written.error());
  say_imported("wrote " + output, file.summary);
  return kExitOk;
}

}  // namespace

void register_import(Command app, int& status) {
  auto options = std::make_shared<Options>();
  Command command = app.add_subcommand("import", "Make a trace of another tool's");
  command.footer("Formats, told by their contents:\n" + importing::format_list() +
                 "\nWhat a trace of Karst has no place for is left out, and counted.");
  command.add_option("FILE", options->file, "The other tool's trace; a file may be packed by gzip")
      .type_name("")
      .required();
  command.add_option("-o,--output", options->output, "Trace file to write (default: FILE's name with .karst, here)")
      .type_name("OUT");
  command
      .add_option("--program", options->program,
                  "Which program has the functions' names (default: as a log xray-log.PROGRAM.* of XRay is called)")
      .type_name("PROGRAM");
  command.callback([options, &status] { status = import_trace(*options); });
}

}  // namespace karst::cli
