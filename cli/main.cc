// karst: the process around one command line.
#include <fcntl.h>
#include <unistd.h>

#include <exception>
#include <new>
#include <string>

#include "cli/command.h"

int main(int argc, char** argv) {
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
