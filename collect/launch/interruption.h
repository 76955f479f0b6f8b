// SPDX-License-Identifier: MIT
// Ctrl-C, SIGTERM and SIGHUP while a trace is being written.
#pragma once
#include <signal.h>

#include <array>

namespace karst::collect {

/// While it lives, the first of these signals has names left out (sandbox/sandbox.h: stop_lookups), so that the trace
/// is there in a moment, with all events; the second one ends the process at once and leaves no temporary file. A
/// signal that was ignored stays so. One at a time.
class Interruption {
 public:
  Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;
  ~Interruption();

 private:
  static constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP};
  std::array<struct sigaction, kSignals.size()> before_{};
};

}  // namespace karst::collect
