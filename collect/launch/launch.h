// SPDX-License-Identifier: MIT
// Runs a program under a session and waits for it and for the traced processes that it leaves behind.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "choice/function_choice.h"
#include "choice/places.h"
#include "collect/arena/watch.h"
#include "collect/launch/plain_programs.h"
#include "collect/launch/program.h"
#include "collect/launch/user.h"
#include "collect/record/recording.h"
#include "format/option_table.h"
#include "kernel/recorder.h"
#include "kernel/sampler.h"
#include "reader/usage.h"

namespace karst::collect {

struct LaunchOptions {
  Program program;
  std::vector<std::string> arguments;      ///< argv, the program's name first
  std::optional<User> user;                ///< runs the program; none: who runs this process
  std::string runtime;                     ///< path of libkarst.so
  std::vector<std::string> companions;     ///< further libraries to preload, behind the runtime
  std::string system;                      ///< KARST_SYSTEM for the program (format/system.h); empty: it is not set
  format::RuntimeOptions runtime_options;  ///< of the program; launch() adds what follows from the rest
  choice::FunctionChoice choice;           ///< functions to trace
  PlainChoice plain;                       ///< programs and libraries without sleds
  bool takes_place = false;                ///< the program gets this process, and another one records it
  bool wait = true;                        ///< for all traced processes, not for the program alone
  /// Called once if the program has ended and this many traced processes are waited for. May be empty.
  std::function<void(std::size_t)> on_left_behind;
  /// Called for each process that begins, or goes on as another program, with its arena, which is only borrowed. Before
  /// it is told to go, unless it was forked. May be empty.
  std::function<void(pid_t pid, int arena)> on_arena;
  /// Called for each trigger whose place the program does not have as it begins; libraries may have it later. May be
  /// empty.
  std::function<void(const reader::Problem&)> on_missing_trigger;
  kernel::StateOptions states;                  ///< how to record thread states
  std::uint32_t samples_per_second = 0;         ///< of a thread's CPU time; 0: none
  bool usage = false;                           ///< what processes and the machine use is read meanwhile
  bool samples_if_untraced = false;             ///< a program is sampled only if none of its functions can be traced
  bool states_are_enough = false;               ///< of a program that cannot be traced, thread states are kept
  bool may_be_static = false;                   ///< of a program that is, samples are enough
  std::vector<choice::PlaceName> triggers;      ///< places whose being reached is kept, with what came before
  WatchOptions watch;                           ///< calls to keep
  bool several_triggers = false;                ///< a name may mean several functions
  std::uint64_t trigger_last_ns = 200'000'000;  ///< so much of what came before
  std::shared_ptr<SpoolFile> all;               ///< takes all events before they are overwritten; null: the newest stay
  symbols::ResolveOptions resolve;              ///< how to find their names, when the choice needs them
};

/// How long Karst kept the run waiting, and when; moments and times are of the steady clock.
struct RunTimes {
  using Clock = std::chrono::steady_clock;
  Clock::time_point started{};  ///< the program was executed
  Clock::duration program{};    ///< it waited for its tables, and for what is chosen and patched in it
  Clock::duration others{};     ///< the same, of programs that were executed later
  std::uint64_t other_programs = 0;
  Clock::time_point ended{};  ///< nothing of the run was left
};

struct LaunchResult {
  std::int32_t wait_status = 0;  ///< of the program, as waitpid gives it
  double cpu_ns = 0;             ///< CPU time that it has had, with what it started and waited for
  std::vector<RecordedProcess> processes;
  std::vector<ClockPair> pairs;     ///< readings of the clock at both ends
  std::string failure;              ///< what ended karst's part while the program ran on; empty: nothing did
  bool reached = false;             ///< the runtime reported from the program itself
  bool impossible = false;          ///< a process could not be traced and said why itself
  std::uint64_t functions = 0;      ///< of all processes
  std::uint64_t functions_off = 0;  ///< left out by the filter
  std::set<std::string> names_off;  ///< of those, if --function left out all
  reader::StateLog states;          ///< what threads did beside their calls, or why that is not known
  reader::SampleLog samples;        ///< what they were sampled in, or why nothing was
  reader::UsageLog usage;           ///< what they and the machine used
  bool samples_alone = false;       ///< the program itself could not be traced, and was sampled
  bool states_alone = false;        ///< the same, and thread states are all that is known of it
  std::shared_ptr<kernel::StateRecorder> recorder;  ///< the kernel may still be removing what it recorded with
  std::vector<reader::UntracedProgram> untraced;    ///< programs that were started and that are not in the trace
  std::vector<PlainPrograms::Module> plain;         ///< what was patched that has no sleds
  std::set<std::string> loaded;                     ///< libraries without sleds (PlainPrograms::loaded())
  std::set<std::string> built_libraries;            ///< those that were built for tracing
  RunTimes times;
  std::vector<reader::Problem> problems;
};

/// Starts the program with the runtime preloaded; standard streams, signals and the terminal are its own. SIGTERM,
/// SIGHUP and the like sent to this process are passed on; Ctrl-C reaches the program by the terminal. Returns when the
/// program and, with `wait`, all traced processes have ended, or, after the program has, at a further Ctrl-C. Processes
/// that live then are in the result as they are. Error: it could not be started at all.
/// With `takes_place` it returns in the recorder, and never in this process, if that is to be the program; how the
/// program ended is then known only if its parent is slow to ask.
Result<LaunchResult> launch(const LaunchOptions& options);

}  // namespace karst::collect
