// SPDX-License-Identifier: MIT
#include "collect/launch/waiting_signals.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace karst::collect {

WaitingSignals::WaitingSignals() {
  sigset_t taken;
  sigemptyset(&taken);
  for (const int s : {SIGCHLD, SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}) sigaddset(&taken, s);
  sigprocmask(SIG_BLOCK, &taken, &before_);
  // Whoever started us may ignore SIGCHLD: then the system reaps the program and we would wait for ever.
  struct sigaction normal {};
  normal.sa_handler = SIG_DFL;
  sigaction(SIGCHLD, &normal, &child_before_);
  descriptor_ = Descriptor(signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!descriptor_) why_ = std::strerror(errno);
}

void WaitingSignals::restore() const {
  sigaction(SIGCHLD, &child_before_, nullptr);
  sigprocmask(SIG_SETMASK, &before_, nullptr);
}

bool WaitingSignals::next(signalfd_siginfo& info) const {
  return read(descriptor_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info);
}

}  // namespace karst::collect
