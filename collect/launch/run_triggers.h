// SPDX-License-Identifier: MIT
// The triggers of a run: armed in its processes as they come, and what was hit kept in them.
#pragma once
#include <poll.h>
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "collect/launch/launch.h"
#include "collect/launch/processes.h"
#include "collect/launch/trigger.h"

namespace karst::collect {

/// Both arguments must outlive it. One thread.
class RunTriggers {
 public:
  RunTriggers(const LaunchOptions& options, Processes& processes);

  bool wanted() const { return !options_.triggers.empty(); }
  /// The process waits for its go; `replaced`: it runs another program from now on.
  void begin(pid_t pid, bool replaced);
  /// The first program has begun: tells once which triggers it does not have.
  void tell_missing();
  /// `child` was forked at `ticks`, and goes on.
  void forked(pid_t child, std::uint64_t ticks);

  void add_descriptors(std::vector<pollfd>& descriptors) const { triggers_.add_descriptors(descriptors); }
  /// Some place is not found yet: look_again() before long.
  bool waiting() const { return armed_ && triggers_.waiting(); }
  void look_again();
  /// Keeps what was hit until now, of processes that have reported.
  void take_hits();
  /// When the run has ended: what could not be had, was never hit or is of no process. Call once.
  std::vector<reader::Problem> problems();

 private:
  void take(const Status& armed);

  const LaunchOptions& options_;
  Processes& processes_;
  Triggers triggers_;
  TriggerClock clock_;
  std::vector<TriggerHit> hits_;          // of processes that have not reported yet
  std::string problem_;                   // empty: none, so far
  std::vector<reader::Problem> missing_;  // as they were told
  bool armed_ = false;
};

}  // namespace karst::collect
