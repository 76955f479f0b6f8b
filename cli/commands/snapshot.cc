// SPDX-License-Identifier: MIT
// karst snapshot: the last moments of a process that goes on.
#include "collect/live/snapshot.h"

#include <fmt/format.h>

#include <memory>

#include "cli/command.h"
#include "cli/input/target.h"
#include "cli/text/progress.h"
#include "cli/text/text.h"

namespace karst::cli {
namespace {

struct Options {
  std::string target;
  std::string last;
  std::string from;
  std::string to;
  std::string output;
  bool no_source = false;
  bool raw_events = false;
};

int take(const Options& options) {
  collect::SnapshotRange range;
  if (!options.last.empty() && !(options.from.empty() && options.to.empty()))
    return usage_error("--last cannot be combined with --from and --to", "snapshot");
  const auto read = [](const std::string& text, std::uint64_t& ns) -> Status {
    if (text.empty()) return Unit{};
    const auto parsed = parse_duration(text);
    if (!parsed) return parsed.error();
    ns = *parsed;
    return Unit{};
  };
  for (const auto& [text, ns] : {std::pair(&options.last, &range.from_ns), std::pair(&options.from, &range.from_ns),
                                 std::pair(&options.to, &range.to_ns)})
    if (const Status done = read(*text, *ns); !done) return usage_error(done.error().message, "snapshot");
  if (range.from_ns != 0 && range.to_ns >= range.from_ns)
    return usage_error("the range ends before it begins: --from and --to say how long ago", "snapshot");
  auto target = find_target(options.target);
  if (!target) return fail(target.error());
  const pid_t pid = target->process.pid;
  collect::RecordingOptions recording;
  recording.source = !options.no_source;
  recording.raw_events = options.raw_events;
  auto taken = collect::snapshot(std::move(*target), range, options.output, recording);
  if (!taken) return fail(taken.error());
  for (const reader::Problem& p : taken->summary.problems) say(p.message);
  const collect::RecordingSummary& s = taken->summary;
  say(fmt::format("{}: {}, {} of process {}", printable(taken->file.string()), plural(s.threads, "thread"),
                  plural(s.calls, "call"), pid));
  if (taken->missing_ns != 0)
    say("memory for history was too small: of some threads the first " + duration_text(taken->missing_ns) +
        " of the range are missing");
  return kExitOk;
}

}  // namespace

void register_snapshot(Command app, int& status) {
  auto options = std::make_shared<Options>();
  Command command = app.add_subcommand("snapshot", "Write what a traced process did in its last moments; it goes on");
  command.footer(
      "Works on a process that hangs or is stopped as well: what its threads are in\n"
      "is marked open. Calls that were running when the range began are marked as\n"
      "begun before. Without -o the file is NAME-PID-N.karst, N being the first\n"
      "number that is free.");
  add_target(command, options->target);
  command.add_option("--last", options->last, "Only the last TIME (200ms, 5s); else all that is kept")
      .type_name("TIME");
  command.add_option("--from", options->from, "From TIME ago").type_name("TIME");
  command.add_option("--to", options->to, "Up to TIME ago").type_name("TIME");
  command.add_option("-o,--output", options->output, "Trace file to write; one that is there is replaced")
      .type_name("FILE");
  command.add_flag("--no-source", options->no_source, "Leave out the text of source files");
  command.add_flag("--raw-events", options->raw_events, "Write events as they are, 8 bytes each, not packed");
  command.callback([options, &status] { status = take(*options); });
}

}  // namespace karst::cli
