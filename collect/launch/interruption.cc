// SPDX-License-Identifier: MIT
#include "collect/launch/interruption.h"

#include <unistd.h>

#include "base/new_file.h"
#include "collect/launch/standby.h"
#include "sandbox/sandbox.h"

namespace karst::collect {
namespace {

/// Async-signal-safe: a lock-free flag and system calls.
void interrupt(int signal) {
  if (!sandbox::stop_lookups.exchange(true)) {
    constexpr char kSaid[] = "karst: names are left out; once more ends this at once, with what is written by then\n";
    if (isatty(STDERR_FILENO) == 1) static_cast<void>(!write(STDERR_FILENO, kSaid, sizeof kSaid - 1));
    return;
  }
  Standby::dismiss_now();
  NewFile::remove_temporary_now();
  struct sigaction normal {};
  normal.sa_handler = SIG_DFL;
  sigaction(signal, &normal, nullptr);
  raise(signal);  // when this handler returns
}

}  // namespace

Interruption::Interruption() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], nullptr, &before_[i]);
    if (before_[i].sa_handler == SIG_IGN) continue;
    struct sigaction ours {};
    ours.sa_handler = interrupt;
    ours.sa_flags = SA_RESTART;  // what writes the trace goes on
    sigaction(kSignals[i], &ours, nullptr);
  }
}

Interruption::~Interruption() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
  sandbox::stop_lookups = false;
}

}  // namespace karst::collect
