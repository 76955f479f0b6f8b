// SPDX-License-Identifier: MIT
// karst: the process around one command line.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <exception>
#include <new>
#include <string>

#include "cli/command.h"

namespace {

/// These tell by signal what the failed write tells as well (EPIPE, EFBIG), and would end us with a trace half written
/// or a program left alone. By a handler rather than SIG_IGN, as programs that we start then have what is usual.
void hear_of_failed_writes_by_errno() {
  for (const int signal : {SIGPIPE, SIGXFSZ}) {
    struct sigaction heard {};
    if (sigaction(signal, nullptr, &heard) != 0 || heard.sa_handler == SIG_IGN) continue;  // it stays so for them, too
    heard = {};
    heard.sa_handler = [](int) {};
    heard.sa_flags = SA_RESTART;
    sigaction(signal, &heard, nullptr);
  }
}

}  // namespace

int main(int argc, char** argv) {
  hear_of_failed_writes_by_errno();
  // What we open must not get the number of a standard stream that is closed. Programs that we run see it closed still.
  while (true) {
    const int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (fd < 0 || fd > 2) {
      if (fd > 2) close(fd);
      break;
    }
  }
  try {
    return karst::cli::run_command_line(argc, argv);
  } catch (const std::bad_alloc&) {
    return karst::cli::fail({"out of memory"});
  } catch (const std::exception& error) {
    // Nothing of ours throws for a reason that a user can meet; say what it was rather than abort.
    return karst::cli::fail({std::string("internal error: ") + error.what()});
  }
}
