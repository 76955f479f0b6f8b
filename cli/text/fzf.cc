// SPDX-License-Identifier: MIT
#include "cli/text/fzf.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <span>

#include "base/descriptor.h"
#include "base/sealed_memory.h"

namespace karst::cli {

std::optional<std::string> choose_by_fzf(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  // fzf reads its keys from the terminal, not from its standard input.
  const Descriptor input = sealed_memory("karst-choice", std::as_bytes(std::span(text)));
  int ends[2];
  if (!input || lseek(input.get(), 0, SEEK_SET) != 0 || pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
  const Descriptor from(ends[0]);
  Descriptor to(ends[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input.get(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, to.get(), STDOUT_FILENO);
  const char* const arguments[] = {"fzf", "--prompt=process: ", "--height=50%", "--reverse", nullptr};
  pid_t child = -1;
  const int error = posix_spawnp(&child, "fzf", &actions, nullptr, const_cast<char**>(arguments), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return std::nullopt;
  to = Descriptor();
  std::string chosen;
  char buffer[512];
  for (;;) {
    const ssize_t size = read(from.get(), buffer, sizeof buffer);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) break;
    chosen.append(buffer, static_cast<std::size_t>(size));
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  constexpr int kNotExecuted = 127;
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNotExecuted) return std::nullopt;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? chosen : std::string();
}

}  // namespace karst::cli
