// SPDX-License-Identifier: MIT
// karst merge: the processes of several traces in one.
#include "write/merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "analysis/selection.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/input/trace_input.h"
#include "cli/text/text.h"
#include "reader/fingerprint.h"

namespace karst::cli {
namespace {

struct Options {
  std::vector<std::string> files;
  std::string output;
};

using Traces = std::vector<std::unique_ptr<Input>>;

/// Opens all, that which began first in the front: no time of another is before its clock's begin.
Result<Traces> open_all(const std::vector<std::string>& files) {
  Traces traces;
  std::set<reader::Fingerprint> seen;
  for (const std::string& file : files) {
    InputOptions of;
    of.file = file;
    auto input = open_input(of);
    if (!input) return input.error();
    if (!(*input)->trace.resolved())
      return Error{fmt::format("{} has no names yet: run 'karst resolve {}' first", file, file)};
    const auto print = reader::fingerprint(file);
    if (print && !seen.insert(*print).second) return Error{file + " is there twice: its calls would be, too"};
    traces.push_back(std::move(*input));
  }
  std::stable_sort(traces.begin(), traces.end(), [](const auto& a, const auto& b) {
    const auto begin = [](const reader::Trace& trace) {
      return writing::wall_ns(trace.clock(), analysis::first_ticks(trace));
    };
    return begin(a->trace) < begin(b->trace);
  });
  return traces;
}

std::string how_aligned(const writing::Alignment& of) {
  if (of.same_clock)
    return fmt::format("the same clock as the first one's, by readings that agree within {}",
                       duration_text(of.off_by_ns));
  return fmt::format(
      "aligned by the wall clock, right within {} and what the two machines' wall clocks are apart, which no trace "
      "tells",
      duration_text(of.off_by_ns));
}

void say_left_out(const writing::LeftOut& left_out) {
  for (const reader::Trace* trace : left_out.states)
    say(fmt::format("thread states of {} are left out: a trace has those of one machine's threads", trace->name()));
  for (const reader::Trace* trace : left_out.samples)
    say(fmt::format("samples of {} are left out: a trace has those of one machine's threads", trace->name()));
  for (const reader::Trace* trace : left_out.usage)
    say(fmt::format("usage of {} is left out: a trace has that of one machine", trace->name()));
  if (left_out.sources != 0)
    say(fmt::format("{} differ between the traces: the first one's text is in {}", plural(left_out.sources, "source"),
                    left_out.sources == 1 ? "it" : "them"));
}

int merge(const Options& options) {
  if (options.files.size() < 2) return usage_error("merge takes two traces or more", "merge");
  auto traces = open_all(options.files);
  if (!traces) return fail(traces.error());
  const reader::Clock& clock = traces->front()->trace.clock();
  std::vector<writing::MergePart> parts;
  for (const auto& of : *traces) {
    const auto aligned = writing::align(clock, of->trace.clock());
    if (!aligned) return fail({of->trace.name() + ": " + aligned.error().message});
    if (!parts.empty()) say(fmt::format("{}: {}", of->trace.name(), how_aligned(*aligned)));
    parts.push_back({&of->trace, parts.empty() ? writing::TickMap() : aligned->map});
  }
  auto writer = writing::TraceWriter::create(options.output);
  if (!writer) return fail(writer.error());
  writer->pack_events();
  const auto left_out = writing::write_merged(parts, *writer);
  if (!left_out) return fail(left_out.error());
  if (const Status finished = writer->finish(); !finished) return fail(finished.error());
  say_left_out(*left_out);
  say(fmt::format("wrote {}: {}", options.output, plural(parts.size(), "trace")));
  return kExitOk;
}

}  // namespace

void register_merge(Command app, int& status) {
  auto options = std::make_shared<Options>();
  Command command = app.add_subcommand("merge", "Put the processes of several traces into one");
  command.footer(
      "Traces of one machine, without a restart in between, have the same clock: times stay what they are. Others are\n"
      "aligned by the wall clock; it is said how exactly. Threads of one pid and tid in two traces stay two.");
  command.add_option("FILE", options->files, "The traces, in any order").type_name("").required();
  command.add_option("-o,--output", options->output, "Trace file to write").type_name("OUT").required();
  command.callback([options, &status] { status = merge(*options); });
}

}  // namespace karst::cli
