// SPDX-License-Identifier: MIT
#include "kernel/usage_recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "arch/cpu.h"
#include "base/clock.h"
#include "kernel/quiet_thread.h"
#include "kernel/usage_files.h"
#include "kernel/usage_store.h"
#include "kernel/usage_threads.h"

namespace karst::kernel {

using format::UsageKind;
using format::UsageOf;
using SteadyClock = std::chrono::steady_clock;
using std::chrono::nanoseconds;

namespace {

constexpr nanoseconds kProcessPace = std::chrono::milliseconds(10);
constexpr nanoseconds kMachinePace = std::chrono::milliseconds(100);
constexpr double kFreeNs = 2e6;
constexpr std::size_t kMostProcesses = 1000;  ///< at a time; each has some descriptors

/// A process of the run, with its threads.
class UsedProcess {
 public:
  explicit UsedProcess(HeldProcess held)
      : held_(std::move(held)), files_(held_), threads_(held_), own_(UsageOf::kProcess, number(), 0) {}

  std::uint32_t number() const { return static_cast<std::uint32_t>(held_.number()); }

  bool is_there() const { return held_.is_there(); }

  /// False: it has ended.
  bool read(UsageStore& store, std::uint64_t ticks) {
    const bool lives = files_.read([&](UsageKind kind, std::int64_t value) { own_.say(store, ticks, kind, value); });
    if (!lives) {
      for (const UsageKind kind : {UsageKind::kMemory, UsageKind::kThreads}) own_.say(store, ticks, kind, 0);
      return false;
    }
    if (const auto all = threads_.read(store, ticks, files_.threads())) {
      own_.say(store, ticks, UsageKind::kCpuWait, all->wait);
      own_.say(store, ticks, UsageKind::kSwitches, all->switches);
    }
    return true;
  }

 private:
  HeldProcess held_;
  ProcessUsage files_;
  UsedThreads threads_;
  UsageSpeaker own_;
};

}  // namespace

struct UsageRecorder::Impl {
  void run() {
    const MachineUsage machine;
    const GroupUsage group(SystemFile(first_->file("cgroup")).read());
    UsageSpeaker of_machine(UsageOf::kMachine, 0, 0);
    UsageSpeaker of_group(UsageOf::kGroup, 0, 0);
    const SteadyClock::time_point begin = SteadyClock::now();
    SteadyClock::time_point machine_due = begin;
    take_new(std::vector<HeldProcess>{*first_});
    for (bool is_last = false; !is_last;) {
      std::vector<HeldProcess> fresh;
      {
        const SteadyClock::time_point due = next(begin);
        std::unique_lock lock(mutex_);
        wake_.wait_until(lock, due, [this] { return ends_; });
        is_last = ends_;
        fresh.swap(fresh_);
      }
      const std::lock_guard lock(store_mutex_);
      take_new(std::move(fresh));
      const SteadyClock::time_point now = SteadyClock::now();
      if (is_last || now >= machine_due) {
        machine_due = now + kMachinePace;
        const std::uint64_t ticks = arch::time_stamp();
        machine.read([&](UsageKind kind, std::int64_t value) { of_machine.say(store_, ticks, kind, value); });
        group.read([&](UsageKind kind, std::int64_t value) { of_group.say(store_, ticks, kind, value); });
      }
      std::erase_if(processes_, [this](UsedProcess& process) { return !process.read(store_, arch::time_stamp()); });
    }
    cost_ns_ = clock_ns(CLOCK_THREAD_CPUTIME_ID);
  }

  void take_new(std::vector<HeldProcess> fresh) {
    for (HeldProcess& held : fresh) {
      const auto number = static_cast<std::uint32_t>(held.number());
      // One that has ended may not have been read since.
      const bool is_known = std::any_of(processes_.begin(), processes_.end(), [&](const UsedProcess& known) {
        return known.number() == number && known.is_there();
      });
      if (!is_known && processes_.size() < kMostProcesses) processes_.emplace_back(std::move(held));
    }
  }

  /// When to read next.
  SteadyClock::time_point next(SteadyClock::time_point begin) {
    if (std::exchange(is_first_, false)) return begin;
    const double spent = static_cast<double>(clock_ns(CLOCK_THREAD_CPUTIME_ID));
    if (free_ns_ == 0) free_ns_ = spent + kFreeNs;  // files were opened, which is done once
    const nanoseconds affordable(static_cast<std::int64_t>(std::max(0.0, spent - free_ns_) / kUsageBudget));
    return std::max(SteadyClock::now() + kProcessPace, begin + affordable);
  }

  std::optional<HeldProcess> first_;
  std::thread thread_;
  std::mutex mutex_;  // of those up to the next blank line
  std::condition_variable wake_;
  bool ends_ = false;
  std::vector<HeldProcess> fresh_;

  std::mutex store_mutex_;
  UsageStore store_;

  // The thread's alone, until it has ended.
  bool is_first_ = true;
  double free_ns_ = 0;  ///< CPU time that does not count; 0: nothing was read yet
  std::vector<UsedProcess> processes_;
  std::uint64_t cost_ns_ = 0;
};

UsageRecorder::UsageRecorder() : impl_(std::make_unique<Impl>()) {}
UsageRecorder::~UsageRecorder() { static_cast<void>(stop()); }

void UsageRecorder::start(const HeldProcess& first) {
  impl_->first_ = first;
  impl_->thread_ = start_thread("karst-usage", [impl = impl_.get()] { impl->run(); });
}

void UsageRecorder::start(pid_t child) {
  if (auto held = HeldProcess::open(child)) start(*held);
}

void UsageRecorder::add(pid_t process) {
  if (!impl_->thread_.joinable()) return;
  auto held = HeldProcess::open(process);
  if (!held) return;
  const std::lock_guard lock(impl_->mutex_);
  impl_->fresh_.push_back(std::move(*held));
}

reader::UsageLog UsageRecorder::look() {
  const std::lock_guard lock(impl_->store_mutex_);
  return impl_->store_.look();
}

reader::UsageLog UsageRecorder::stop() {
  if (!impl_->thread_.joinable()) return {};
  {
    const std::lock_guard lock(impl_->mutex_);
    impl_->ends_ = true;
  }
  impl_->wake_.notify_one();
  impl_->thread_.join();
  return impl_->store_.take();
}

std::uint64_t UsageRecorder::cost_ns() const { return impl_->cost_ns_; }

}  // namespace karst::kernel
