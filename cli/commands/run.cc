// SPDX-License-Identifier: MIT
// karst run: runs a program traced and writes its trace.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock_check.h"
#include "base/descriptor.h"
#include "choice/function_filter.h"
#include "choice/function_lists.h"
#include "choice/places.h"
#include "cli/command.h"
#include "cli/commands/count.h"
#include "cli/commands/every_call.h"
#include "cli/commands/live_run.h"
#include "cli/commands/live_view.h"
#include "cli/commands/older_trace.h"
#include "cli/commands/run_options.h"
#include "cli/commands/run_summary.h"
#include "cli/commands/samples.h"
#include "cli/input/noting.h"
#include "cli/input/patched.h"
#include "cli/input/program_options.h"
#include "cli/input/states.h"
#include "cli/input/system.h"
#include "cli/input/trace_input.h"
#include "cli/input/watch_options.h"
#include "cli/text/help.h"
#include "cli/text/names.h"
#include "cli/text/progress.h"
#include "cli/text/text.h"
#include "collect/launch/choose_functions.h"
#include "collect/launch/interruption.h"
#include "collect/launch/launch.h"
#include "collect/launch/program.h"
#include "collect/launch/standby.h"
#include "collect/record/recording.h"
#include "format/filter_list.h"
#include "format/options.h"
#include "format/trace.h"
#include "patch/places.h"
#include "reader/trace.h"
#include "sandbox/sandbox.h"
#include "write/trace_writer.h"

namespace karst::cli {
namespace {

using format::option_index;

/// Files of --no-trace and --only.
std::vector<std::string> glob_lists(const GivenOptions& given) {
  std::vector<std::string> lists = given.values(option_index("no-trace"));
  const std::vector<std::string>& only = given.values(option_index("only"));
  lists.insert(lists.end(), only.begin(), only.end());
  return lists;
}

Result<collect::RecordingSummary> write_trace(const RunOptions& options, const GivenOptions& given,
                                              const collect::LaunchOptions& launch, collect::LaunchResult& ran,
                                              const std::string& output, writing::TraceWriter& writer) {
  Progress progress("writing " + printable(output), collect::work_of(ran.processes));
  collect::RecordingOptions recording{!options.no_source, launch.resolve, &progress.done, &ran.states};
  recording.samples = &ran.samples;
  recording.raw_events = options.all.raw_events;
  recording.usage = &ran.usage;
  recording.untraced = ran.untraced;
  recording.uncalled = !glob_lists(given).empty();  // say_unmatched_globs()
  // What has its events in the file already cannot be written a second time.
  if (launch.all) return collect::record(std::move(ran.processes), ran.pairs, recording, writer);
  collect::Standby standby([&] {
    recording.names = false;
    recording.on_kept = {};
    auto again = writing::TraceWriter::create(output);
    if (!again) return;
    if (const auto kept = collect::record(std::move(ran.processes), ran.pairs, recording, *again))
      say("karst died while it wrote the trace; " + output +
          " has all events, as a second process of karst has written it, and no names: 'karst resolve' adds them");
    else
      fail(kept.error());
  });
  recording.on_kept = [&standby] { standby.dismiss(); };
  return collect::record(std::move(ran.processes), ran.pairs, recording, writer);
}

/// Something is asked for that only traced calls can tell.
bool asks_for_calls(const RunOptions& options, const GivenOptions& given) {
  return given.asks_for_calls() || !options.system.empty() || !options.probes.empty() || !options.triggers.empty() ||
         !options.live.empty() || !(options.fibers.empty() || options.fibers == kNoFibers) ||
         !options.plugins.empty() || options.coroutines == kAllCoroutines || !options.program.libraries.empty();
}

/// The library's whole path, as LD_PRELOAD can name it.
Result<std::string> plugin_path(const std::string& given) {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::canonical(given, error);
  if (error) return Error{"--plugin " + given + ": " + error.message()};
  std::array<char, 4> magic{};
  std::ifstream(path, std::ios::binary).read(magic.data(), magic.size());
  if (std::string_view(magic.data(), magic.size()) != "\177ELF")
    return Error{"--plugin " + given + ": it is no shared library, or cannot be read"};
  if (path.string().find_first_of(" \t:") != std::string::npos)
    return Error{"--plugin " + path.string() + ": a path without spaces and colons is needed, for LD_PRELOAD"};
  return path.string();
}

/// All that were made, and they are fewer than one in a millisecond of CPU time: the work was done elsewhere.
bool has_few_calls(const collect::RecordingSummary& summary, double cpu_ns) {
  constexpr double kLeastNs = 20e6;  // to start takes some of it
  return cpu_ns > kLeastNs && summary.overwritten == 0 && static_cast<double>(summary.calls) * 1e6 < cpu_ns;
}

/// Of a program that cannot be traced.
constexpr std::uint32_t kSamplesPerSecond = 1000;

/// When this process began, by what it has done since: it waited for nothing.
collect::RunTimes::Clock::time_point begin_of_karst() {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return collect::RunTimes::Clock::now() - std::chrono::seconds(used.tv_sec) - std::chrono::nanoseconds(used.tv_nsec);
}

/// One `karst run`: five phases that follow each other. Each but the last returns the exit status if the run ends with
/// it, which it has said then.
class Run {
 public:
  Run(const RunOptions& options, const std::vector<std::string>& command) : options_(options), command_(command) {}

  int all() {
    if (const Ended ended = read_options()) return *ended;
    if (const Ended ended = prepare()) return *ended;
    if (const Ended ended = run_program()) return *ended;
    if (const Ended ended = write()) return *ended;
    return tell();
  }

 private:
  using Ended = std::optional<int>;

  Ended read_options();
  Ended prepare();
  Ended run_program();
  Ended write();
  int tell();

  // Parts of the phases. The errors are of the command line, the others are what went wrong.
  Status check_together() const;
  Status choose_words_of_system();
  void choose_stacks();
  Status choose_triggers();
  Ended add_companions();
  void warn() const;
  Ended open_outputs();
  Result<collect::RecordingSummary> write_trace_in_time();
  void say_what_is_missing() const;
  std::string summary() const;
  int status_by_overhead() const;

  int status() const { return exit_status(ran_->wait_status); }
  int failed() const { return status() != 0 ? status() : kExitFailed; }

  const RunOptions& options_;
  FileRotation rotation_;
  std::optional<EveryCall> every_call_;
  const std::vector<std::string>& command_;
  const collect::RunTimes::Clock::time_point began_ = begin_of_karst();

  GivenOptions given_;
  std::uint32_t most_overhead_ = 0;  // in millionths of time; 0: not asked for
  bool calls_alone_ = false;         // something is asked for that only traced calls can tell
  bool notes_alone_ = false;         // what is said is told also where no function can be traced

  collect::LaunchOptions launch_;
  std::string output_;
  std::optional<writing::TraceWriter> writer_;
  std::unique_ptr<LiveRun> live_;
  LiveView live_view_;
  std::string shown_live_;
  std::optional<collect::Interruption> interruption_;
  std::optional<collect::LaunchResult> ran_;
  collect::RecordingSummary summary_;
};

Status Run::check_together() const {
  const bool has_min_duration = given_.has_flag(option_index("min-duration"));
  if (most_overhead_ != 0 && has_min_duration)
    return Error{
        "--fail-overhead and --min-duration do not go together: nothing tells what calls cost that are not kept"};
  if (has_min_duration && given_.has_flag(option_index("budget")) && given_.runtime.budget != 0)
    return Error{"--budget and --min-duration do not go together: a budget goes by the events of all calls"};
  const std::string& fibers = options_.fibers;
  if (!fibers.empty() && fibers != kFibersOfBoost && fibers != kFibersByStack && fibers != kNoFibers)
    return Error{"--fibers=" + fibers + ": boost, stack or none is needed"};
  if (!options_.coroutines.empty() && options_.coroutines != kAllCoroutines && options_.coroutines != kNoCoroutines)
    return Error{"--coroutines=" + options_.coroutines + ": all or none is needed"};
  const bool keeps_moments =
      !options_.triggers.empty() || given_.has(option_index("slowest")) || given_.has(option_index("over"));
  if (rotation_.when.any() && keeps_moments)
    return Error{"--rotate goes with no moment to keep (--trigger, --slowest, --over): all calls are kept"};
  if (options_.exec && (options_.view || most_overhead_ != 0))
    return Error{"--exec goes with neither --view nor --fail-overhead: nobody waits for karst then"};
  if (options_.exec && getpid() == 1)
    return Error{"--exec: when process 1 ends, the system ends all others, and karst could write no trace"};
  if (options_.all.blocking && given_.has_flag(option_index("prefault")))
    return Error{"--blocking and --prefault do not go together: to wait takes system calls"};
  if (fibers == kFibersByStack && given_.has_flag(option_index("prefault")))
    return Error{"--fibers=stack and --prefault do not go together: to find a stack takes system calls"};
  return Unit{};
}

Run::Ended Run::read_options() {
  auto given = options_.program.flags.read();
  if (!given) return usage_error(given.error().message, "run");
  given_ = std::move(*given);
  if (!options_.fail_overhead.empty() && !format::parse_budget(options_.fail_overhead.c_str(), most_overhead_))
    return usage_error("--fail-overhead " + options_.fail_overhead + ": a share from 0.1% to 100% is needed, like 5%",
                       "run");
  auto rotation = options_.all.check();
  if (!rotation) return usage_error(rotation.error().message, "run");
  rotation_ = *rotation;
  if (const Status fits = check_together(); !fits) return usage_error(fits.error().message, "run");
  calls_alone_ = asks_for_calls(options_, given_);
  return std::nullopt;
}

/// Fills launch_, and opens what is written to.
Run::Ended Run::prepare() {
  launch_.samples_if_untraced = !options_.sample;
  launch_.samples_per_second =
      options_.sample.value_or(calls_alone_ || options_.program.no_patch ? 0 : kSamplesPerSecond);
  launch_.may_be_static = launch_.samples_per_second != 0 && !calls_alone_;
  if (const int wrong = prepare_launch(options_.program, given_, command_, "run", launch_); wrong != 0) return wrong;
  launch_.takes_place = options_.exec;
  if (const Status chosen = choose_words_of_system(); !chosen) return usage_error(chosen.error().message, "run");
  choose_stacks();
  if (const Ended ended = add_companions()) return ended;
  // A first look at a program as it is must not be a catastrophe. One that was built for tracing, which a launcher as
  // timeout or a shell starts, has what it would have if it were started itself.
  format::RuntimeOptions& runtime = launch_.runtime_options;
  if (launch_.plain.programs && !given_.has(option_index("budget")) && runtime.min_duration_ns == 0)
    runtime.plain_budget = kPlainBudget;
  if (const Status chosen = choose_triggers(); !chosen) return usage_error(chosen.error().message, "run");
  auto states = state_options(options_.states);
  if (!states) return usage_error(states.error().message, "run");
  launch_.states = *states;
  const std::vector<std::string>& usage = given_.values(option_index("usage"));
  launch_.usage = usage.empty() || usage.back() == "on";
  launch_.states_are_enough = options_.states.are_asked_for();
  warn();
  return open_outputs();
}

/// What is recorded of the system, and by probes.
Status Run::choose_words_of_system() {
  auto system = system_choice(options_.system);
  if (!system) return system.error();
  launch_.companions = std::move(system->libraries);
  launch_.system = std::move(system->how);
  if (!options_.program.no_patch) launch_.plain.detours = system->functions();
  for (const std::string& text : options_.probes) {
    auto probes = patch::ProbeChoice::parse(text);
    if (!probes) return Error{"--probes " + probes.error().message};
    launch_.plain.probes.push_back(std::move(*probes));
  }
  // What a program asks of its system, says by probes or was sampled in is told also where no function can be traced.
  notes_alone_ = !launch_.plain.probes.empty() || launch_.program.has_notes;
  if ((!launch_.companions.empty() || options_.sample.value_or(0) != 0 || notes_alone_) && !launch_.program.has_sleds)
    launch_.runtime_options.empty = true;
  return Unit{};
}

/// Coroutines and fibers.
void Run::choose_stacks() {
  format::RuntimeOptions& runtime = launch_.runtime_options;
  if (options_.coroutines == kAllCoroutines || (options_.coroutines.empty() && launch_.program.has_coroutines))
    launch_.choice.note_coroutines();
  if (options_.fibers == kFibersByStack) runtime.stacks = true;
  if (options_.fibers.empty() && !launch_.program.stack_switcher.empty() && !runtime.prefault) {
    runtime.stacks = true;
    say_why_fibers(launch_.program.stack_switcher);
  }
}

/// Libraries that are loaded with the program, beside those of --system.
Run::Ended Run::add_companions() {
  if (options_.fibers == kFibersOfBoost) {
    auto library = find_library("libkarst-contexts.so.0");
    if (!library) return fail(library.error());
    launch_.companions.push_back(std::move(*library));
  }
  for (const std::string& plugin : options_.plugins) {
    auto path = plugin_path(plugin);
    if (!path) return usage_error(path.error().message, "run");
    launch_.companions.push_back(std::move(*path));
  }
  return std::nullopt;
}

Status Run::choose_triggers() {
  for (const std::string& text : options_.triggers) {
    auto place = choice::PlaceName::parse(text);
    if (!place) return Error{"--trigger: " + place.error().message};
    launch_.triggers.push_back(std::move(*place));
  }
  launch_.several_triggers = options_.multi;
  launch_.on_missing_trigger = [](const reader::Problem& problem) { say(problem.message); };
  if (!format::parse_duration(options_.last.c_str(), launch_.trigger_last_ns))
    return Error{"--last " + options_.last + ": a time from 1ns to 10s is needed, like 200ms"};
  return Unit{};
}

/// What is to be known before the program runs.
void Run::warn() const {
  if (const std::string flags = given_.flags(); launch_.program.takes_no_runtime() && !flags.empty())
    say(flags + ": without effect, as " + printable(command_[0]) + " " +
        (launch_.program.is_static ? "is statically linked" : launch_.program.why_foreign) +
        ": it is sampled at best, and its calls are not traced");
  if (const std::string why = why_counter_is_unsure(); !why.empty())
    say("times may be wrong: the processor's counter is not known to be constant and the same on all CPUs (" + why +
        ")");
}

/// Before the program has run, so that an unwritable place is found.
Run::Ended Run::open_outputs() {
  if (!options_.live.empty()) {
    auto made = LiveRun::to(options_.live == kLiveToStderr ? std::string() : options_.live);
    if (!made) return fail(made.error());
    live_ = std::move(*made);
    launch_.on_arena = [this](pid_t pid, int arena) { live_->add(pid, arena, launch_.resolve); };
  }
  output_ =
      options_.output.empty() ? std::filesystem::path(command_[0]).filename().string() + ".karst" : options_.output;
  auto writer = writing::TraceWriter::create(output_);
  if (!writer) return fail(writer.error());
  writer_.emplace(std::move(*writer));
  if (!options_.all.on) return std::nullopt;
  collect::GrowingTrace::Events events;
  events.begins = [this] {
    OlderTrace(output_).keep();
    give_to_caller(writer_->duplicate(), output_);
  };
  if (options_.view)
    events.begun = [this] {
      if (!live_view_.begun()) live_view_.begin(output_);
    };
  every_call_.emplace(options_.all, rotation_, *writer_, output_, !options_.no_source, std::move(events));
  launch_.all = every_call_->trace();
  return std::nullopt;
}

Run::Ended Run::run_program() {
  if (isatty(STDERR_FILENO) == 1)
    launch_.on_left_behind = [](std::size_t count) {
      say("waiting for " + plural(count, "traced process", "es") +
          " that the program left behind; Ctrl-C writes the trace now");
    };
  // From here on, so that no moment is without it between the program's end, which launch() waits for with these
  // signals blocked, and the trace's being there.
  interruption_.emplace();
  auto ran = collect::launch(launch_);
  if (live_ != nullptr) shown_live_ = live_->finish();
  if (live_ != nullptr && live_->new_file() >= 0)
    give_to_caller(Descriptor(fcntl(live_->new_file(), F_DUPFD_CLOEXEC, 3)), options_.live);
  if (!ran) return fail(ran.error());
  ran_.emplace(std::move(*ran));
  if (!say_how_it_ran(launch_, *ran_, "trace", "not in the trace")) return status_without_trace(launch_, *ran_);
  return std::nullopt;
}

Result<collect::RecordingSummary> Run::write_trace_in_time() {
  try {
    return write_trace(options_, given_, launch_, *ran_, output_, *writer_);
  } catch (const std::bad_alloc&) {
    return Error{"cannot write the trace " + output_ + ": out of memory"};
  } catch (const std::exception& error) {
    return Error{"cannot write the trace " + output_ + ": " + error.what()};
  }
}

Run::Ended Run::write() {
  const Descriptor written = writer_->duplicate();
  std::optional<OlderTrace> older;
  if (!writer_->grows()) older.emplace(output_);
  auto summary = write_trace_in_time();
  interruption_.reset();
  if (!summary) {
    fail(summary.error());
    return failed();
  }
  summary_ = std::move(*summary);
  give_to_caller(written, output_);
  if (summary_.calls != 0 || summary_.notes != 0 || ran_->samples.samples.size() != 0 || ran_->states_alone) {
    if (older) older->keep();
  } else if (older && older->put_back()) {
    say("nothing was called: " + output_ + " is the older trace still");
    return status();
  }
  return std::nullopt;
}

/// What was kept, what is not in the trace and why, and the page if it is asked for.
int Run::tell() {
  for (const reader::Problem& p : summary_.problems) say(p.message);
  if (!shown_live_.empty()) say(shown_live_);
  say_what_is_missing();
  say(printable(summary()));
  if (every_call_) every_call_->tell();
  if (live_view_.begun())
    live_view_.wait();
  else if (options_.view)
    view_traces({output_}, false, false);  // says itself what goes wrong; the status stays the program's
  return status_by_overhead();
}

void Run::say_what_is_missing() const {
  say_unmatched_globs(glob_lists(given_), output_);
  report_missing_states(options_.states, ran_->states.source);
  say_how_sampled(options_.sample.value_or(0), ran_->samples);
  say_what_was_patched(ran_->plain, "as it was loaded", !calls_alone_ && has_few_calls(summary_, ran_->cpu_ns));
  say_how_many_are_chosen(launch_.choice, *ran_);
  say_which_probes(launch_.plain.probes, ran_->plain);
  say_unseen_allocators(ran_->plain);
}

std::string Run::summary() const {
  if (ran_->states_alone)
    return summary_of_states(output_, ran_->states, ran_->wait_status, time_taken(began_, ran_->times));
  const char* const why_alone = !ran_->samples_alone        ? nullptr
                                : launch_.program.is_static ? "it is statically linked"
                                : launch_.program.why_foreign != nullptr
                                    ? "the tracing runtime cannot be loaded into it"
                                    : "it has no function that can be traced";
  return summary_line(output_, summary_, ran_->wait_status, overhead_of(summary_, ran_->cpu_ns),
                      launch_.choice.values().any(), ran_->samples.samples.size(), why_alone,
                      notes_alone_ ? summary_.notes : 0, time_taken(began_, ran_->times));
}

/// The program's own, unless --fail-overhead has something to say.
int Run::status_by_overhead() const {
  const double overhead = overhead_of(summary_, ran_->cpu_ns);
  if (most_overhead_ != 0 && overhead < 0) {
    fail({"what tracing cost is not known, so --fail-overhead cannot tell"});
    return failed();
  }
  if (most_overhead_ != 0 && overhead * 1e6 > most_overhead_) {
    fail({fmt::format("tracing cost more than the {} of --fail-overhead", options_.fail_overhead)});
    return status() != 0 ? status() : kExitOver;
  }
  return status();
}

}  // namespace

void register_run(Command app, int& status) {
  auto options = std::make_shared<RunOptions>();
  Command command = app.add_subcommand("run", "Run a program and trace its calls");
  add_run_options(command, *options);
  command.callback([options, command, &status] {
    const std::vector<std::string>& program = command.program();
    const CountOptions& counting = options->counting;
    if (const Status fits = check_counting(*options, command); !fits)
      status = usage_error(fits.error().message, "run");
    else if (program.empty())
      status = usage_error("which program shall be run?", "run");
    else
      status = counting.count ? count_calls(counting, options->program, options->output, program)
                              : Run(*options, program).all();
  });
}

}  // namespace karst::cli
