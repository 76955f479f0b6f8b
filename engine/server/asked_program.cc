// SPDX-License-Identifier: MIT
#include "engine/server/asked_program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/descriptor.h"

namespace karst::engine {
namespace {

using Clock = std::chrono::steady_clock;

/// Killed when it goes, unless it was waited for.
class Child {
 public:
  explicit Child(pid_t pid) : pid_(pid) {}
  ~Child() {
    if (pid_ == 0) return;
    ::kill(pid_, SIGKILL);
    static_cast<void>(wait());
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// Its status, once it has ended. Call once.
  int wait() {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) continue;
    pid_ = 0;
    return status;
  }

 private:
  pid_t pid_;  // 0: it has ended
};

/// A file in memory, read from its begin. Nothing of it stays.
Descriptor file_of(std::string_view text) {
  Descriptor file(::memfd_create("karst-asked", MFD_CLOEXEC));
  while (file.get() >= 0 && !text.empty()) {
    const ssize_t n = ::write(file.get(), text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return {};
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  if (file.get() >= 0) ::lseek(file.get(), 0, SEEK_SET);
  return file;
}

Result<pid_t> start(const std::vector<std::string>& words, int input, int output) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input, 0);
  posix_spawn_file_actions_adddup2(&actions, output, 1);
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  std::vector<std::string> kept = words;
  std::vector<char*> arguments;
  arguments.reserve(kept.size() + 1);
  for (std::string& word : kept) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int error = ::posix_spawn(&child, arguments.front(), &actions, &attributes, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) return Error{std::string("no process could be started for this answer: ") + std::strerror(error)};
  return child;
}

/// Reads until the end. Error: the answer was given up.
Status read_answer(int from, const Work* work, const AskedLimits& limits, std::string& answer) {
  const auto give_up = Clock::now() + limits.time;
  std::vector<char> buffer(std::size_t{64} << 10);
  while (true) {
    if (is_stopped(work)) return Error{"this was stopped"};
    if (Clock::now() > give_up) {
      const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(limits.time).count();
      return Error{"this took longer than " + std::to_string(seconds) +
                   " s, and was stopped: karst query and karst check have no such limit"};
    }
    constexpr int kLook = 50;  // ms; a stop is seen that late
    pollfd ready{from, POLLIN, 0};
    if (::poll(&ready, 1, kLook) <= 0) continue;
    const ssize_t n = ::read(from, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return Unit{};
    answer.append(buffer.data(), static_cast<std::size_t>(n));
    if (answer.size() > limits.bytes) return Error{"the answer is too large for the page"};
  }
}

std::string ending(int status) {
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
    return "the process that answered was killed, perhaps as memory was short";
  if (WIFSIGNALED(status))
    return std::string("the process that answered died by a signal: ") + ::strsignal(WTERMSIG(status));
  return "the process that answered ended without an answer";
}

}  // namespace

Result<std::string> answer_of_program(const std::vector<std::string>& words, std::string_view text, const Work* work,
                                      const AskedLimits& limits) {
  const Descriptor input = file_of(text);
  int ends[2];
  if (input.get() < 0 || ::pipe2(ends, O_CLOEXEC) != 0)
    return Error{std::string("no process could be started for this answer: ") + std::strerror(errno)};
  const Descriptor from(ends[0]);
  Descriptor to(ends[1]);
  const auto started = start(words, input.get(), to.get());
  static_cast<void>(to.close());
  if (!started) return started.error();
  Child child(*started);
  std::string answer;
  if (const Status read = read_answer(from.get(), work, limits, answer); !read) return read.error();
  if (const int status = child.wait(); status != 0 || answer.empty()) return Error{ending(status)};
  return answer;
}

}  // namespace karst::engine
