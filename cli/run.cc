// karst run: runs a program traced and writes its trace.
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
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
#include "base/output_place.h"
#include "choice/function_filter.h"
#include "choice/function_lists.h"
#include "choice/places.h"
#include "cli/command.h"
#include "cli/help.h"
#include "cli/live_run.h"
#include "cli/names.h"
#include "cli/noting.h"
#include "cli/patched.h"
#include "cli/program_options.h"
#include "cli/progress.h"
#include "cli/run_summary.h"
#include "cli/samples.h"
#include "cli/states.h"
#include "cli/system.h"
#include "cli/text.h"
#include "cli/trace_input.h"
#include "cli/watch_options.h"
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

struct RunOptions {
  std::string output;
  std::vector<std::string> probes;
  std::string fail_overhead;  // empty: not asked for
  std::string live;           // empty: not asked for
  bool view = false;
  bool exec = false;
  std::string fibers;      // empty: not asked for
  std::string coroutines;  // the same
  std::vector<std::string> plugins;
  bool no_source = false;
  std::optional<std::uint32_t> sample;  // a second; none: as karst thinks best
  StateArguments states;
  SystemArguments system;
  std::vector<std::string> triggers;
  bool multi = false;
  std::string last = "200ms";
  ProgramOptions program;
};

using format::option_index;

constexpr const char* kFibersOfBoost = "boost";
constexpr const char* kAllCoroutines = "all";
constexpr const char* kNoCoroutines = "none";

/// What --live is without a file.
constexpr const char* kLiveToStderr = "stderr";

/// An older trace where the new one will be. It has a second name meanwhile, and is renamed to FILE.old when the new
/// one has calls, or back when it has none.
class OlderTrace {
 public:
  explicit OlderTrace(const std::string& file) {
    auto place = OutputPlace::find(file);
    if (!place || place->there() != OutputPlace::There::kFile) return;
    place_.emplace(std::move(*place));
    // Whoever may write to the directory may put anything there at any time: a FIFO would keep us waiting.
    const Descriptor there(sandbox::open_regular(place_->name().c_str(), O_NOFOLLOW, directory()));
    char magic[sizeof format::kFileMagic]{};
    if (!there || read(there.get(), magic, sizeof magic) != sizeof magic ||
        std::memcmp(magic, format::kFileMagic, sizeof magic) != 0)
      return;  // not ours to keep
    held_ = place_->name() + "." + std::to_string(getpid()) + ".old";
    if (linkat(directory(), place_->name().c_str(), directory(), held_.c_str(), 0) != 0) held_.clear();
  }
  ~OlderTrace() {
    if (!held_.empty()) unlinkat(directory(), held_.c_str(), 0);
  }
  OlderTrace(const OlderTrace&) = delete;
  OlderTrace& operator=(const OlderTrace&) = delete;

  void keep() { move_to(place_ ? place_->name() + ".old" : std::string()); }
  /// True if the older trace is in its place again.
  bool put_back() { return move_to(place_ ? place_->name() : std::string()); }

 private:
  int directory() const { return place_->directory().get(); }
  bool move_to(const std::string& name) {
    if (held_.empty() || renameat(directory(), held_.c_str(), directory(), name.c_str()) != 0) return false;
    held_.clear();
    return true;
  }

  std::optional<OutputPlace> place_;
  std::string held_;  // empty: there is none
};

/// Under sudo what we wrote belongs to who called it: that very file, whatever has its name by now.
void give_to_caller(const Descriptor& written, const std::string& name) {
  const char* const user = std::getenv("SUDO_UID");
  const char* const group = std::getenv("SUDO_GID");
  if (geteuid() != 0 || user == nullptr || group == nullptr) return;
  uid_t uid = 0;
  gid_t gid = 0;
  if (std::from_chars(user, user + std::strlen(user), uid).ec != std::errc() ||
      std::from_chars(group, group + std::strlen(group), gid).ec != std::errc())
    return;
  if (!written || fchown(written.get(), uid, gid) != 0) fail({name + " stays root's: " + std::strerror(errno)});
}

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
  recording.untraced = ran.untraced;
  recording.uncalled = !glob_lists(given).empty();  // say_unmatched_globs()
  collect::Standby standby([&] {
    recording.names = false;
    recording.on_kept = {};
    auto again = writing::TraceWriter::create(output);
    if (!again) return;
    if (const auto kept = collect::record(std::move(ran.processes), ran.pairs, recording, *again))
      fail({"karst died while it wrote the trace; " + output +
            " has all events, as a second process of karst has written it, and no names: 'karst resolve' adds them"});
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

int run(const RunOptions& options, const std::vector<std::string>& command) {
  const auto began = begin_of_karst();
  if (command.empty()) return usage_error("which program shall be run?", "run");
  const auto given = options.program.flags.read();
  if (!given) return usage_error(given.error().message, "run");
  const bool has_min_duration = given->has_flag(option_index("min-duration"));
  std::uint32_t most_overhead = 0;
  if (!options.fail_overhead.empty() && !format::parse_budget(options.fail_overhead.c_str(), most_overhead))
    return usage_error("--fail-overhead " + options.fail_overhead + ": a share from 0.1% to 100% is needed, like 5%",
                       "run");
  if (most_overhead != 0 && has_min_duration)
    return usage_error(
        "--fail-overhead and --min-duration do not go together: nothing tells what calls cost that are "
        "not kept",
        "run");
  if (has_min_duration && given->has_flag(option_index("budget")) && given->runtime.budget != 0)
    return usage_error("--budget and --min-duration do not go together: a budget goes by the events of all calls",
                       "run");
  if (!options.fibers.empty() && options.fibers != kFibersOfBoost && options.fibers != kFibersByStack &&
      options.fibers != kNoFibers)
    return usage_error("--fibers=" + options.fibers + ": boost, stack or none is needed", "run");
  if (!options.coroutines.empty() && options.coroutines != kAllCoroutines && options.coroutines != kNoCoroutines)
    return usage_error("--coroutines=" + options.coroutines + ": all or none is needed", "run");
  if (options.exec && (options.view || most_overhead != 0))
    return usage_error("--exec goes with neither --view nor --fail-overhead: nobody waits for karst then", "run");
  if (options.exec && getpid() == 1)
    return usage_error("--exec: when process 1 ends, the system ends all others, and karst could write no trace",
                       "run");
  if (options.fibers == kFibersByStack && given->has_flag(option_index("prefault")))
    return usage_error("--fibers=stack and --prefault do not go together: to find a stack takes system calls", "run");
  collect::LaunchOptions launch;
  const bool calls_alone = asks_for_calls(options, *given);
  launch.samples_if_untraced = !options.sample;
  launch.samples_per_second = options.sample.value_or(calls_alone || options.program.no_patch ? 0 : kSamplesPerSecond);
  launch.may_be_static = launch.samples_per_second != 0 && !calls_alone;
  if (const int wrong = prepare_launch(options.program, *given, command, "run", launch); wrong != 0) return wrong;
  format::RuntimeOptions& runtime = launch.runtime_options;
  launch.takes_place = options.exec;
  auto system = system_choice(options.system);
  if (!system) return usage_error(system.error().message, "run");
  launch.companions = std::move(system->libraries);
  launch.system = std::move(system->how);
  if (!options.program.no_patch) launch.plain.detours = system->functions();
  for (const std::string& text : options.probes) {
    auto probes = patch::ProbeChoice::parse(text);
    if (!probes) return usage_error("--probes " + probes.error().message, "run");
    launch.plain.probes.push_back(std::move(*probes));
  }
  // What a program asks of its system, says by probes or was sampled in is told also where no function can be traced.
  const std::uint32_t asked_samples = options.sample.value_or(0);
  const bool notes_alone = !launch.plain.probes.empty() || launch.program.has_notes;
  if ((!launch.companions.empty() || asked_samples != 0 || notes_alone) && !launch.program.has_sleds)
    runtime.empty = true;
  if (options.coroutines == kAllCoroutines || (options.coroutines.empty() && launch.program.has_coroutines))
    launch.choice.note_coroutines();
  if (options.fibers == kFibersByStack) runtime.stacks = true;
  if (options.fibers.empty() && !launch.program.stack_switcher.empty() && !runtime.prefault) {
    runtime.stacks = true;
    say_why_fibers(launch.program.stack_switcher);
  }
  if (options.fibers == kFibersOfBoost) {
    auto library = find_library("libkarst-contexts.so.0");
    if (!library) return fail(library.error());
    launch.companions.push_back(std::move(*library));
  }
  for (const std::string& plugin : options.plugins) {
    auto path = plugin_path(plugin);
    if (!path) return usage_error(path.error().message, "run");
    launch.companions.push_back(std::move(*path));
  }
  // A first look at a program as it is must not be a catastrophe. One that was built for tracing, which a launcher as
  // timeout or a shell starts, has what it would have if it were started itself.
  if (launch.plain.programs && !given->has(option_index("budget")) && runtime.min_duration_ns == 0)
    runtime.plain_budget = kPlainBudget;
  for (const std::string& text : options.triggers) {
    auto place = choice::PlaceName::parse(text);
    if (!place) return usage_error("--trigger: " + place.error().message, "run");
    launch.triggers.push_back(std::move(*place));
  }
  launch.several_triggers = options.multi;
  launch.on_missing_trigger = [](const reader::Problem& problem) { fail({problem.message}); };
  if (!format::parse_duration(options.last.c_str(), launch.trigger_last_ns))
    return usage_error("--last " + options.last + ": a time from 1ns to 10s is needed, like 200ms", "run");
  auto states = state_options(options.states);
  if (!states) return usage_error(states.error().message, "run");
  launch.states = *states;

  if (const std::string flags = given->flags(); launch.program.takes_no_runtime() && !flags.empty())
    fail({flags + ": without effect, as " + printable(command[0]) + " " +
          (launch.program.is_static ? "is statically linked" : launch.program.why_foreign) +
          ": it is sampled at best, and its calls are not traced"});
  if (const std::string why = why_counter_is_unsure(); !why.empty())
    fail({"times may be wrong: the processor's counter is not known to be constant and the same on all CPUs (" + why +
          ")"});
  if (isatty(STDERR_FILENO) == 1)
    launch.on_left_behind = [](std::size_t count) {
      std::fprintf(stderr, "karst: waiting for %s that the program left behind; Ctrl-C writes the trace now\n",
                   plural(count, "traced process", "es").c_str());
    };

  std::unique_ptr<LiveRun> live;
  if (!options.live.empty()) {
    auto made = LiveRun::to(options.live == kLiveToStderr ? std::string() : options.live);
    if (!made) return fail(made.error());
    live = std::move(*made);
    launch.on_arena = [&](pid_t pid, int arena) { live->add(pid, arena, launch.resolve); };
  }

  const std::string output =
      options.output.empty() ? std::filesystem::path(command[0]).filename().string() + ".karst" : options.output;
  auto writer = writing::TraceWriter::create(output);  // finds an unwritable place before the program has run
  if (!writer) return fail(writer.error());
  const Descriptor written = writer->duplicate();
  // From here on, so that no moment is without it between the program's end, which launch() waits for with these
  // signals blocked, and the trace's being there.
  std::optional<collect::Interruption> interruption(std::in_place);
  auto ran = collect::launch(launch);
  const std::string shown = live != nullptr ? live->finish() : std::string();
  if (live != nullptr && live->new_file() >= 0)
    give_to_caller(Descriptor(fcntl(live->new_file(), F_DUPFD_CLOEXEC, 3)), options.live);
  if (!ran) return fail(ran.error());

  const int status = exit_status(ran->wait_status);
  const int failed = status != 0 ? status : kExitFailed;
  if (!say_how_it_ran(launch, *ran, "trace", "not in the trace")) return status_without_trace(launch, *ran);
  OlderTrace older(output);
  const auto written_trace = [&]() -> Result<collect::RecordingSummary> {
    try {
      return write_trace(options, *given, launch, *ran, output, *writer);
    } catch (const std::bad_alloc&) {
      return Error{"cannot write the trace " + output + ": out of memory"};
    } catch (const std::exception& error) {
      return Error{"cannot write the trace " + output + ": " + error.what()};
    }
  };
  const auto summary = written_trace();
  interruption.reset();
  if (!summary) {
    fail(summary.error());
    return failed;
  }
  give_to_caller(written, output);
  if (summary->calls != 0 || summary->notes != 0 || ran->samples.samples.size() != 0) {
    older.keep();
  } else if (older.put_back()) {
    fail({"nothing was called: " + output + " is the older trace still"});
    return status;
  }
  for (const reader::Problem& p : summary->problems) fail({p.message});
  if (!shown.empty()) fail({shown});
  say_unmatched_globs(glob_lists(*given), output);
  report_missing_states(options.states, ran->states.source);
  say_how_sampled(asked_samples, ran->samples);
  say_what_was_patched(ran->plain, "as it was loaded", !calls_alone && has_few_calls(*summary, ran->cpu_ns));
  say_how_many_are_chosen(launch.choice, *ran);
  say_which_probes(launch.plain.probes, ran->plain);
  say_unseen_allocators(ran->plain);
  const double overhead = overhead_of(*summary, ran->cpu_ns);
  const char* const why_alone = !ran->samples_alone                     ? nullptr
                                : launch.program.is_static              ? "it is statically linked"
                                : launch.program.why_foreign != nullptr ? "the tracing runtime cannot be loaded into it"
                                                                        : "it has no function that can be traced";
  fail({printable(summary_line(output, *summary, ran->wait_status, overhead, launch.choice.values().any(),
                               ran->samples.samples.size(), why_alone, notes_alone ? summary->notes : 0,
                               time_taken(began, ran->times)))});  // no failure: it wraps the line as well
  if (options.view) view_traces({output}, false, false);  // says itself what goes wrong; the status stays the program's
  if (most_overhead != 0 && overhead < 0) {
    fail({"what tracing cost is not known, so --fail-overhead cannot tell"});
    return failed;
  }
  if (most_overhead != 0 && overhead * 1e6 > most_overhead) {
    fail({fmt::format("tracing cost more than the {} of --fail-overhead", options.fail_overhead)});
    return status != 0 ? status : kExitOver;
  }
  return status;
}

}  // namespace

void register_run(Command app, int& status, const std::vector<std::string>& program) {
  auto options = std::make_shared<RunOptions>();
  Command command = app.add_subcommand("run", "Run a program and trace its calls");
  command.footer(
      "Usage: karst run [OPTIONS] [--] PROGRAM [ARG...]\n\n"
      "Examples:\n"
      "  karst run ./app --its-own-option          writes app.karst\n"
      "  karst run --slowest 'serve.*:3' ./server  keeps the three slowest requests\n"
      "  karst run --budget 5% -o now.karst make   what make starts, at 5% cost\n\n"
      "PROGRAM may be any; built with karst-gcc or karst-g++, all its functions can be\n"
      "seen, and at the least cost. One that was not is patched as it is loaded, at a\n"
      "budget of 5%. Its standard streams and signals are its own. karst run ends with\n"
      "its exit status (127: not found, 128+n: killed by signal n) and says on stderr\n"
      "what was kept. Ctrl-C ends the program and keeps the trace. While the trace is\n"
      "being written Ctrl-C leaves names out, which 'karst resolve' adds; a second one\n"
      "ends karst. A trace that FILE holds already is kept as FILE.old.\n\n"
      "These may also stand in the environment, as in\n"
      "KARST_OPTIONS=\"memory=256M,off=1,no-trace=list.txt\": " +
      std::string(format::kRuntimeOptionNames.text) + ", " + format::kKarstOptionNames.text + ".");
  in_group(command, format::kTraceOptions, [&] {
    command.add_option("-o,--output", options->output, "Trace file to write (default: PROGRAM.karst)")
        .type_name("FILE");
    options->program.flags.add(command, format::kTraceOptions);
    command.add_flag("--no-source", options->no_source, "Leave the source text of the functions out of the trace");
    command.add_flag(std::string("--live{") + kLiveToStderr + "}", options->live,
                     "Print the calls while they are made, as karst tail does, on stderr; --live=FILE: into FILE");
    command.add_flag("--view", options->view, "Look at the trace in the browser then, as karst view does");
  });
  in_group(command, format::kCostOptions, [&] {
    options->program.flags.add(command, format::kCostOptions);
    command
        .add_option("--fail-overhead", options->fail_overhead,
                    "Exit with 3 if tracing cost more than this share of the program's CPU time, like 5%; a program "
                    "that fails keeps its own status")
        .type_name("SHARE");
    command.add_flag(
        std::string("--fibers{") + kFibersOfBoost + "}", options->fibers,
        "Show fibers of Boost.Context and Boost.Fiber each in a lane of its own, if the program has "
        "libboost_context as a shared library and does not say itself what its fibers are; "
        "--fibers=stack: all stacks that the program switches to, found by the stack pointer. That is "
        "so for programs with Boost.Context, libco, minicoro, PHP or Ruby in them; --fibers=none: it is not");
    command.add_flag(std::string("--coroutines{") + kAllCoroutines + "}", options->coroutines,
                     "Note at each resumption of a C++20 coroutine which one it is, for 'karst flows'. That is so for "
                     "programs whose symbols have coroutines; with this also where only libraries have some; "
                     "--coroutines=none: it is not");
  });
  in_group(command, format::kValueOptions, [&] {
    options->program.flags.add(command, format::kValueOptions);
    add_system_option(command, options->system);
    command
        .add_option("--plugin", options->plugins,
                    "Load this shared library with the program, for code of its own at functions' enter and leave "
                    "(karst_handle in karst/karst.h)")
        .type_name("FILE")
        .allow_extra_args(false);
    command
        .add_option("--probes", options->probes,
                    "Note each time that a probe is passed which the program's or a library's authors put into it "
                    "(sys/sdt.h), with its values: like 'python:*'. Values may be named and typed: "
                    "'db:query(id:uint,text:str)'; int, hex and type (of a std::type_info) are the other types. "
                    "'karst places --probes FILE' lists what FILE has")
        .type_name("PROVIDER:NAME")
        .allow_extra_args(false);
  });
  in_group(command, format::kMomentOptions, [&] {
    options->program.flags.add(command, format::kMomentOptions);
    command
        .add_option("--trigger", options->triggers,
                    "Keep what all threads did before PLACE was reached, with the arguments in its registers: a "
                    "function, traced or not, FILE:LINE, 0xADDRESS in the executable, MODULE+0xADDRESS; :N behind it "
                    "for the first N times (default 1). 'karst info' lists what was kept, --kept N shows it")
        .type_name("PLACE")
        .allow_extra_args(false);
    command.add_flag("--multi", options->multi, "A trigger's name may be that of several functions");
    command.add_option("--last", options->last, "How much of what came before a trigger is kept (default 200ms)")
        .type_name("TIME");
  });
  in_group(command, format::kBadEndOptions, [&] { options->program.flags.add(command, format::kBadEndOptions); });
  add_program_options(command, options->program);
  in_group(command, format::kProcessOptions, [&] {
    command.add_flag("--exec", options->exec,
                     "The program takes karst's place: it has the process number that karst was started with, and its "
                     "end and status are seen at once. Another process of karst, which is not its child, writes the "
                     "trace after that; its stderr is open until then");
  });
  in_group(command, "Running and waiting", [&] {
    add_state_options(command, options->states);
    add_sample_option(command, options->sample,
                      " (default: 1000 of a program of which nothing can be traced; 0: never)");
  });
  command.callback([options, &status, &program] { status = run(*options, program); });
}

}  // namespace karst::cli
