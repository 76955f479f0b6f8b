// karst recover: a trace of what a program left, in its arena's file or in a core.
#include "collect/recover/recover.h"

#include <fmt/format.h>

#include <memory>

#include "cli/command.h"
#include "cli/text.h"
#include "collect/launch/interruption.h"

namespace karst::cli {
namespace {

struct Options {
  std::string file;
  std::string output;
  std::string program;
  bool no_source = false;
};

int recover(const Options& options) {
  auto left = collect::open_leftover(options.file);
  if (!left) return fail({options.file + ": " + left.error().message});
  const collect::Interruption interruption;
  const reader::Process process = left->arena.process_without_functions();
  auto writer = options.output.empty()
                    ? writing::TraceWriter::create_numbered(process.name + "-" + std::to_string(process.pid))
                    : writing::TraceWriter::create(options.output);
  if (!writer) return fail(writer.error());
  const bool lives = left->lives;
  const auto core = left->core;
  collect::RecoverOptions recovering;
  recovering.program = options.program;
  recovering.recording.source = !options.no_source;
  const auto summary = collect::recover(std::move(*left), std::move(recovering), *writer);
  if (!summary) return fail(summary.error());
  for (const reader::Problem& p : summary->problems) say(p.message);
  std::string what = lives ? ", which runs on" : "";
  if (core && core->signal && !core->threads.empty())
    what = fmt::format(", ended by {} in thread {}", collect::signal_text(*core->signal), core->threads.front());
  const std::string file = printable(writer->path().string());
  say(fmt::format("{}: {} threads, {} calls of process {} ({}){}", file, count_text(summary->threads),
                  count_text(summary->calls), process.pid, printable(process.name), what));
  say("next: karst where " + file);
  return kExitOk;
}

}  // namespace

void register_recover(Command app, int& status) {
  auto options = std::make_shared<Options>();
  Command command = app.add_subcommand("recover", "Make a trace of what a program left: a core, or its arena's file");
  command.footer(
      "FILE is a core file, or the file of a program that ran with\n"
      "KARST_OPTIONS=file=FILE or 'karst run --file FILE'; that program may still be\n"
      "running. Without -o the trace is NAME-PID-N.karst, N being the first number\n"
      "that is free.");
  command.add_option("FILE", options->file, "Core, or arena's file").required();
  command.add_option("-o,--output", options->output, "Trace file to write; one that is there is replaced")
      .type_name("FILE");
  command.add_option("--program", options->program, "Where the executable is now, if not where it was")
      .type_name("PATH");
  command.add_flag("--no-source", options->no_source, "Leave out the text of source files");
  command.callback([options, &status] { status = recover(*options); });
}

}  // namespace karst::cli
