// SPDX-License-Identifier: MIT
// karst attach: waits until places in a running process are reached, and writes what led there.
#include "collect/launch/attach.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/descriptor_limit.h"
#include "cli/command.h"
#include "cli/commands/attach_options.h"
#include "cli/commands/every_call.h"
#include "cli/commands/followed.h"
#include "cli/commands/live_view.h"
#include "cli/commands/older_trace.h"
#include "cli/commands/samples.h"
#include "cli/input/chosen_functions.h"
#include "cli/input/noting.h"
#include "cli/input/patched.h"
#include "cli/input/program_options.h"
#include "cli/input/states.h"
#include "cli/input/system.h"
#include "cli/input/target.h"
#include "cli/text/text.h"
#include "collect/launch/interruption.h"
#include "collect/launch/sampled_process.h"
#include "collect/launch/trigger.h"
#include "collect/live/control.h"
#include "format/options.h"
#include "kernel/quiet_thread.h"
#include "kernel/sampler.h"
#include "kernel/usage_recorder.h"
#include "write/trace_writer.h"

namespace karst::cli {
namespace {

constexpr std::chrono::milliseconds kSwitchLimit{10'000};

enum class Ended { kDone, kStopped, kProcessGone };

using Time = std::chrono::steady_clock;

/// Signals that ask us to end wait from here on until somebody takes them.
sigset_t hold_endings() {
  sigset_t taken;
  sigemptyset(&taken);
  for (const int s : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&taken, s);
  sigprocmask(SIG_BLOCK, &taken, nullptr);
  return taken;
}

struct Until {
  std::optional<Time::time_point> time;
  const LiveView& page;  ///< if it has begun: until it is closed
};

/// Until all triggers were hit, if there are any, Ctrl-C, the process's end, or `until`.
Result<Ended> wait_for_hits(const HeldProcess& process, bool has_triggers, collect::Triggers& triggers,
                            std::uint64_t last, Followed& followed, const Until& until) {
  constexpr int kLookEveryMs = 50;  // for libraries that came, and for programs that others have become
  const sigset_t taken = hold_endings();
  const Descriptor signals(signalfd(-1, &taken, SFD_CLOEXEC));
  if (!signals) return Error{std::string("cannot wait for Ctrl-C by a descriptor: ") + std::strerror(errno)};
  const Descriptor ended = process.ending();
  while (true) {
    // One that is negative is passed over.
    std::vector<pollfd> descriptors = {
        {signals.get(), POLLIN, 0}, {ended.get(), POLLIN, 0}, {until.page.ending(), POLLIN, 0}};
    triggers.add_descriptors(descriptors);
    kernel::wait_for(descriptors, followed.keeps_all() ? followed.drain() : kLookEveryMs);
    for (collect::TriggerHit& hit : triggers.take()) {
      std::fprintf(stderr, "karst: %s was reached in thread %d\n", printable(hit.what).c_str(),
                   static_cast<int>(hit.hit.tid));
      if (collect::RecordedProcess* of = followed.find(hit.hit.pid); of != nullptr)
        collect::keep_hit(std::move(hit), last, *of);
      else
        say(fmt::format("process {} ended, or made no traced call, before its history could be read", hit.hit.pid));
    }
    if (has_triggers && triggers.done()) return Ended::kDone;
    if (descriptors[0].revents != 0 || descriptors[2].revents != 0 || (until.time && Time::now() >= *until.time))
      return Ended::kStopped;
    if (descriptors[1].revents != 0 || !process.is_there()) return Ended::kProcessGone;
    if (!has_triggers) continue;
    if (const Status armed = followed.look_for_execs(triggers); !armed) return armed.error();
    if (!triggers.waiting()) continue;
    if (const Status armed = triggers.arm_again(); !armed) return armed.error();
  }
}

/// NAME-PID-N.karst, N being the first number that is free.
std::string free_name(const std::string& stem) {
  for (int number = 1;; ++number) {
    std::string path = stem + "-" + std::to_string(number) + ".karst";
    if (std::error_code error; !std::filesystem::exists(path, error)) return path;
  }
}

/// `budget`: in ppm; 0: there shall be none. Without, it is as it was. `only`: these functions and no others; null:
/// those that were on.
Status switch_on(collect::Attached& target, std::optional<std::uint32_t> budget,
                 const std::vector<std::uint32_t>* only) {
  auto requester = collect::Requester::take(target);
  if (!requester) return requester.error();
  if (budget)
    if (Status set = requester->set_budget(*budget); !set) return set;
  if (only != nullptr) {
    leave_out_others(*requester, target, *only);
    requester->choose(*only, true);
  }
  requester->set_off_at(0);
  requester->set_enabled(true);
  return requester->apply(kSwitchLimit);
}

/// Nobody looks any more, and nobody had asked for it before. The process may have ended.
void switch_off(const HeldProcess& process) {
  if (!process.is_there()) return;
  auto target = collect::attach(process);
  if (!target) return say(target.error().message);
  auto requester = collect::Requester::take(*target);
  if (!requester) return say(requester.error().message);
  requester->set_enabled(false);
  if (const Status done = requester->apply(kSwitchLimit); !done) return say(done.error().message);
  say(fmt::format("process {} is not traced any more", process.number()));
}

std::string stop_words(const collect::PatchedCode& patched) {
  const std::string longest = duration_text(patched.longest_stop_ns);
  std::string words = patched.stops == 1
                          ? "all threads were stopped once, for " + longest
                          : fmt::format("all threads were stopped {} times, for {} at most", patched.stops, longest);
  constexpr std::uint64_t kMuch = 10'000'000;
  if (patched.calls_ns >= kMuch)
    words += fmt::format("; one did libkarst's part, for {} at most", duration_text(patched.calls_ns));
  if (patched.left != 0)
    words +=
        "; " + plural(patched.left, "function") + " left alone: " +
        (patched.problem.empty() ? "threads stand there, a jump would lie in two pages, or it is not as in its file"
                                 : patched.problem);
  return words;
}

/// To a process that has sleds, or was traced before.
void say_what_adds_nothing(const AttachOptions& options) {
  for (const auto& [option, is_given] : {std::pair{"--library", !options.libraries.empty()},
                                         {"--probes", !options.probes.empty()},
                                         {"--min-instructions", !options.min_instructions.empty()},
                                         {"--fibers", !options.fibers.empty()},
                                         {"--memory", options.memory.has_value()}})
    if (is_given)
      say(std::string(option) + " adds nothing to a process that has sleds, or was traced before; start it with " +
          "'karst run " + option + "'");
}

/// Finds the process, which gets libkarst if it has none; says what was patched.
Result<collect::Attached> find_or_load(const AttachOptions& options, const HeldProcess& process,
                                       const collect::PlainAttach& plain, collect::Brought& brought) {
  collect::PlainPrograms programs(plain.choice);
  auto target = find_or_load_target(process, plain, programs, brought);
  say_what_was_patched(programs.modules(), "as it runs");
  if (target && brought.patched) {
    say_what_was_not_named(plain.choice.libraries, programs.modules(), programs.loaded(), {});
    say_which_probes(plain.choice.probes, programs.modules());
  } else if (target) {
    say_what_adds_nothing(options);
  }
  if (target && brought.patched) say(stop_words(*brought.patched));
  if (target && brought.patched && !plain.stacks) say_why_fibers(collect::stack_switcher(programs));
  return target;
}

/// Of a process that had libkarst or has sleds, which goes on with its own budget if none is given. Code that karst
/// detach has put back gets its jumps again. `given`: what was read of the options. `is_on`: it is traced.
Status go_on(collect::Attached& target, const AttachOptions& options, const format::RuntimeOptions& given, bool is_on) {
  if (!is_on) {
    const auto patched = collect::write_jumps(target.held);
    if (!patched) return patched.error();
    if (patched->functions != 0) say(stop_words(*patched));
  }
  if (!options.budget && !chooses(options) && is_on) return Unit{};
  std::optional<std::uint32_t> budget;
  if (options.budget) budget = given.budget;
  if (!chooses(options)) return switch_on(target, budget, nullptr);
  const auto chosen = functions_meant(target, choice::FunctionFilter(options.functions, options.not_functions));
  if (!chosen) return Error{chosen.error().message + "\nThe process has libkarst, and goes on"};
  return switch_on(target, budget, &*chosen);
}

/// Without a place to wait for: the process is traced from here on.
int bring_in(const AttachOptions& options, const collect::PlainAttach& plain, const choice::ValueChoice& values,
             const std::vector<collect::SystemWish>& systems) {
  const auto process = find_process(options.target);
  if (!process) return fail(process.error());
  collect::Brought brought;
  auto target = find_or_load(options, *process, plain, brought);
  if (!target) return fail(target.error());
  const collect::ControlState state = collect::control_state(target->arena);
  if (!brought.patched || chooses(options))
    if (const Status on = go_on(*target, options, plain.options, state.enabled || brought.patched); !on)
      return fail(on.error());
  const auto pid = static_cast<int>(target->process.pid);
  const char* what = brought.tracing ? "is traced from now on"
                     : state.enabled ? "was traced already"
                                     : "is traced again";
  const std::uint64_t left = brought.patched ? std::min<std::uint64_t>(brought.patched->left, state.functions) : 0;
  const std::string count = count_text(state.functions - left);
  const std::vector<reader::Module> modules = target->arena.process_without_functions().modules;
  const bool interprets = std::any_of(modules.begin(), modules.end(),
                                      [](const reader::Module& m) { return m.path == format::kPythonModule; });
  std::fprintf(stderr, "karst: process %d (%s) %s, %s functions%s\n", pid, printable(target->process.name).c_str(),
               what,
               chooses(options) ? (count_text(collect::control_state(target->arena).chosen) + " of " + count).c_str()
                                : count.c_str(),
               interprets ? ", and those of Python as they are called" : "");
  if (values.any())
    if (const auto begun = begin_noting(*target, values, 0); !begun) return fail(begun.error());
  const int status = systems.empty() ? kExitOk : begin_systems(*target, systems);
  std::fprintf(stderr, "karst: its last moments: karst snapshot %d; untraced: karst off --detach %d\n", pid, pid);
  return status;
}

/// Whose code is being sampled, and what is known of its calls.
struct Sampled {
  HeldProcess held;
  std::string name;
  std::optional<collect::Attached> traced;  ///< none: only samples can be had of it
  bool was_off = false;                     ///< or had no libkarst
};

/// As find_or_load(). With --sample and --no-patch nothing comes into the process. Where libkarst cannot come into it,
/// samples will do, which is said.
Result<Sampled> find_sampled(const AttachOptions& options, const collect::PlainAttach& plain,
                             collect::Brought& brought) {
  const auto process = find_process(options.target);
  if (!process) return process.error();
  auto facts = collect::process_facts(*process);
  if (!facts) return facts.error();
  const bool stays_as_it_is =
      options.no_patch && options.triggers.empty() && options.probes.empty() && options.libraries.empty();
  auto target = stays_as_it_is ? collect::attach(*process) : find_or_load(options, *process, plain, brought);
  if (target) {
    const bool is_on = collect::control_state(target->arena).enabled;
    if (!brought.patched || chooses(options))
      if (const Status on = go_on(*target, options, plain.options, is_on || brought.patched); !on) return on.error();
    if (!is_on && !brought.patched)
      say(fmt::format("process {} ({}) is traced again", process->number(), printable(target->process.name)));
    return Sampled{*process, target->process.name, std::move(*target), !is_on || brought.tracing};
  }
  facts = collect::process_facts(*process);
  const bool may_be_sampled = facts && facts->state != 'Z' && (stays_as_it_is || facts->state != 'T') &&
                              (geteuid() == 0 || facts->uid == geteuid());
  if (!may_be_sampled || !options.triggers.empty()) return target.error();
  if (!stays_as_it_is) say(target.error().message + "; only samples are taken");
  return Sampled{*process, facts->name, std::nullopt, false};
}

/// What is written of what was followed.
struct Kept {
  std::uint64_t from = ~std::uint64_t{0};
  std::uint64_t to = 0;
  std::size_t moments = 0;
};

Kept kept_of(const std::vector<collect::RecordedProcess>& processes) {
  Kept kept;
  for (const collect::RecordedProcess& process : processes) {
    for (const reader::Moment& moment : process.moments) {
      kept.from = std::min(kept.from, moment.kept_from);
      kept.to = std::max(kept.to, moment.kept_to);
      ++kept.moments;
    }
  }
  return kept;
}

/// What was followed from `begin` to `end`, or what was kept of it. Returns an exit status.
int write_attached(const AttachOptions& options, std::vector<collect::RecordedProcess> processes,
                   const ClockPair& begin, const ClockPair& end, reader::StateLog states, reader::SampleLog samples,
                   const reader::UsageLog& usage, writing::TraceWriter& writer, const std::string& output) {
  const bool has_triggers = !options.triggers.empty();
  const bool is_sampled = options.sample.value_or(0) != 0;
  const Kept kept = kept_of(processes);
  collect::RecordingOptions recording;
  recording.source = !options.no_source;
  recording.raw_events = options.all.raw_events;
  const std::uint64_t from = has_triggers ? kept.from : begin.ticks;
  const std::uint64_t to = has_triggers ? kept.to : end.ticks;
  if (!options.all.on) {  // else all of it is in the file already
    recording.from = from;
    recording.to = to;
  }
  states = excerpt_states(states, from, to);
  report_missing_states(options.states, states.source);
  recording.states = &states;
  samples = reader::excerpt_samples(samples, from, to);
  if (is_sampled) recording.samples = &samples;
  const reader::UsageLog used = reader::excerpt_usage(usage, from, to);
  recording.usage = &used;
  const collect::Interruption interruption;
  const auto summary = collect::record(std::move(processes), {begin, end}, recording, writer);
  if (!summary) return fail(summary.error());
  for (const reader::Problem& problem : summary->problems) say(problem.message);
  std::string what = has_triggers ? plural(kept.moments, "moment") + " kept" : std::string();
  if (is_sampled) what += (what.empty() ? "" : ", ") + plural(samples.samples.size(), "sample");
  if (summary->calls != 0 || has_triggers) what += (what.empty() ? "" : ", ") + count_text(summary->calls) + " calls";
  std::fprintf(stderr, "karst: %s: %s\n", printable(output).c_str(), what.c_str());
  return kExitOk;
}

int attach(const AttachOptions& options) {
  const auto plain = plain_attach(options);
  if (!plain) return kExitUsage;
  const choice::ValueChoice values(options.values.arguments, options.values.returned);
  auto systems = system_choice(options.system);
  if (!systems) return usage_error(systems.error().message, "attach");
  if (options.no_patch)
    for (collect::SystemWish& wish : systems->wishes) wish.functions.clear();
  const std::uint32_t per_second = options.sample.value_or(0);
  const bool has_triggers = !options.triggers.empty();
  if (!has_triggers && per_second == 0 && !options.all.on) return bring_in(options, *plain, values, systems->wishes);
  std::vector<choice::PlaceName> places;
  for (const std::string& text : options.triggers) {
    auto place = choice::PlaceName::parse(text);
    if (!place) return usage_error("--trigger: " + place.error().message, "attach");
    places.push_back(std::move(*place));
  }
  std::uint64_t last_ns = 0;
  if (!format::parse_duration(options.last.c_str(), last_ns))
    return usage_error("--last " + options.last + ": a time from 1ns to 10s is needed, like 200ms", "attach");
  std::optional<std::chrono::nanoseconds> length;
  if (!options.length.empty()) {
    const auto parsed = parse_duration(options.length);
    if (!parsed) return usage_error("--for " + parsed.error().message, "attach");
    length = std::chrono::nanoseconds(*parsed);
  }
  auto states = state_options(options.states);
  if (!states) return usage_error(states.error().message, "attach");
  const auto rotation = options.all.check();
  if (!rotation) return usage_error(rotation.error().message, "attach");
  collect::TriggerClock clock;  // measures the rate of time from here on
  collect::Brought brought;
  auto found = find_sampled(options, *plain, brought);
  if (!found) return fail(found.error());
  auto& target = found->traced;
  if (target && values.any())
    if (const auto begun = begin_noting(*target, values, 0); !begun) return fail(begun.error());
  if (target && !systems->wishes.empty())
    if (const int status = begin_systems(*target, systems->wishes); status != kExitOk) return status;
  if (!target && options.all.on) return fail({"so its calls cannot be kept"});
  if (!target && (values.any() || !systems->wishes.empty()))
    return fail({"so nothing of what --args, --returns and --system ask for can be recorded"});
  const HeldProcess& process = found->held;
  const pid_t pid = process.number();
  std::replace(found->name.begin(), found->name.end(), '/', '_');  // the kernel's own name of a thread may have one
  const std::string output =
      options.output.empty() ? free_name(found->name + "-" + std::to_string(pid)) : options.output;
  auto writer = writing::TraceWriter::create(output);
  if (!writer) return fail(writer.error());
  symbols::ResolveOptions resolve;
  if (target)
    resolve = collect::resolve_options(*target);
  else
    resolve.as = sandbox::Credentials::of_process(process, geteuid(), getegid());
  const ClockPair begin = read_clock_pair();
  Followed followed;
  reader::Process untraced;
  if (target)
    followed.add(process, std::move(target->arena));
  else
    untraced = collect::running_process(process);
  LiveView page;
  if (const auto frames = frames_of(options)) page.answer_by(frames->first, frames->second);
  std::optional<EveryCall> every_call;
  std::shared_ptr<collect::GrowingTrace> growing;
  if (options.all.on) {
    collect::GrowingTrace::Events events;
    events.begins = [&] { give_to_caller(writer->duplicate(), output); };
    if (options.view)
      events.begun = [&] {
        if (!page.begun()) page.begin(output);
      };
    growing =
        every_call.emplace(options.all, *rotation, *writer, output, !options.no_source, std::move(events)).trace();
    followed.keep_all(growing);
  }
  collect::Triggers triggers(std::move(places), options.multi, resolve);
  raise_descriptor_limit();  // an event needs one, and each thread has some
  kernel::StateRecorder recorder(*states);
  recorder.attach(pid);
  kernel::UsageRecorder usage;
  if (options.usage != "off") usage.start(process);
  if (growing)
    growing->complete_files_by([&recorder, &usage](writing::TraceWriter& file, std::uint64_t from, std::uint64_t to) {
      file.add_states(reader::excerpt_states(recorder.look(), from, to));
      file.add_usage(reader::excerpt_usage(usage.look(), from, to));
    });
  kernel::Sampler sampler({per_second, states->wanted != kernel::Wanted::kOff, resolve.as});
  if (const Status sampled = sampler.attach(process); !sampled) {
    if (!has_triggers && !options.all.on) return fail({"nothing can be sampled: " + sampled.error().message});
    say("nothing is sampled: " + sampled.error().message);
  }
  if (has_triggers)
    if (const Status armed = triggers.arm(process); !armed) return fail(armed.error());
  for (const reader::Problem& problem : triggers.missing())
    if (triggers.waiting()) say(problem.message);
  hold_endings();  // who reads that may send one
  std::fprintf(stderr,
               has_triggers     ? "karst: waiting for process %d; Ctrl-C ends that\n"
               : options.all.on ? "karst: all calls of process %d are kept; Ctrl-C ends that, and finishes the trace\n"
                                : "karst: process %d is sampled; Ctrl-C ends that, and writes the trace\n",
               static_cast<int>(pid));
  auto ended = wait_for_hits(process, has_triggers, triggers, clock.to_ticks(last_ns), followed,
                             {length ? std::optional(Time::now() + *length) : std::nullopt, page});
  if (!ended) return fail(ended.error());
  const ClockPair end = read_clock_pair();
  reader::SampleLog samples = sampler.stop();
  reader::UsageLog used = usage.stop();
  std::vector<collect::RecordedProcess> processes = followed.take(!has_triggers);
  reader::StateLog log = recorder.stop();
  if (growing) growing->leave_out_older(log, samples, used);
  if (!target) processes.push_back(collect::sampled_process(std::move(untraced), begin, resolve.as, samples, log));
  if (processes.empty())
    return fail({*ended == Ended::kProcessGone
                     ? "the process ended, and nothing of it was reached: no trace was written"
                     : "nothing was reached: no trace was written"});
  if (!has_triggers && *ended == Ended::kProcessGone) processes.front().end_ticks = end.ticks;
  collect::add_sampled_processes(processes, begin, resolve.as, samples, log);
  const Descriptor written = writer->duplicate();
  const int status = write_attached(options, std::move(processes), begin, end, std::move(log), std::move(samples), used,
                                    *writer, output);
  if (status == kExitOk) give_to_caller(written, output);
  if (every_call) every_call->tell();
  if (options.view && found->was_off) switch_off(process);
  if (page.begun()) page.wait();
  return status;
}

}  // namespace

void register_attach(Command app, int& status) {
  auto options = std::make_shared<AttachOptions>();
  Command command =
      app.add_subcommand("attach", "Trace a process that runs; wait for a place in it, and write what led there");
  add_attach_options(command, *options);
  command.callback([options, command, &status] {
    const Status fits = check_attach_options(*options, command);
    status = fits ? attach(*options) : usage_error(fits.error().message, "attach");
  });
}

}  // namespace karst::cli
