// SPDX-License-Identifier: MIT
// posix_spawn with all that it takes: it does not copy our memory, and tells when the program cannot be executed.
#include "base/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <thread>
#include <utility>

#include "base/text.h"

namespace karst {
namespace {

/// What posix_spawn is told, and the first error of it.
class SpawnPlan {
 public:
  SpawnPlan() {
    take(posix_spawn_file_actions_init(&actions_));
    take(posix_spawnattr_init(&attributes_));
  }
  ~SpawnPlan() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;

  /// The child's `target` leads where `stream` says. `ours`: our end, of a pipe.
  void lead(int target, const ChildStream& stream, Descriptor& ours) {
    if (stream.is_nothing()) {
      take(posix_spawn_file_actions_addopen(&actions_, target, "/dev/null", target == 0 ? O_RDONLY : O_WRONLY, 0));
    } else if (!stream.is_pipe()) {
      lead(target, stream.descriptor());
    } else {
      int ends[2];
      if (::pipe2(ends, O_CLOEXEC) != 0) return take(errno);
      const bool reads = target == STDIN_FILENO;
      ours = Descriptor(ends[reads ? 1 : 0]);
      lead(target, kept_.emplace_back(ends[reads ? 0 : 1]).get());
    }
  }

  void attributes(const ChildProgram& program) {
    sigset_t signals;
    sigemptyset(&signals);
    take(posix_spawnattr_setsigmask(&attributes_, &signals));
    sigfillset(&signals);
    take(posix_spawnattr_setsigdefault(&attributes_, &signals));
    take(posix_spawnattr_setpgroup(&attributes_, 0));
    const int flags = POSIX_SPAWN_SETSIGMASK | (program.default_signals ? POSIX_SPAWN_SETSIGDEF : 0) |
                      (program.own_group ? POSIX_SPAWN_SETPGROUP : 0);
    take(posix_spawnattr_setflags(&attributes_, static_cast<short>(flags)));
  }

  /// 0, or why not.
  int start(pid_t& child, const char* file, char* const* words, char* const* environment) const {
    return error_ != 0 ? error_ : ::posix_spawnp(&child, file, &actions_, &attributes_, words, environment);
  }

 private:
  void take(int error) {
    if (error_ == 0) error_ = error;
  }

  // The child's three are set one after the other, so a source among them might be another's already: it is moved away.
  void lead(int target, int source) {
    if (source >= 0 && source <= STDERR_FILENO && source != target) {
      source = kept_.emplace_back(::fcntl(source, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)).get();
      if (source < 0) return take(errno);
    }
    take(posix_spawn_file_actions_adddup2(&actions_, source, target));
  }

  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
  std::vector<Descriptor> kept_;  // until the child has them
  int error_ = 0;
};

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  all.reserve(texts.size() + 1);
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

std::vector<std::string> environment_with(const std::vector<std::string>& variables) {
  std::vector<std::string> all = variables;
  const auto is_given = [&](std::string_view entry) {
    const std::string_view name = entry.substr(0, entry.find('=') + 1);
    for (const std::string& variable : variables)
      if (!name.empty() && variable.starts_with(name)) return true;
    return false;
  };
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry)
    if (!is_given(*entry)) all.emplace_back(*entry);
  return all;
}

}  // namespace

Result<ChildProcess> ChildProcess::start(const ChildProgram& program) {
  ChildProcess child;
  SpawnPlan plan;
  plan.lead(STDIN_FILENO, program.input, child.input_);
  plan.lead(STDOUT_FILENO, program.output, child.output_);
  plan.lead(STDERR_FILENO, program.errors, child.errors_);
  plan.attributes(program);
  std::vector<std::string> words = program.words;
  std::vector<std::string> environment = environment_with(program.variables);
  pid_t number = 0;
  const int error = plan.start(number, program.file.c_str(), pointers(words).data(), pointers(environment).data());
  if (error != 0) return Error{"cannot run " + printable(program.file) + ": " + std::strerror(error)};
  child.number_ = number;
  child.outlives_us_ = program.outlives_us;
  return child;
}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  std::swap(number_, other.number_);
  std::swap(status_, other.status_);
  std::swap(outlives_us_, other.outlives_us_);
  std::swap(input_, other.input_);
  std::swap(output_, other.output_);
  std::swap(errors_, other.errors_);
  return *this;
}

ChildProcess::~ChildProcess() {
  if (number_ == 0 || outlives_us_) return;
  kill(SIGKILL);
  wait();
}

int ChildProcess::wait() {
  while (number_ != 0 && ::waitpid(number_, &status_, 0) < 0 && errno == EINTR) {
  }
  number_ = 0;
  return status_;
}

std::optional<int> ChildProcess::wait_for(std::chrono::milliseconds time) {
  constexpr std::chrono::milliseconds kStep{20};
  const auto end = std::chrono::steady_clock::now() + time;
  while (number_ != 0) {
    const pid_t ended = ::waitpid(number_, &status_, WNOHANG);
    if (ended == number_ || (ended < 0 && errno != EINTR)) number_ = 0;
    if (number_ != 0 && std::chrono::steady_clock::now() >= end) return std::nullopt;
    if (number_ != 0) std::this_thread::sleep_for(kStep);
  }
  return status_;
}

void ChildProcess::kill(int signal) const {
  if (number_ != 0) ::kill(number_, signal);
}

Descriptor ChildProcess::ending() const {
  return number_ == 0 ? Descriptor() : Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, number_, 0)));
}

}  // namespace karst
