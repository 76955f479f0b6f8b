// SPDX-License-Identifier: MIT
// karst-as: what karst-gcc.specs runs in the assembler's place. Filters the compiler's text and becomes `as`, which
// reads the result on its standard input. Arguments are those of `as`, then --karst-source and the source, which is
// absent when the driver pipes it (among the arguments of `as`, which take operands, it could not be told).
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "toolchain/asm_filter.h"

namespace {

[[noreturn]] void fail(const char* what, const char* name) {
  std::fprintf(stderr, "karst-as: %s %s: %s\n", what, name, std::strerror(errno));
  std::exit(1);
}

std::string read_all(int fd, const char* name) {
  std::string text;
  struct stat status {};
  if (fstat(fd, &status) == 0 && status.st_size > 0) text.reserve(static_cast<std::size_t>(status.st_size) + 1);
  for (;;) {
    char buffer[1 << 16];
    const ssize_t n = read(fd, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("cannot read", name);
    if (n == 0) return text;
    text.append(buffer, static_cast<std::size_t>(n));
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<char*> arguments(argv, argv + argc);
  char standard_input[] = "-";
  const auto marker = std::find(arguments.begin(), arguments.end(), std::string_view("--karst-source"));
  if (marker == arguments.end()) {
    std::fprintf(stderr, "karst-as: no --karst-source; it is run by karst-gcc and karst-g++ alone\n");
    return 1;
  }
  const char* const source = marker + 1 != arguments.end() ? marker[1] : "-";
  const bool piped = std::string_view(source) == "-";
  const char* const name = piped ? "the compiler's output" : source;
  const int in = piped ? 0 : open(source, O_RDONLY | O_CLOEXEC);
  if (in < 0) fail("cannot open", name);
  const std::string before = read_all(in, name);
  const std::string text = karst::toolchain::filter_assembly(before);
  char assembler[] = "as";
  arguments[0] = assembler;
  if (!piped && text == before) {
    // The assembler's messages and line tables name the file.
    arguments.erase(marker);
    arguments.push_back(nullptr);
    execvp(assembler, arguments.data());
    fail("cannot run", assembler);
  }

  const int out = memfd_create("karst-as", MFD_CLOEXEC);
  if (out < 0) fail("cannot make a temporary file for", name);
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t n = write(out, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("cannot write a temporary file for", name);
    done += static_cast<std::size_t>(n);
  }
  if (lseek(out, 0, SEEK_SET) != 0 || dup2(out, 0) != 0) fail("cannot pass on", name);
  arguments.erase(marker, arguments.end());
  arguments.push_back(standard_input);
  arguments.push_back(nullptr);
  execvp(assembler, arguments.data());
  fail("cannot run", assembler);
}
