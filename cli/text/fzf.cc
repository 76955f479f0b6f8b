// SPDX-License-Identifier: MIT
#include "cli/text/fzf.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <span>

#include "base/child_process.h"
#include "base/descriptor.h"
#include "base/sealed_memory.h"

namespace karst::cli {

std::optional<std::string> choose_by_fzf(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  // fzf reads its keys from the terminal, not from its standard input.
  const Descriptor input = sealed_memory("karst-choice", std::as_bytes(std::span(text)));
  if (!input || lseek(input.get(), 0, SEEK_SET) != 0) return std::nullopt;
  ChildProgram program{.file = "fzf", .words = {"fzf", "--prompt=process: ", "--height=50%", "--reverse"}};
  program.input = ChildStream::ours(input.get());
  program.output = ChildStream::pipe();
  program.errors = ChildStream::ours(STDERR_FILENO);
  auto fzf = ChildProcess::start(program);
  if (!fzf) return std::nullopt;
  std::string chosen;
  char buffer[512];
  for (;;) {
    const ssize_t size = read(fzf->output().get(), buffer, sizeof buffer);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) break;
    chosen.append(buffer, static_cast<std::size_t>(size));
  }
  const int status = fzf->wait();
  constexpr int kNotExecuted = 127;
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNotExecuted) return std::nullopt;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? chosen : std::string();
}

}  // namespace karst::cli
