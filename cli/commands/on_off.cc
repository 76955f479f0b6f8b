// SPDX-License-Identifier: MIT
// karst on, karst off: switching tracing of a process while it runs.
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <ctime>
#include <memory>
#include <optional>

#include "arch/cpu.h"
#include "cli/command.h"
#include "cli/commands/live.h"
#include "cli/commands/process_views.h"
#include "cli/commands/watching.h"
#include "cli/input/chosen_functions.h"
#include "cli/input/given_options.h"
#include "cli/input/noting.h"
#include "cli/input/system.h"
#include "cli/input/target.h"
#include "cli/input/trace_input.h"
#include "cli/input/watch_options.h"
#include "cli/text/help.h"
#include "cli/text/text.h"
#include "collect/live/control.h"

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
  ValueArguments values;
  bool end_values = false;
  SystemArguments system;
  std::string level;
  bool detach = false;
};

/// What `before` is not any more, to be made good when the time is up.
struct Undo {
  bool enabled = false;
  bool new_functions = false;
  std::optional<std::uint32_t> budget;
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

void say_of(const collect::Attached& target, const std::string& more) {
  const collect::ControlState s = collect::control_state(target.arena);
  say(fmt::format("process {} ({}): tracing is {}, {} of {} functions{}", target.process.pid,
                  printable(target.process.name), s.enabled ? "on" : "off", count_text(s.patched),
                  count_text(s.functions), more));
}

/// The options, read.
struct Wish {
  std::uint64_t time_ns = 0;  ///< 0: from now on
  choice::FunctionFilter functions;
  choice::FunctionFilter keep;
  std::optional<std::uint32_t> budget;
  collect::WatchOptions watch;
  choice::ValueChoice values;
  std::vector<collect::SystemWish> systems;
};

/// Error: what of them cannot be read, or what does not go together.
Result<Wish> wish_of(const Options& options) {
  Wish wish;
  if (!options.time.empty()) {
    const auto parsed = parse_duration(options.time);
    if (!parsed) return Error{"--for: " + parsed.error().message};
    wish.time_ns = *parsed;
  }
  wish.functions = choice::FunctionFilter(options.functions, options.not_functions);
  if (!options.budget.empty()) {
    format::RuntimeOptions read;
    if (const Status right = read_flag(format::option_index("budget"), options.budget, read); !right)
      return right.error();
    wish.budget = read.budget;
  }
  wish.keep = choice::FunctionFilter(options.keep);
  auto watch = watch_options(options.watch);
  if (!watch) return watch.error();
  wish.watch = std::move(*watch);
  const bool other_options =
      !options.functions.empty() || !options.not_functions.empty() || !options.budget.empty() || !options.keep.empty();
  if (!wish.watch.rules.empty() && other_options)
    return Error{"--slowest and --over go with --margin, --stay and --for alone; ask for the rest separately"};
  if (wish.watch.rules.empty() && (options.stay || !options.watch.margin.empty()))
    return Error{"--stay and --margin belong to --slowest and --over"};
  wish.values = choice::ValueChoice(options.values.arguments, options.values.returned);
  if (wish.values.any() && (other_options || !wish.watch.rules.empty()))
    return Error{"--args and --returns go with --for alone; ask for the rest separately"};
  if ((options.watches || options.end_values) &&
      (other_options || wish.time_ns != 0 || (options.watches && options.end_values)))
    return Error{std::string(options.watches ? "--watches" : "--values") +
                 " goes with nothing else: tracing stays as it is"};
  auto systems = system_choice(options.system);
  if (!systems) return systems.error();
  wish.systems = std::move(systems->wishes);
  if (!wish.systems.empty() && (other_options || wish.time_ns != 0 || !wish.watch.rules.empty() || wish.values.any() ||
                                options.watches || options.end_values))
    return Error{"--system goes with nothing else; ask for the rest separately"};
  return wish;
}

/// Ids of the functions that a wish is about.
struct Chosen {
  std::vector<std::uint32_t> functions;  ///< empty: all
  std::vector<std::uint32_t> kept;
};

Result<Chosen> chosen_by(const Wish& wish, const Options& options, const collect::Attached& target) {
  Chosen chosen;
  if (wish.functions.keeps_all() && options.keep.empty()) return chosen;
  if (!wish.functions.keeps_all()) {
    auto found = functions_meant(target, wish.functions);
    if (!found) return found.error();
    chosen.functions = std::move(*found);
  }
  if (!options.keep.empty()) {
    auto found = functions_meant(target, wish.keep);
    if (!found) return found.error();
    chosen.kept = std::move(*found);
  }
  return chosen;
}

/// Functions that `karst off --function` took out last, and nothing brought back; in order.
std::vector<std::uint32_t> asked_off(const collect::Attached& target) {
  std::vector<bool> off(target.arena.function_count() + std::size_t{1});
  for (const reader::Switch& s : target.arena.switches()) {
    const bool asked = !s.on && s.reason == static_cast<std::uint32_t>(format::SwitchReason::kRequest);
    const std::uint64_t end = std::min<std::uint64_t>(std::uint64_t{s.first} + s.count, off.size());
    for (std::uint64_t id = s.first; s.first != 0 && id < end; ++id) off[id] = asked;
  }
  std::vector<std::uint32_t> ids;
  for (std::uint32_t id = 1; id < off.size(); ++id)
    if (off[id]) ids.push_back(id);
  return ids;
}

/// Does what is wished. Returns how to make it good again; none: the process goes off by itself when the time is up.
Result<std::optional<Undo>> switch_now(collect::Attached& target, const Wish& wish, const Chosen& chosen, bool on) {
  auto requester = collect::Requester::take(target);
  if (!requester) return requester.error();
  const bool some = !chosen.functions.empty();
  Undo undo;
  undo.enabled = collect::control_state(target.arena).enabled;
  undo.new_functions = target.arena.control_now().new_functions != 0;
  if (wish.budget) undo.budget = collect::control_state(target.arena).budget_ppm;
  if (wish.budget)
    if (const Status may = requester->set_budget(*wish.budget); !may) return may.error();
  requester->keep(chosen.kept);
  // Of a process that is off, these and no others.
  if (some && on && !undo.enabled) undo.off = leave_out_others(*requester, target, chosen.functions);
  if (some) (on ? undo.on : undo.off) = requester->choose(chosen.functions, on);
  if (on && !some && !wish.budget) undo.on = requester->choose(asked_off(target), true);
  // The process knows when its time is up, but nothing of what was chosen before.
  const bool by_process =
      wish.time_ns != 0 && on && !undo.enabled && !wish.budget && undo.on.empty() && undo.off.empty();
  const std::uint64_t ticks = static_cast<std::uint64_t>(static_cast<unsigned __int128>(wish.time_ns) *
                                                         live_clock(target).ticks_per_second / 1'000'000'000U);
  requester->set_off_at(by_process ? arch::time_stamp() + ticks : 0);
  if (on || !some) requester->set_enabled(on);
  if (const Status done = requester->apply(kLimit); !done) return done.error();
  return by_process ? std::nullopt : std::optional(std::move(undo));
}

Status switch_back(collect::Attached& target, const Undo& undo) {
  auto requester = collect::Requester::take(target);
  if (!requester) return requester.error();
  requester->choose(undo.off, true);
  requester->choose(undo.on, false);
  requester->set_new_functions(undo.new_functions);
  if (undo.budget)
    if (const Status may = requester->set_budget(*undo.budget); !may) return may.error();
  requester->set_off_at(0);
  requester->set_enabled(undo.enabled);
  return requester->apply(kLimit);
}

int note_for(collect::Attached& target, const Wish& wish) {
  const auto begun = begin_noting(target, wish.values, wish.time_ns);
  if (!begun) return fail(begun.error());
  if (wish.time_ns == 0 || begun->begun.empty()) return kExitOk;
  wait_for(wish.time_ns);
  return end_noting(target, begun->begun);
}

/// Something is asked for besides the process and patterns of functions.
bool asks_for_more(const Options& options) {
  const WatchArguments& watch = options.watch;
  return !options.not_functions.empty() || !options.time.empty() || !options.budget.empty() || !options.keep.empty() ||
         !watch.slowest.empty() || !watch.over.empty() || !watch.margin.empty() || options.stay || options.watches ||
         !options.values.arguments.empty() || !options.values.returned.empty() || options.end_values ||
         !options.system.empty();
}

int change(const Options& options, bool on) {
  if (!options.level.empty()) {
    if (asks_for_more(options)) return usage_error("--level goes with --function alone", "on");
    return list_or_set_levels({options.target, options.functions, options.level, {}});
  }
  if (options.detach) {
    if (asks_for_more(options) || !options.functions.empty())
      return usage_error("--detach goes with nothing else: it ends all", "off");
    return detach(options.target);
  }
  const auto wish = wish_of(options);
  if (!wish) return usage_error(wish.error().message, on ? "on" : "off");
  auto target = find_target(options.target);
  if (!target) return fail(target.error());
  if (!wish->systems.empty()) return on ? begin_systems(*target, wish->systems) : end_systems(*target, wish->systems);
  if (!wish->watch.rules.empty()) return begin_watching(*target, wish->watch, {options.stay, wish->time_ns});
  if (options.watches) return end_watching(*target);
  if (wish->values.any()) return note_for(*target, *wish);
  if (options.end_values) return end_noting(*target, {});
  const auto chosen = chosen_by(*wish, options, *target);
  if (!chosen) return fail(chosen.error());
  const auto undo = switch_now(*target, *wish, *chosen, on);
  if (!undo) return fail(undo.error());
  const std::string how_long = wish->time_ns != 0 ? " for " + duration_text(wish->time_ns) : "";
  if (wish->time_ns == 0 || !*undo) {
    say_of(*target, how_long + (wish->time_ns != 0 ? "; then it goes off by itself" : ""));
    return kExitOk;
  }
  say_of(*target, how_long + "; Ctrl-C ends that at once");
  wait_for(wish->time_ns);
  if (const Status done = switch_back(*target, **undo); !done) return fail(done.error());
  say_of(*target, " again");
  return kExitOk;
}

Command add(Command app, int& status, bool on) {
  auto options = std::make_shared<Options>();
  Command command = app.add_subcommand(
      on ? "on" : "off", on ? "Switch tracing of a running process on" : "Switch tracing of a running process off");
  add_target(command, options->target);
  command
      .add_option("-f,--function", options->functions,
                  on ? "Switch on functions whose demangled name matches; of a process that was off, only these"
                     : "Switch off only functions whose demangled name matches")
      .type_name("REGEX")
      .allow_extra_args(false);
  command.add_option("--not-function", options->not_functions, "But not those whose demangled name matches")
      .type_name("REGEX")
      .allow_extra_args(false);
  command.add_option("--for", options->time, "Only for TIME (5s, 200ms); then it is as it was before")
      .type_name("TIME");
  if (on) {
    command
        .add_option("--budget", options->budget,
                    "From now on keep what tracing costs below SHARE (like 5%), leaving out functions that cost most "
                    "and tell least; 'off' ends that")
        .type_name("SHARE");
    command.add_option("--keep", options->keep, "A budget leaves no function out whose demangled name matches")
        .type_name("REGEX")
        .allow_extra_args(false);
    add_watch_options(command, options->watch);
    add_value_options(command, options->values);
    add_system_option(command, options->system);
    command
        .add_option(
            "--level", options->level,
            "How much handlers of functions (karst_handle() in karst/karst.h; --function: of these) do: 0: they "
            "are not called, what other numbers mean is theirs to say. 'karst ps --levels' lists them")
        .type_name("N");
    command.add_flag("--stay", options->stay,
                     "With --slowest, --over: until Ctrl-C, watch the functions of libraries that come, too");
  } else {
    command.add_flag("--watches", options->watches,
                     "Watch for no slow calls any more (on --slowest, --over); tracing and what was kept stay");
    command
        .add_option("--system", options->system,
                    "Record no more of what the program asks of its system, as LIST with commas: locks, memory, files, "
                    "net, time (run, attach or on --system); tracing stays")
        .type_name("LIST")
        .allow_extra_args(false);
    command.add_flag("--values", options->end_values,
                     "Note no arguments and results any more (run or on --args, --returns); tracing stays");
    command.add_flag("--detach", options->detach,
                     "End all: tracing, watches and --system. The code is as in its files again; libkarst stays in the "
                     "process, idle, with the history for 'karst snapshot'. 'karst attach' traces again");
  }
  command.callback([options, &status, on] { status = change(*options, on); });
  return command;
}

}  // namespace

void register_on(Command app, int& status) {
  add(app, status, true)
      .footer(
          "Code is changed while threads execute it; none of them is held. Without patterns\n"
          "all that was traced before is traced again, also what 'off --function' took\n"
          "out; --function . chooses all there is. When --for is up, everything is as it\n"
          "was. karst waits for that, unless the process was off as a whole: then the\n"
          "process knows by itself when the time is up.");
}

void register_off(Command app, int& status) {
  add(app, status, false)
      .footer(
          "The program runs as if it were not traced. The history stays: 'karst snapshot'\n"
          "still gets it. Traces say when functions were switched off, so an absent call is\n"
          "not taken for one that did not happen.");
}

}  // namespace karst::cli
