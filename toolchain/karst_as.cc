// karst-as: what karst-gcc.specs runs in the assembler's place. Filters the compiler's text and becomes `as`, which
// reads the result on its standard input. Arguments are those of `as`; the source is the last that is no option, as the
// driver puts it.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

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
  std::size_t source = 0;
  for (std::size_t i = arguments.size(); i-- > 1 && source == 0;) {
    const std::string_view a = arguments[i];
    if (a == "-" || (!a.empty() && a.front() != '-' && std::string_view(arguments[i - 1]) != "-o")) source = i;
  }
  // With -pipe the driver names no source at all.
  const bool piped = source == 0 || std::string_view(arguments[source]) == "-";
  const char* const name = piped ? "the compiler's output" : arguments[source];
  const int in = piped ? 0 : open(name, O_RDONLY | O_CLOEXEC);
  if (in < 0) fail("cannot open", name);
  const std::string text = karst::toolchain::filter_assembly(read_all(in, name));

  const int out = memfd_create("karst-as", MFD_CLOEXEC);
  if (out < 0) fail("cannot make a temporary file for", name);
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t n = write(out, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("cannot write a temporary file for", name);
    done += static_cast<std::size_t>(n);
  }
  if (lseek(out, 0, SEEK_SET) != 0 || dup2(out, 0) != 0) fail("cannot pass on", name);
  if (source == 0) arguments.push_back(standard_input);
  if (source != 0) arguments[source] = standard_input;
  char assembler[] = "as";
  arguments[0] = assembler;
  arguments.push_back(nullptr);
  execvp(assembler, arguments.data());
  fail("cannot run", assembler);
}
