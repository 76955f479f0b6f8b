// SPDX-License-Identifier: MIT
#include "kernel/late_ftrace.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <shared_mutex>
#include <utility>

#include "base/fork_lock.h"
#include "kernel/quiet_thread.h"
#include "kernel/tracefs_place.h"

namespace karst::kernel {

LateFtrace::LateFtrace(const FtraceOptions& options)
    : there_(eventfd(0, EFD_CLOEXEC)), cancelled_(eventfd(0, EFD_CLOEXEC)) {
  thread_ = start_thread("karst-ftrace", [this, options] {
    begun_.release();
    work(options);
  });
  if (thread_.joinable()) begun_.acquire();
}

LateFtrace::~LateFtrace() {
  cancel();
  if (thread_.joinable()) thread_.join();
}

void LateFtrace::cancel() { eventfd_write(cancelled_.get(), 1); }

void LateFtrace::work(FtraceOptions options) {
  {
    const std::shared_lock no_fork(fork_lock());
    if (const auto place = TracefsPlace::find()) remove_orphans(*place);
  }
  pollfd cancelled{cancelled_.get(), POLLIN, 0};
  if (poll(&cancelled, 1, kFtraceAfterMs) != 0) return;
  {
    std::shared_lock no_fork(fork_lock());
    options.no_fork = &no_fork;
    made_ = Ftrace::open(options);
  }
  eventfd_write(there_.get(), 1);
}

Result<std::unique_ptr<Ftrace>> LateFtrace::take() {
  eventfd_t word = 0;
  eventfd_read(there_.get(), &word);
  return std::move(*made_);
}

std::vector<pid_t> Followed::further(std::uint64_t now, std::vector<format::StateRecord> made) {
  constexpr int kMostRounds = 8;  // one or two, but for a program that does all to have more
  for (const pid_t tid : named_) since_[tid] = now;
  named_.clear();
  if (round_++ == 0) named_.push_back(program_);
  std::sort(made.begin(), made.end(), [](const auto& a, const auto& b) { return a.ticks < b.ticks; });
  for (const format::StateRecord& fork : made) {
    const auto tid = static_cast<pid_t>(fork.tid);
    const auto maker = since_.find(static_cast<pid_t>(fork.other));
    if (maker != since_.end() && maker->second <= fork.ticks) {
      since_[tid] = fork.ticks;
    } else if (kill(tid, 0) == 0 || errno != ESRCH) {
      named_.push_back(tid);
    }
  }
  if (round_ > kMostRounds) named_.clear();
  return named_;
}

}  // namespace karst::kernel
