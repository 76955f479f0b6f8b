// SPDX-License-Identifier: MIT
// karst pack: the same trace with its events packed, or as they are. Blocks go through one by one.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>
#include <system_error>

#include "base/text.h"
#include "cli/command.h"
#include "cli/input/trace_input.h"
#include "cli/text/text.h"
#include "write/merge.h"

namespace karst::cli {
namespace {

struct Options {
  std::string file;
  std::string output;
  bool raw_events = false;
};

std::string size_of(const std::string& file) {
  std::error_code error;
  const auto bytes = std::filesystem::file_size(file, error);
  return error ? "a size that is not known" : size_text(bytes);
}

int pack(const Options& options) {
  InputOptions of;
  of.file = options.file;
  const auto input = open_input(of);
  if (!input) return fail(input.error());
  const reader::Trace& trace = (*input)->trace;
  if (!trace.resolved())
    return fail({fmt::format("{} has no names yet: run 'karst resolve {}' first", trace.name(), trace.name())});
  const std::string before = size_of(options.file);
  auto writer = writing::TraceWriter::create(options.output);
  if (!writer) return fail(writer.error());
  if (!options.raw_events) writer->pack_events();
  if (const auto left_out = writing::write_merged({{&trace, {}}}, *writer); !left_out) return fail(left_out.error());
  if (const Status finished = writer->finish(); !finished) return fail(finished.error());
  say(fmt::format("wrote {}: {}, from {}", printable(options.output), size_of(options.output), before));
  return kExitOk;
}

}  // namespace

void register_pack(Command app, int& status) {
  auto options = std::make_shared<Options>();
  Command command = app.add_subcommand("pack", "Write a trace with its events packed, or as they are");
  command.footer(
      "Traces are packed as they are recorded, but for those of --raw-events. Every command takes OUT as it takes "
      "FILE.\n"
      "FILE may have problems, as lost chunks: what can be read of it is in OUT.");
  command.add_option("FILE", options->file, "The trace").type_name("").required();
  command.add_option("-o,--output", options->output, "Trace file to write").type_name("OUT").required();
  command.add_flag("--raw-events", options->raw_events, "The other way: events as they are, 8 bytes each, not packed");
  command.callback([options, &status] { status = pack(*options); });
}

}  // namespace karst::cli
