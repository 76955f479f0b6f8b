// SPDX-License-Identifier: MIT
// Signals that come while a run is waited for.
#pragma once
#include <signal.h>
#include <sys/signalfd.h>

#include <string>

#include "base/descriptor.h"

namespace karst::collect {

/// While it lives, this process takes its signals by a descriptor. The program must start with the mask that was.
class WaitingSignals {
 public:
  WaitingSignals();
  ~WaitingSignals() { restore(); }
  WaitingSignals(const WaitingSignals&) = delete;
  WaitingSignals& operator=(const WaitingSignals&) = delete;

  /// Negative: there is none, and why() says why.
  int descriptor() const { return descriptor_.get(); }
  const std::string& why() const { return why_; }
  /// What was before; for the program, too.
  void restore() const;
  /// The next one that has come; false: none has.
  bool next(signalfd_siginfo& info) const;

 private:
  sigset_t before_{};
  struct sigaction child_before_ {};
  Descriptor descriptor_;
  std::string why_;
};

}  // namespace karst::collect
