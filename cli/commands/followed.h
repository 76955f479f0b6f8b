// SPDX-License-Identifier: MIT
// What `karst attach` goes along with: a process, its children by fork that a trigger was hit in, and what they become
// by exec.
#pragma once
#include <sys/types.h>

#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/held_process.h"
#include "base/result.h"
#include "collect/arena/view.h"
#include "collect/launch/trigger.h"
#include "collect/record/growing_trace.h"
#include "collect/record/recording.h"

namespace karst::cli {

/// One thread.
class Followed {
 public:
  collect::RecordedProcess& add(const HeldProcess& held, collect::ArenaView arena);

  /// All that the first of them records from here on goes into the trace; drain() does so, and returns the milliseconds
  /// after which it is to be called again.
  void keep_all(const std::shared_ptr<collect::GrowingTrace>& trace);
  int drain();
  bool keeps_all() const { return growing_ != nullptr; }

  /// Null when its history cannot be had.
  collect::RecordedProcess* find(pid_t pid);
  /// Arms triggers in what took the place of a program by exec, as soon as it is traced.
  Status look_for_execs(collect::Triggers& triggers);
  /// Those of which moments were kept; `first_too`: and the one that was attached to.
  std::vector<collect::RecordedProcess> take(bool first_too);

 private:
  struct One {
    HeldProcess held;
    std::string image;
    bool replaced;
    collect::RecordedProcess process;
  };
  collect::RecordedProcess* find(const HeldProcess& held);

  std::deque<One> all_;
  std::vector<HeldProcess> coming_;
  std::shared_ptr<collect::GrowingTrace> growing_;
};

}  // namespace karst::cli
