// karst attach: waits until places in a running process are reached, and writes what led there.
#include <fmt/format.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/target.h"
#include "cli/text.h"
#include "collect/clock.h"
#include "collect/trace_writer.h"
#include "collect/trigger.h"
#include "format/options.h"

namespace karst::cli {
namespace {

struct Options {
  std::string target;
  std::vector<std::string> triggers;
  bool multi = false;
  std::string last = "200ms";
  std::string output;
  bool no_source = false;
};

enum class Ended { kDone, kStopped, kProcessGone };

/// Until all triggers were hit, Ctrl-C, or the process's end.
Result<Ended> wait_for_hits(pid_t pid, collect::Triggers& triggers, std::uint64_t last,
                            collect::RecordedProcess& process) {
  sigset_t taken;
  sigemptyset(&taken);
  for (const int s : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&taken, s);
  sigprocmask(SIG_BLOCK, &taken, nullptr);
  const collect::Descriptor signals(signalfd(-1, &taken, SFD_CLOEXEC));
  const collect::Descriptor ended(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  while (true) {
    std::vector<pollfd> descriptors = {{signals.get(), POLLIN, 0}, {ended.get(), POLLIN, 0}};
    triggers.add_descriptors(descriptors);
    if (poll(descriptors.data(), descriptors.size(), triggers.waiting() || !ended ? 50 : -1) < 0) continue;
    for (collect::TriggerHit& hit : triggers.take()) {
      std::fprintf(stderr, "karst: %s was reached in thread %d\n", printable(hit.what).c_str(),
                   static_cast<int>(hit.hit.tid));
      collect::keep_hit(std::move(hit), last, process);
    }
    if (triggers.done()) return Ended::kDone;
    if (descriptors[0].revents != 0) return Ended::kStopped;
    if (descriptors[1].revents != 0 || kill(pid, 0) != 0) return Ended::kProcessGone;
    if (!triggers.waiting()) continue;
    if (const Status armed = triggers.arm(pid); !armed) return armed.error();
  }
}

/// NAME-PID-N.karst, N being the first number that is free.
std::string free_name(const std::string& stem) {
  for (int number = 1;; ++number) {
    std::string path = stem + "-" + std::to_string(number) + ".karst";
    if (std::error_code error; !std::filesystem::exists(path, error)) return path;
  }
}

int attach(const Options& options) {
  if (options.triggers.empty()) return usage_error("what is waited for? See --trigger", "attach");
  std::vector<symbols::PlaceName> places;
  for (const std::string& text : options.triggers) {
    auto place = symbols::PlaceName::parse(text);
    if (!place) return usage_error("--trigger: " + place.error().message, "attach");
    places.push_back(std::move(*place));
  }
  std::uint64_t last_ns = 0;
  if (!format::parse_duration(options.last.c_str(), last_ns))
    return usage_error("--last " + options.last + ": a time from 1ns to 10000ms is needed, like 200ms", "attach");
  collect::TriggerClock clock;  // measures the rate of time from here on
  auto target = find_target(options.target);
  if (!target) return fail(target.error());
  const pid_t pid = target->process.pid;
  const std::string output =
      options.output.empty() ? free_name(target->process.name + "-" + std::to_string(pid)) : options.output;
  auto writer = collect::TraceWriter::create(output);
  if (!writer) return fail(writer.error());
  collect::RecordedProcess process{collect::History(std::move(target->arena)), -1, 0, false, -1, {}, {}};
  collect::Triggers triggers(std::move(places), options.multi, {});
  if (const Status armed = triggers.arm(pid); !armed) return fail(armed.error());
  for (const reader::Problem& problem : triggers.problems())
    if (triggers.waiting() && problem.message.find("never hit") == std::string::npos) fail({problem.message});
  std::fprintf(stderr, "karst: waiting for process %d; Ctrl-C ends that\n", static_cast<int>(pid));
  auto ended = wait_for_hits(pid, triggers, clock.to_ticks(last_ns), process);
  if (!ended) return fail(ended.error());
  if (process.moments.empty())
    return fail({*ended == Ended::kProcessGone
                     ? "the process ended, and nothing of it was reached: no trace was written"
                     : "nothing was reached: no trace was written"});
  collect::RecordingOptions recording;
  recording.source = !options.no_source;
  recording.from = process.moments.front().kept_from;
  recording.to = 0;
  for (const reader::Moment& moment : process.moments) {
    recording.from = std::min(recording.from, moment.kept_from);
    recording.to = std::max(recording.to, moment.kept_to);
  }
  const std::size_t kept = process.moments.size();
  std::vector<collect::RecordedProcess> processes;
  processes.push_back(std::move(process));
  const auto summary = collect::record(processes, {collect::read_clock_pair()}, recording, *writer);
  if (const Status done = writer->finish(); !done) return fail(done.error());
  for (const reader::Problem& problem : summary.problems) fail({problem.message});
  std::fprintf(stderr, "karst: %s: %zu moment%s kept, %s calls\n", printable(output).c_str(), kept,
               kept == 1 ? "" : "s", count_text(summary.calls).c_str());
  return kExitOk;
}

}  // namespace

void register_attach(CLI::App& app, int& status) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("attach", "Wait until a place in a traced process is reached; write what led there");
  command->footer(
      "The place is watched by a hardware breakpoint: the process is not stopped, and not slowed down until it is\n"
      "hit. PLACE is a function, traced or not, FILE:LINE, 0xADDRESS in the executable or MODULE+0xADDRESS; :N behind\n"
      "it for the first N times. Ends when all were reached, with the process, or at Ctrl-C, and writes what was "
      "kept.");
  add_target(*command, options->target);
  command->add_option("--trigger", options->triggers, "The place; may be given several times")
      ->type_name("PLACE")
      ->allow_extra_args(false);
  command->add_flag("--multi", options->multi, "A name may be that of several functions");
  command->add_option("--last", options->last, "How much of what came before is kept (default 200ms)")
      ->type_name("TIME");
  command->add_option("-o,--output", options->output, "Trace file to write (default: NAME-PID-N.karst)")
      ->type_name("FILE");
  command->add_flag("--no-source", options->no_source, "Leave out the text of source files");
  command->callback([options, &status] { status = attach(*options); });
}

}  // namespace karst::cli
