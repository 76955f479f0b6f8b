// SPDX-License-Identifier: MIT
// karst resolve of a core, or of an arena's file: a trace of what a program left.
#include "collect/recover/recover.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include "base/descriptor.h"
#include "cli/command.h"
#include "cli/commands/leftover.h"
#include "cli/text/text.h"
#include "collect/launch/foreign_file.h"
#include "collect/launch/interruption.h"
#include "format/trace.h"

namespace karst::cli {

bool is_trace(const std::string& file) {
  const Descriptor descriptor = collect::open_regular_file(file);
  unsigned char start[sizeof format::kFileMagic] = {};
  return descriptor && read(descriptor.get(), start, sizeof start) == sizeof start &&
         std::memcmp(start, format::kFileMagic, sizeof start) == 0;
}

int recover(LeftoverOptions options) {
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
  recovering.recording.resolve = std::move(options.resolve);
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

}  // namespace karst::cli
