// SPDX-License-Identifier: MIT
#include "collect/launch/launch.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
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
#include "collect/launch/sampled_process.h"
#include "collect/launch/session.h"
#include "collect/launch/trigger.h"
#include "collect/launch/untraced_programs.h"
#include "format/option_text.h"
#include "format/system.h"
#include "kernel/quiet_thread.h"
#include "kernel/usage_recorder.h"

namespace karst::collect {
namespace {

/// Signals that this process takes by descriptor while it waits. The program starts with the mask that was.
class Signals {
 public:
  Signals() {
    sigset_t taken;
    sigemptyset(&taken);
    for (const int s : {SIGCHLD, SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}) sigaddset(&taken, s);
    sigprocmask(SIG_BLOCK, &taken, &before_);
    // Whoever started us may ignore SIGCHLD: then the system reaps the program and we would wait for ever.
    struct sigaction normal {};
    normal.sa_handler = SIG_DFL;
    sigaction(SIGCHLD, &normal, &child_before_);
    descriptor_ = Descriptor(signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!descriptor_) why_ = std::strerror(errno);
  }
  ~Signals() { restore(); }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  /// Negative: there is none.
  int descriptor() const { return descriptor_.get(); }
  const std::string& why() const { return why_; }
  void restore() const {
    sigaction(SIGCHLD, &child_before_, nullptr);
    sigprocmask(SIG_SETMASK, &before_, nullptr);
  }
  bool next(signalfd_siginfo& info) const {
    return read(descriptor_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info);
  }

 private:
  sigset_t before_{};
  struct sigaction child_before_ {};
  Descriptor descriptor_;
  std::string why_;
};

/// read(2) and write(2) of one piece, which no signal ends.
template <typename Call>
bool is_whole(std::size_t size, Call&& call) {
  ssize_t n = 0;
  do n = call();
  while (n < 0 && errno == EINTR);
  return n == static_cast<ssize_t>(size);
}

double ns_of(const timeval& t) { return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_usec) * 1e3; }

/// LD_PRELOAD for the program: ours first, then what was there.
Result<std::string> preload_value(const LaunchOptions& options) {
  std::string list = options.runtime;
  std::vector<std::string> behind = options.companions;
  if (options.program.has_old_glibc)
    behind.push_back(std::filesystem::path(options.runtime).replace_filename(format::kOldGlibcLibrary).string());
  for (const std::string& companion : behind) list += ":" + companion;
  const auto colons = static_cast<std::size_t>(std::count(list.begin(), list.end(), ':'));
  if (colons != behind.size() || list.find_first_of(" \t") != std::string::npos)
    return Error{"the tracing runtime's path " + options.runtime +
                 " has a space or a colon in it, which LD_PRELOAD cannot name; install Karst elsewhere"};
  const char* before = std::getenv("LD_PRELOAD");
  return before != nullptr && *before != '\0' ? list + ":" + before : list;
}

/// KARST_OPTIONS for the program.
std::string options_of_program(const LaunchOptions& options, const format::SessionKey& session) {
  format::RuntimeOptions runtime = options.runtime_options;
  options.plain.ask_by(runtime);
  // The names of plugins do not say that they are ours.
  const auto is_plugin = [](const std::string& path) { return path.find("/libkarst-") == path.npos; };
  if (std::any_of(options.companions.begin(), options.companions.end(), is_plugin))
    runtime.preloads = static_cast<std::uint32_t>(1 + options.companions.size());
  runtime.session = session;
  return format::options_text(runtime);
}

/// Lets AddressSanitizer be another library than the first. Whoever says otherwise himself is heard.
std::string sanitizer_options() {
  const char* before = std::getenv("ASAN_OPTIONS");
  const std::string ours = "verify_asan_link_order=0";
  return before != nullptr && *before != '\0' ? ours + ":" + before : ours;
}

class Launcher {
 public:
  Launcher(const LaunchOptions& options, Session session) : options_(options), session_(std::move(session)) {}

  Status start() {
    if (signals_.descriptor() < 0) return Error{std::string("cannot take signals by a descriptor: ") + signals_.why()};
    const auto preload = preload_value(options_);
    if (!preload) return preload.error();
    const std::string runtime_options = options_of_program(options_, session_.key());
    std::vector<char*> arguments;
    arguments.reserve(options_.arguments.size() + 1);
    for (const std::string& a : options_.arguments) arguments.push_back(const_cast<char*>(a.c_str()));
    arguments.push_back(nullptr);
    int failure[2];
    if (pipe2(failure, O_CLOEXEC) != 0) return Error{std::string("cannot make a pipe: ") + std::strerror(errno)};
    Descriptor failure_in(failure[0]);
    Descriptor failure_out(failure[1]);
    // The program waits until the recording of its states has begun.
    int go[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, go) != 0)
      return Error{std::string("cannot make a socket: ") + std::strerror(errno)};
    Descriptor go_in(go[0]);
    Descriptor go_out(go[1]);
    result_.pairs.push_back(read_clock_pair());
    const Heritage heritage;
    const auto role = begin_process();
    if (!role) return Error{std::string("cannot start a process: ") + std::strerror(errno)};
    if (*role == Role::kProgram) {
      const int failed_status = options_.takes_place ? 1 : 127;  // what karst run ends with is this process's then
      go_out = Descriptor();
      failure_in = Descriptor();
      pid_t recorder = 0;
      // Whoever should trace us may have ended.
      if (!is_whole(sizeof recorder, [&] { return read(go_in.get(), &recorder, sizeof recorder); }))
        _exit(failed_status);
      if (options_.takes_place) prctl(PR_SET_PTRACER, static_cast<unsigned long>(recorder), 0, 0, 0);
      signals_.restore();
      Failure failed;
      if (options_.user && !options_.user->become()) {
        failed = {Step::kUser, errno};
      } else if (options_.user && !libraries_readable()) {
        failed = {Step::kRuntime, errno};  // the loader would go on without them
      }
      if (failed.error != 0) {
        static_cast<void>(!write(failure_out.get(), &failed, sizeof failed));
        wait_for_recorder(go_in.get());
        _exit(failed_status);
      }
      heritage.pass_on();
      if (options_.program.why_foreign == nullptr) set_environment(*preload, runtime_options);
      execv(options_.program.path.c_str(), arguments.data());
      if (errno == ENOEXEC) {
        // As a shell does: a script without #!.
        arguments.insert(arguments.begin(), const_cast<char*>("/bin/sh"));
        arguments[1] = const_cast<char*>(options_.program.path.c_str());
        execv("/bin/sh", arguments.data());
      }
      failed = {Step::kProgram, errno};
      static_cast<void>(!write(failure_out.get(), &failed, sizeof failed));
      wait_for_recorder(go_in.get());
      _exit(failed_status);
    }
    failure_out = Descriptor();
    go_in = Descriptor();
    states_->start(program_);
    if (options_.usage) usage_.start(program_);
    if (options_.program.takes_no_runtime() || !options_.samples_if_untraced) {
      const Status sampled = sampler_.start(program_);
      result_.samples_alone = options_.program.takes_no_runtime() && sampler_.works();
      if (!sampled && options_.program.is_static) {
        end_unbegun(go_out);
        return Error{options_.program.path.string() + " is statically linked, so that it could only be sampled, and " +
                     sampled.error().message};
      }
    }
    result_.times.started = RunTimes::Clock::now();
    const pid_t own = getpid();
    // Ctrl-C may have ended it.
    if (!is_whole(sizeof own, [&] { return send(go_out.get(), &own, sizeof own, MSG_NOSIGNAL); }) && errno != EPIPE) {
      const Error why{std::string("cannot let the program begin: ") + std::strerror(errno)};
      end_unbegun(go_out);
      return why;
    }
    Failure failed;
    if (is_whole(sizeof failed, [&] { return read(failure_in.get(), &failed, sizeof failed); })) {
      if (options_.takes_place) {
        static_cast<void>(go_out.release());  // it waits until this process has said why, and ends
      } else {
        reap();
      }
      return explain(failed);
    }
    return Unit{};
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
      const bool look_again = processes_.look_after_unwatched() || (armed_ && triggers_.waiting()) || unsure_;
      const int drain_again = processes_.drain();
      kernel::wait_for(descriptors, drain_again >= 0 ? drain_again : look_again ? 50 : -1);
      take_hits();  // before a report that the process has become another program
      // Reports before ends: one that a process sent before it died is there by then.
      take_reports();
      take_hits();  // before ends, too
      processes_.notice_ends(std::span(descriptors).subspan(first_process, end_of_processes - first_process));
      if (armed_ && triggers_.waiting()) arm([this] { return triggers_.arm_again(); });
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
    result_.times.ended = RunTimes::Clock::now();
    take_reports();
    take_hits();
    if (armed_ && trigger_problem_.empty())
      for (reader::Problem& problem : triggers_.problems())
        if (!std::any_of(missing_.begin(), missing_.end(), [&](const auto& m) { return m.message == problem.message; }))
          result_.problems.push_back(std::move(problem));
    for (const TriggerHit& hit : hits_)
      result_.problems.push_back({"the trigger " + hit.what + " was hit in process " + std::to_string(hit.hit.pid) +
                                  ", which made no traced call: there is nothing to keep"});
    result_.pairs.push_back(read_clock_pair());
    result_.states = states_->stop();
    result_.samples = sampler_.stop();
    result_.usage = usage_.stop();
    result_.recorder = states_;
    if (options_.all) options_.all->leave_out_older(result_.states, result_.samples, result_.usage);
    judge_watch();
    if (options_.choice.values().has_patterns() && chooser_.meant_for_values() == 0)
      result_.problems.push_back({"no traced function is one that --args or --returns means"});
    result_.processes = processes_.take(program_, result_.wait_status);
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
    for (auto* problems : {&processes_.problems(), &chooser_.problems()})
      std::move(problems->begin(), problems->end(), std::back_inserter(result_.problems));
    return std::move(result_);
  }

 private:
  /// What the new process could not do before it was the program.
  enum class Step { kUser, kRuntime, kProgram };
  struct Failure {
    Step step = Step::kProgram;
    int error = 0;
  };

  /// None: errno says why.
  std::optional<Role> begin_process() {
    if (!options_.takes_place) {
      program_ = fork();
      if (program_ < 0) return std::nullopt;
      return program_ == 0 ? Role::kProgram : Role::kRecorder;
    }
    program_ = getpid();
    const auto role = part_ways();
    if (role == Role::kRecorder) other_ = OtherProcess(program_);
    return role;
  }

  /// Until it has said why the program could not be started: after that this process's end is seen.
  void wait_for_recorder(int go) const {
    char word = 0;
    if (options_.takes_place) static_cast<void>(!read(go, &word, 1));
  }

  bool libraries_readable() const {
    const auto is_readable = [](const std::string& path) { return access(path.c_str(), R_OK) == 0; };
    return is_readable(options_.runtime) &&
           std::all_of(options_.companions.begin(), options_.companions.end(), is_readable);
  }

  /// Of the program, in its process.
  void set_environment(const std::string& preload, const std::string& runtime_options) const {
    setenv("LD_PRELOAD", preload.c_str(), 1);
    setenv("KARST_OPTIONS", runtime_options.c_str(), 1);
    if (options_.program.has_libasan) setenv("ASAN_OPTIONS", sanitizer_options().c_str(), 1);
    unsetenv(format::kSystemVariable);
    if (!options_.system.empty()) setenv(format::kSystemVariable, options_.system.c_str(), 1);
    // Where annotated programs look for who listens (runtime/annotations/), unless the user has another tool there.
    for (const char* listener : {"INTEL_LIBITTNOTIFY64", "NVTX_INJECTION64_PATH"})
      setenv(listener, options_.runtime.c_str(), 0);
  }

  Error explain(const Failure& failed) const {
    const std::string why = std::string(": ") + std::strerror(failed.error);
    const std::string as = options_.user ? " as " + options_.user->name : std::string();
    if (failed.step == Step::kUser) return {"cannot become the user " + options_.user->name + why};
    if (failed.step == Step::kRuntime)
      return {options_.user->name + " cannot read the tracing runtime " + options_.runtime + why +
              "; install Karst where all users may read it"};
    return {"cannot run " + options_.program.path.string() + as + why};
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
      take_hits();  // up to now
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
    if (!options_.triggers.empty() && !forked && (traced || pid == program_)) {
      if (arrival.kind == format::HelloKind::kStart) triggers_.replaced(pid);
      arm([this, pid] { return triggers_.arm(pid); });
      if (pid == program_ && missing_.empty() && trigger_problem_.empty() && options_.on_missing_trigger) {
        missing_ = triggers_.missing();
        for (const reader::Problem& problem : missing_) options_.on_missing_trigger(problem);
      }
    }
    if (options_.on_arena && traced && arrival.arena) options_.on_arena(pid, arrival.arena.get());
    if (traced) usage_.add(pid);
    const bool starts = arrival.kind == format::HelloKind::kStart;
    processes_.arrive(std::move(arrival));
    if (starts) note_start(pid, now);
    if (!options_.triggers.empty() && forked && traced)
      arm([this, pid, ticks] { return triggers_.forked(pid, processes_.parent_of(pid), ticks); });
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

  template <typename How>
  void arm(How&& how) {
    armed_ = true;
    if (!trigger_problem_.empty()) return;
    if (const Status armed = how(); !armed) {
      trigger_problem_ = armed.error().message;
      result_.problems.push_back({trigger_problem_});
    }
  }

  void say_nothing_is_watched() {
    std::string words = "no traced function is one that --slowest or --over watches";
    const auto& rules = options_.watch.rules;
    const auto is_of_locks = [](const WatchRule& rule) { return rule.is_of_locks(); };
    const auto records_locks = [](const std::string& path) { return path.find("libkarst-locks.so") != path.npos; };
    if (std::any_of(options_.companions.begin(), options_.companions.end(), records_locks)) {
      // A wait is known as soon as there is one.
      if (std::all_of(rules.begin(), rules.end(), is_of_locks)) return;
    } else if (std::any_of(rules.begin(), rules.end(), is_of_locks)) {
      words += "; 'lock' means waits for locks, which --system locks records";
    }
    result_.problems.push_back({words});
  }

  void judge_watch() {
    if (options_.watch.rules.empty()) return;
    if (chooser_.watched() == 0) say_nothing_is_watched();
    WatchLosses all;
    processes_.for_each([&all](std::size_t, RecordedProcess& process) {
      const WatchLosses losses = process.history.watch_losses();
      all.functions_refused += losses.functions_refused;
      all.without_candidate += losses.without_candidate;
      all.too_deep += losses.too_deep;
      all.too_many += losses.too_many;
    });
    const auto say = [this](std::uint64_t count, const std::string& what) {
      if (count != 0) result_.problems.push_back({std::to_string(count) + " " + what, count});
    };
    say(all.functions_refused, "functions are not watched for slow calls: there are too many, or memory is short");
    say(all.without_candidate, "slow calls were not kept: there were too many at once");
    say(all.too_deep, "calls were not watched: more than 8000 were open in their thread, or memory was short");
    say(all.too_many, "further calls took longer than --over says; see REGEX:TIME:N");
  }

  void take_hits() {
    for (TriggerHit& taken : triggers_.take()) hits_.push_back(std::move(taken));
    // A forked child reports itself by its first traced call, which may be later than its first hit.
    std::erase_if(hits_, [this](TriggerHit& taken) {
      RecordedProcess* process = processes_.find(taken.hit.pid);
      if (process == nullptr) return false;
      keep_hit(std::move(taken), trigger_clock_.to_ticks(options_.trigger_last_ns), *process);
      return true;
    });
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

  void reap() const {
    while (waitpid(program_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }

  /// What waits for its beginning ends before it was the program.
  void end_unbegun(Descriptor& go) const {
    go = Descriptor();
    reap();
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
  Signals signals_;
  kernel::UsageRecorder usage_;
  kernel::Sampler sampler_{{options_.samples_per_second, options_.states.wanted != kernel::Wanted::kOff,
                            options_.user ? std::optional(options_.user->rights) : options_.resolve.as}};
  std::shared_ptr<kernel::StateRecorder> states_ = std::make_shared<kernel::StateRecorder>(options_.states);
  Triggers triggers_{options_.triggers, options_.several_triggers, options_.resolve};
  TriggerClock trigger_clock_;
  std::vector<TriggerHit> hits_;  // of processes that have not reported yet
  std::string trigger_problem_;
  std::vector<reader::Problem> missing_;  ///< triggers, told as the program began
  bool armed_ = false;
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
