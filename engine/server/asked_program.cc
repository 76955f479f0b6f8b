// SPDX-License-Identifier: MIT
#include "engine/server/asked_program.h"

#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/child_process.h"
#include "base/descriptor.h"

namespace karst::engine {
namespace {

using Clock = std::chrono::steady_clock;

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
  constexpr const char* kNotStarted = "no process could be started for this answer: ";
  const Descriptor input = file_of(text);
  if (!input) return Error{kNotStarted + std::string(std::strerror(errno))};
  ChildProgram program{.file = words.front(), .words = words};
  program.input = ChildStream::ours(input.get());
  program.output = ChildStream::pipe();
  auto child = ChildProcess::start(program);
  if (!child) return Error{kNotStarted + child.error().message};
  std::string answer;
  if (const Status read = read_answer(child->output().get(), work, limits, answer); !read) return read.error();
  if (const int status = child->wait(); status != 0 || answer.empty()) return Error{ending(status)};
  return answer;
}

}  // namespace karst::engine
