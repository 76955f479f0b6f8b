// karst on, karst off: switching tracing of a process while it runs.
#include <fmt/format.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <iterator>
#include <memory>
#include <numeric>
#include <optional>

#include "arch/cpu.h"
#include "cli/command.h"
#include "cli/live.h"
#include "cli/program_options.h"
#include "cli/target.h"
#include "cli/text.h"
#include "cli/watch_options.h"
#include "cli/watching.h"
#include "collect/live/control.h"
#include "format/options.h"

namespace karst::cli {
namespace {

constexpr std::chrono::milliseconds kLimit{10'000};

struct Options {
  std::string target;
  std::vector<std::string> functions;
  std::vector<std::string> not_functions;
  std::string time;
  std::string budget;
  std::vector<std::string> keep;
  WatchArguments watch;
  bool stay = false;
  bool watches = false;
};

/// Millionths; 0 for "none".
Result<std::uint32_t> parse_share(const std::string& text) {
  std::uint32_t ppm = 0;
  if (text == "none" || format::parse_budget(text.c_str(), ppm)) return ppm;
  return Error{"--budget " + text + ": a share of time from 0.1% to 100% is needed, like 5%, or none"};
}

/// What `before` is not any more, to be made good when the time is up.
struct Undo {
  bool enabled = false;
  std::vector<std::uint32_t> off;  // were on
  std::vector<std::uint32_t> on;   // were off
};

/// Waits until the time is up or somebody is tired of it.
void wait_for(std::uint64_t ns) {
  sigset_t ends;
  sigemptyset(&ends);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&ends, signal);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  const timespec time{static_cast<time_t>(ns / 1'000'000'000U), static_cast<long>(ns % 1'000'000'000U)};
  sigtimedwait(&ends, nullptr, &time);
}

void say(const collect::Attached& target, const std::string& more) {
  const collect::ControlState s = collect::control_state(target.arena);
  std::fprintf(stderr, "karst: process %d (%s): tracing is %s, %s of %s functions%s\n",
               static_cast<int>(target.process.pid), printable(target.process.name).c_str(), s.enabled ? "on" : "off",
               count_text(s.patched).c_str(), count_text(s.functions).c_str(), more.c_str());
}

int change(const Options& options, bool on) {
  const char* name = on ? "on" : "off";
  std::uint64_t time_ns = 0;
  if (!options.time.empty()) {
    const auto parsed = parse_duration(options.time);
    if (!parsed) return usage_error("--for: " + parsed.error().message, name);
    time_ns = *parsed;
  }
  auto filter = symbols::FunctionFilter::compile(options.functions, options.not_functions);
  if (!filter) return usage_error(filter.error().message, name);
  std::optional<std::uint32_t> budget;
  if (!options.budget.empty()) {
    auto share = parse_share(options.budget);
    if (!share) return usage_error(share.error().message, name);
    budget = *share;
  }
  auto keep = symbols::FunctionFilter::compile(options.keep, {});
  if (!keep) return usage_error("--keep: " + keep.error().message, name);
  auto watch = watch_options(options.watch);
  if (!watch) return usage_error(watch.error().message, name);
  const bool other_options =
      !options.functions.empty() || !options.not_functions.empty() || !options.budget.empty() || !options.keep.empty();
  if (!watch->rules.empty() && other_options)
    return usage_error("--slowest and --over go with --margin, --stay and --for alone; ask for the rest separately",
                       name);
  if (watch->rules.empty() && (options.stay || !options.watch.margin.empty()))
    return usage_error("--stay and --margin belong to --slowest and --over", name);
  if (options.watches && (other_options || time_ns != 0))
    return usage_error("--watches goes with nothing else: tracing stays as it is", name);
  auto target = find_target(options.target);
  if (!target) return fail(target.error());

  if (!watch->rules.empty()) return begin_watching(*target, *watch, {options.stay, time_ns});
  if (options.watches) return end_watching(*target);
  const bool some = !filter->keeps_all();
  std::vector<std::uint32_t> ids;
  if (some) {
    ids = collect::matching_functions(target->arena, *filter, collect::resolve_options(*target));
    if (ids.empty()) return fail({"no function of process " + std::to_string(target->process.pid) + " matches"});
  }
  std::vector<std::uint32_t> kept;
  if (!options.keep.empty()) {
    kept = collect::matching_functions(target->arena, *keep, collect::resolve_options(*target));
    if (kept.empty())
      return fail({"no function of process " + std::to_string(target->process.pid) + " matches --keep"});
  }
  Undo undo;
  bool by_process = false;  // it goes off by itself
  {
    auto requester = collect::Requester::take(*target);
    if (!requester) return fail(requester.error());
    undo.enabled = collect::control_state(target->arena).enabled;
    if (budget)
      if (const Status may = requester->set_budget(*budget); !may) return fail(may.error());
    requester->keep(kept);
    if (some && on && !undo.enabled) {
      // Of a process that is off, these and no others.
      std::vector<std::uint32_t> all(target->arena.function_count());
      std::iota(all.begin(), all.end(), 1U);
      std::vector<std::uint32_t> others;
      std::set_difference(all.begin(), all.end(), ids.begin(), ids.end(), std::back_inserter(others));
      undo.off = requester->choose(others, false);
      requester->set_new_functions(false);
    }
    if (some) (on ? undo.on : undo.off) = requester->choose(ids, on);
    by_process = time_ns != 0 && on && !undo.enabled;
    const std::uint64_t ticks = static_cast<std::uint64_t>(static_cast<unsigned __int128>(time_ns) *
                                                           live_clock(*target).ticks_per_second / 1'000'000'000U);
    requester->set_off_at(by_process ? arch::time_stamp() + ticks : 0);
    if (on || !some) requester->set_enabled(on);
    if (const Status done = requester->apply(kLimit); !done) return fail(done.error());
  }
  if (time_ns == 0 || by_process) {
    say(*target, by_process ? " for " + duration_text(time_ns) : "");
    return kExitOk;
  }
  say(*target, " for " + duration_text(time_ns) + "; Ctrl-C ends that at once");
  wait_for(time_ns);
  auto requester = collect::Requester::take(*target);
  if (!requester) return fail(requester.error());
  requester->choose(undo.off, true);
  requester->choose(undo.on, false);
  requester->set_enabled(undo.enabled);
  if (const Status done = requester->apply(kLimit); !done) return fail(done.error());
  say(*target, " again");
  return kExitOk;
}

CLI::App* add(CLI::App& app, int& status, bool on) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      on ? "on" : "off", on ? "Switch tracing of a running process on" : "Switch tracing of a running process off");
  add_target(*command, options->target);
  command
      ->add_option("--functions", options->functions,
                   on ? "Switch on functions whose demangled name matches; of a process that was off, only these"
                      : "Switch off only functions whose demangled name matches")
      ->type_name("REGEX")
      ->allow_extra_args(false);
  command->add_option("--not-functions", options->not_functions, "But not those whose demangled name matches")
      ->type_name("REGEX")
      ->allow_extra_args(false);
  command->add_option("--for", options->time, "Only for TIME (5s, 200ms); then it is as it was before")
      ->type_name("TIME");
  if (on) {
    command
        ->add_option("--budget", options->budget,
                     "From now on keep what tracing costs below SHARE (like 5%), leaving out functions that cost most "
                     "and tell least; 'none' ends that")
        ->type_name("SHARE");
    command->add_option("--keep", options->keep, "A budget leaves no function out whose demangled name matches")
        ->type_name("REGEX")
        ->allow_extra_args(false);
    add_watch_options(*command, options->watch);
    command->add_flag("--stay", options->stay,
                      "With --slowest, --over: until Ctrl-C, watch the functions of libraries that come, too");
  } else {
    command->add_flag("--watches", options->watches,
                      "Watch for no slow calls any more (on --slowest, --over); tracing and what was kept stay");
  }
  command->callback([options, &status, on] { status = change(*options, on); });
  return command;
}

}  // namespace

void register_on_off(CLI::App& app, int& status) {
  add(app, status, true)
      ->footer(
          "Code is changed while threads execute it; none of them is held. Without patterns all functions that are\n"
          "chosen ('karst status') are traced again; --functions . chooses all. The process knows by itself when\n"
          "--for is up if tracing was off before; else karst waits for it.");
  add(app, status, false)
      ->footer(
          "Sites become NOPs again. The history stays: 'karst snapshot' still gets it. Traces say when functions were\n"
          "switched off, so an absent call is not taken for one that did not happen.");
}

}  // namespace karst::cli
