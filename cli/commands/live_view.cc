// SPDX-License-Identifier: MIT
#include "cli/commands/live_view.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "cli/command.h"

namespace karst::cli {
namespace {

/// Signals that end us.
sigset_t endings() {
  sigset_t set;
  sigemptyset(&set);
  for (const int s : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, s);
  return set;
}

}  // namespace

void LiveView::begin(const std::string& file) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  posix_spawnattr_setpgroup(&attributes, 0);
  sigset_t signals;
  sigemptyset(&signals);
  posix_spawnattr_setsigmask(&attributes, &signals);
  sigfillset(&signals);
  posix_spawnattr_setsigdefault(&attributes, &signals);
  const std::string path = std::filesystem::absolute(file).string();  // whatever it begins with
  const char* const arguments[] = {"karst", "view", path.c_str(), nullptr};
  pid_t viewer = -1;
  const int error =
      posix_spawn(&viewer, "/proc/self/exe", &actions, &attributes, const_cast<char**>(arguments), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error == 0) {
    viewer_ = viewer;
    ended_ = Descriptor(static_cast<int>(syscall(SYS_pidfd_open, viewer_, 0)));
  }
  if (error != 0) say(std::string("the page cannot be shown while the program runs: ") + std::strerror(error));
}

void LiveView::wait() {
  const sigset_t ending = endings();
  sigset_t before;
  sigprocmask(SIG_BLOCK, &ending, &before);
  const Descriptor signals(signalfd(-1, &ending, SFD_CLOEXEC));
  pollfd descriptors[] = {{signals.get(), POLLIN, 0}, {ended_.get(), POLLIN, 0}};
  while (signals && ended_ && poll(descriptors, 2, -1) < 0 && errno == EINTR) {
  }
  if (descriptors[0].revents != 0) kill(viewer_, SIGTERM);
  while (waitpid(viewer_, nullptr, 0) < 0 && errno == EINTR) {
  }
  signalfd_siginfo taken{};
  if (descriptors[0].revents != 0) static_cast<void>(!read(signals.get(), &taken, sizeof taken));
  sigprocmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace karst::cli
