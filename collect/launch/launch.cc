// SPDX-License-Identifier: MIT
#include "collect/launch/launch.h"

#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <exception>
#include <filesystem>
#include <iterator>
#include <map>
#include <memory>
#include <new>
#include <span>
#include <utility>

#include "base/clock.h"
#include "base/descriptor_limit.h"
#include "collect/launch/answer.h"
#include "collect/launch/heritage.h"
#include "collect/launch/processes.h"
#include "collect/launch/program_start.h"
#include "collect/launch/run_triggers.h"
#include "collect/launch/sampled_process.h"
#include "collect/launch/session.h"
#include "collect/launch/untraced_programs.h"
#include "collect/launch/waiting_signals.h"
#include "collect/launch/watch_problems.h"
#include "kernel/quiet_thread.h"
#include "kernel/usage_recorder.h"

namespace karst::collect {
namespace {

double ns_of(const timeval& t) { return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_usec) * 1e3; }

class Launcher {
 public:
  Launcher(const LaunchOptions& options, Session session) : options_(options), session_(std::move(session)) {}

  Status start() {
    if (signals_.descriptor() < 0) return Error{std::string("cannot take signals by a descriptor: ") + signals_.why()};
    result_.pairs.push_back(read_clock_pair());
    ProgramStart program(options_, signals_);
    if (const Status made = program.make(session_.key()); !made) return made.error();
    program_ = program.process();
    if (options_.takes_place) other_ = OtherProcess(program_);
    states_->start(program_);
    if (options_.usage) usage_.start(program_);
    if (options_.program.takes_no_runtime() || !options_.samples_if_untraced) {
      const Status sampled = sampler_.start(program_);
      result_.samples_alone = options_.program.takes_no_runtime() && sampler_.works();
      if (!sampled && options_.program.is_static)
        return Error{options_.program.path.string() + " is statically linked, so that it could only be sampled, and " +
                     sampled.error().message};
    }
    result_.times.started = RunTimes::Clock::now();
    return program.let_begin();
  }

  /// Whatever became of the recording, the program's result is passed on.
  LaunchResult wait_untraced(const std::string& why) {
    std::vector<pollfd> descriptors = {{signals_.descriptor(), POLLIN, 0}};
    while (running_) {
      kernel::wait_for(descriptors, unsure_ ? 50 : -1);
      take_signals();
      if (unsure_) look_after_program();
    }
    LaunchResult result;
    result.wait_status = result_.wait_status;
    result.failure = why;
    return result;
  }

  LaunchResult wait() {
    raise_descriptor_limit();  // each process that lives has one
    if (options_.all)
      options_.all->complete_files_by([this](writing::TraceWriter& writer, std::uint64_t from, std::uint64_t to) {
        writer.add_states(reader::excerpt_states(states_->look(), from, to));
        writer.add_usage(reader::excerpt_usage(usage_.look(), from, to));
      });
    processes_.keep_all(options_.all);
    while (!stop_) {
      std::vector<pollfd> descriptors = {{signals_.descriptor(), POLLIN, 0}};
      session_.add_descriptors(descriptors);
      if (other_.end()) descriptors.push_back({other_.end().get(), POLLIN, 0});
      const std::size_t first_process = descriptors.size();
      processes_.add_descriptors(descriptors);
      const std::size_t end_of_processes = descriptors.size();
      triggers_.add_descriptors(descriptors);
      const bool look_again = processes_.look_after_unwatched() || triggers_.waiting() || unsure_;
      const int drain_again = processes_.drain();
      kernel::wait_for(descriptors, drain_again >= 0 ? drain_again : look_again ? 50 : -1);
      triggers_.take_hits();  // before a report that the process has become another program
      // Reports before ends: one that a process sent before it died is there by then.
      take_reports();
      triggers_.take_hits();  // before ends, too
      processes_.notice_ends(std::span(descriptors).subspan(first_process, end_of_processes - first_process));
      if (triggers_.waiting()) triggers_.look_again();
      take_signals();
      if (running_ && other_.end() && (descriptors[first_process - 1].revents & POLLIN) != 0) {
        running_ = false;
        const OtherProcess::End end = other_.how_it_ended();
        result_.wait_status = end.wait_status;
        result_.cpu_ns = end.cpu_ns;
        other_ = OtherProcess();
      }
      if (unsure_) look_after_program();
      if (!running_ && !others_left()) break;
    }
    return finish();
  }

 private:
  void add_problems(std::vector<reader::Problem> problems) {
    std::move(problems.begin(), problems.end(), std::back_inserter(result_.problems));
  }

  void take_reports() {
    for (auto arrivals = session_.take(); !arrivals.empty(); arrivals = session_.take())
      for (Arrival& arrival : arrivals) arrive(std::move(arrival));
  }

  void arrive(Arrival arrival) {
    if (arrival.kind == format::HelloKind::kStarts) {
      untraced_.see(arrival.arena.get(), arrival.first_function != 0,
                    static_cast<format::StartsHow>(arrival.function_count));
      return;
    }
    if (arrival.kind == format::HelloKind::kAsks) {
      triggers_.take_hits();  // up to now
      RecordedProcess* process = processes_.find(arrival.origin);
      give_answer(std::move(arrival), *states_, process);
      return;
    }
    const RunTimes::Clock::time_point now = RunTimes::Clock::now();
    if (arrival.kind == format::HelloKind::kPatches) {
      waiting_.try_emplace(arrival.pid, now);
      return plain_.answer(std::move(arrival));
    }
    if (arrival.kind == format::HelloKind::kFinds) return processes_.find_functions(std::move(arrival));
    if (arrival.pid == program_) result_.reached = true;
    if (arrival.outcome == format::HelloOutcome::kImpossible) result_.impossible = true;
    // It waits for its go.
    if (options_.samples_if_untraced && arrival.pid == program_ && arrival.outcome == format::HelloOutcome::kNoSleds &&
        !sampler_.works() && sampler_.attach(program_) && sampler_.works())
      result_.samples_alone = true;
    const pid_t pid = arrival.pid;
    const bool forked = arrival.kind == format::HelloKind::kForked;
    const std::uint64_t ticks = arrival.origin.ticks;
    const bool traced = arrival.outcome == format::HelloOutcome::kTracing;
    // It waits for its go. A forked child does not, and has what its parent had.
    if (triggers_.wanted() && !forked && (traced || pid == program_)) {
      triggers_.begin(pid, arrival.kind == format::HelloKind::kStart);
      if (pid == program_) triggers_.tell_missing();
    }
    if (options_.on_arena && traced && arrival.arena) options_.on_arena(pid, arrival.arena.get());
    if (traced) usage_.add(pid);
    const bool starts = arrival.kind == format::HelloKind::kStart;
    processes_.arrive(std::move(arrival));
    if (starts) note_start(pid, now);
    if (triggers_.wanted() && forked && traced) triggers_.forked(pid, ticks);
  }

  /// The process has what it waited for, at least since `now`.
  void note_start(pid_t pid, RunTimes::Clock::time_point now) {
    RunTimes& times = result_.times;
    const auto asked = waiting_.extract(pid);
    const auto waited = RunTimes::Clock::now() - (asked.empty() ? now : asked.mapped());
    if (pid == program_ && !begun_) {
      begun_ = true;
      times.program = waited;
    } else {
      times.others += waited;
      ++times.other_programs;
    }
  }

  /// What the run was, when nothing of it is left or somebody has had enough.
  LaunchResult finish() {
    result_.times.ended = RunTimes::Clock::now();
    take_reports();
    triggers_.take_hits();
    add_problems(triggers_.problems());
    result_.pairs.push_back(read_clock_pair());
    result_.states = states_->stop();
    result_.samples = sampler_.stop();
    result_.usage = usage_.stop();
    result_.recorder = states_;
    if (options_.all) options_.all->leave_out_older(result_.states, result_.samples, result_.usage);
    add_problems(problems_of_watch(options_, chooser_.watched(), processes_));
    if (options_.choice.values().has_patterns() && chooser_.meant_for_values() == 0)
      result_.problems.push_back({"no traced function is one that --args or --returns means"});
    result_.processes = processes_.take(program_, result_.wait_status);
    add_sampled();
    result_.functions = chooser_.functions();
    result_.functions_off = chooser_.off();
    result_.names_off = chooser_.names_off();
    if (options_.all && !options_.all->failure().empty())
      result_.problems.push_back({"calls after some moment are missing, as they could not be written: " +
                                  options_.all->failure() + "; free the disk, or put the trace elsewhere (-o)"});
    if (session_.lost() != 0)
      result_.problems.push_back(
          {std::to_string(session_.lost()) +
               " processes are missing: the limit on open files (ulimit -n) is too low for so many",
           session_.lost()});
    result_.untraced = std::move(untraced_.programs());
    if (const char* const why = options_.program.why_foreign; why != nullptr)
      result_.untraced.insert(result_.untraced.begin(), {options_.program.file.string(), why});
    result_.plain = plain_.modules();
    result_.loaded = plain_.loaded();
    result_.built_libraries = chooser_.libraries();
    add_problems(std::move(processes_.problems()));
    add_problems(std::move(chooser_.problems()));
    return std::move(result_);
  }

  /// Processes of which samples or thread states are all that is known.
  void add_sampled() {
    const auto owner = options_.user ? std::optional(options_.user->rights) : std::nullopt;
    const ClockPair& start = result_.pairs.front();
    const bool has_samples = result_.samples.samples.size() + result_.samples.waits.size() != 0;
    const bool is_sampled = result_.samples_alone && (options_.program.takes_no_runtime() || has_samples);
    result_.states_alone =
        result_.processes.empty() && !has_samples && options_.states_are_enough && !result_.states.records.empty();
    if (result_.processes.empty() && (is_sampled || result_.states_alone)) {
      RecordedProcess sampled = sampled_process(
          started_process(program_, std::filesystem::absolute(options_.program.path), options_.arguments), start, owner,
          result_.samples, result_.states);
      sampled.wait_status = result_.wait_status;
      sampled.end_ticks = result_.pairs.back().ticks;
      result_.processes.push_back(std::move(sampled));
    }
    if (!result_.processes.empty() && (has_samples || result_.states_alone))
      add_sampled_processes(result_.processes, start, owner, result_.samples, result_.states);
  }

  /// After the program has ended.
  bool others_left() {
    if (!options_.wait) return false;
    // What was reported until now decides it.
    constexpr int kRounds = 50;
    constexpr useconds_t kRoundMicroseconds = 4000;
    for (int round = 0;; ++round) {
      take_reports();
      if (processes_.left() != 0 || processes_.find_silent_children()) break;
      take_reports();  // the search takes a while
      if (processes_.left() != 0) break;
      // Twice at least: a child made during the search may not have been on its list, nor its parent there any more.
      if (round == kRounds || (round != 0 && !processes_.may_be_reporting())) return false;
      if (processes_.may_be_reporting()) usleep(kRoundMicroseconds);
    }
    if (options_.on_left_behind && !told_) options_.on_left_behind(processes_.left());
    told_ = true;
    return true;
  }

  void take_signals() {
    signalfd_siginfo info{};
    while (signals_.next(info)) {
      const int number = static_cast<int>(info.ssi_signo);
      if (number == SIGCHLD) {
        look_after_program();
      } else if (!running_) {
        stop_ = stop_ || number == SIGINT || number == SIGTERM || number == SIGQUIT;
      } else if (info.ssi_code != SI_KERNEL && !options_.takes_place) {  // the terminal tells the program itself
        kill(program_, number);
      }
    }
  }

  void look_after_program() {
    unsure_ = false;
    if (options_.takes_place) return;  // no child of ours
    while (running_) {
      int status = 0;
      rusage usage{};
      const pid_t ended = wait4(program_, &status, WNOHANG | WUNTRACED, &usage);
      if (ended != program_) {
        unsure_ = ended < 0;  // its signal has come, and there is no other one
        return;
      }
      if (WIFSTOPPED(status)) {
        stop_along(WSTOPSIG(status));
        continue;
      }
      running_ = false;
      result_.wait_status = status;
      result_.cpu_ns = ns_of(usage.ru_utime) + ns_of(usage.ru_stime);
    }
  }

  /// An editor or pager that takes Ctrl-Z as a key stops itself alone; the shell waits for us.
  void stop_along(int number) const {
    if ((number != SIGTSTP && number != SIGTTIN && number != SIGTTOU) || getpgid(program_) != getpgrp()) return;
    raise(SIGTSTP);
    kill(program_, SIGCONT);
  }

  const LaunchOptions& options_;
  FunctionChooser chooser_{options_.choice, options_.resolve, options_.watch};
  Processes processes_{chooser_};
  UntracedPrograms untraced_;
  PlainPrograms plain_{options_.plain, options_.resolve};
  Session session_;
  WaitingSignals signals_;
  kernel::UsageRecorder usage_;
  kernel::Sampler sampler_{{options_.samples_per_second, options_.states.wanted != kernel::Wanted::kOff,
                            options_.user ? std::optional(options_.user->rights) : options_.resolve.as}};
  std::shared_ptr<kernel::StateRecorder> states_ = std::make_shared<kernel::StateRecorder>(options_.states);
  RunTriggers triggers_{options_, processes_};
  pid_t program_ = -1;
  std::map<pid_t, RunTimes::Clock::time_point> waiting_;  // since then, for tables
  bool begun_ = false;
  OtherProcess other_;  // the program, where it is no child of ours
  bool running_ = true;
  bool stop_ = false;
  bool told_ = false;
  bool unsure_ = false;  // whether the program has ended: the system did not tell
  LaunchResult result_;
};

}  // namespace

Result<LaunchResult> launch(const LaunchOptions& options) {
  auto session = Session::listen();
  if (!session) return session.error();
  Launcher launcher(options, std::move(*session));
  if (const Status started = launcher.start(); !started) return started.error();
  try {
    return launcher.wait();
  } catch (const std::bad_alloc&) {
    return launcher.wait_untraced("out of memory");
  } catch (const std::exception& error) {
    return launcher.wait_untraced(error.what());
  }
}

}  // namespace karst::collect
