// Processes that end in the depth: what was running is open.
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <exception>

#include "steps.h"

STEP(before)
STEP(at_exit)
STEP(at_quick_exit)
STEP(never)

const char* how;

NOINLINE void terminates() {
  before();
  _exit(0);
}

NOINLINE void throws() { throw 1; }
NOINLINE void promises() noexcept {
  throws();
  never();
}

NOINLINE void ends() {
  if (std::strcmp(how, "exit") == 0) std::exit(0);
  if (std::strcmp(how, "_exit") == 0) _exit(0);
  if (std::strcmp(how, "quick_exit") == 0) std::quick_exit(0);
  if (std::strcmp(how, "abort") == 0) std::abort();
  if (std::strcmp(how, "exec") == 0) execl("/bin/true", "true", nullptr);
  if (std::strcmp(how, "noexcept") == 0) promises();
  if (std::strcmp(how, "uncaught") == 0) throws();
  never();
}

NOINLINE void deep(int depth) {
  if (depth == 0)
    ends();
  else
    deep(depth - 1);
  never();
}

int main(int, char** argv) {
  how = argv[1];
  std::atexit(at_exit);
  std::at_quick_exit(at_quick_exit);
  std::set_terminate(terminates);
  deep(1);
  return 0;
}
