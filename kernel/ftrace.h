// SPDX-License-Identifier: MIT
// Thread states by ftrace, for those who may: who woke whom, who took the CPU, which system call.
//
// An instance of tracefs of our own, by libtracefs, with the clock `x86-tsc`, which is the trace's own, so that times
// need no conversion. `set_event_pid` holds the program's pid, and the option event-fork adds what descends from it:
// the kernel then records a switch if either of its threads is ours, and a waking if the waker or the woken one is.
// A thread that ends leaves that filter before its last switch: sched_process_exit says that it is gone.
// Rings are read as raw pages and decoded at offsets that libtraceevent reads from the event formats of this kernel.
//
// sched_wakeup is not recorded: it says again, a little later, what sched_waking has said, and costs as much.
//
// That the clock is ours is not believed but measured, from the first drain to the last: a line written to trace_marker
// is recorded between two readings of the TSC around the write. What these leave open is the error that the trace
// states.
#pragma once
#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <shared_mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kernel/collector.h"
#include "kernel/event_formats.h"
#include "kernel/tracefs_place.h"
#include "reader/model.h"

struct kbuffer;
struct tracefs_cpu;
struct tracefs_instance;

namespace karst::kernel {

struct FtraceOptions {
  bool syscalls = false;
  bool everybody = false;                     ///< no filter: all that runs on the CPUs
  std::size_t bytes = std::size_t{16} << 20;  ///< of the kernel's rings together
  /// base/fork_lock.h, let go of while the kernel takes its time.
  std::shared_lock<std::shared_mutex>* no_fork = nullptr;
};

class Ftrace : public Collector {
 public:
  /// Makes the instance. Error: it cannot be had; says what would be needed.
  static Result<std::unique_ptr<Ftrace>> open(const FtraceOptions& options);
  /// Removes the instance.
  ~Ftrace() override;

  /// Threads that are to be followed, with those that they make, and were not named before.
  using MoreThreads = std::function<std::vector<pid_t>()>;
  /// Records from now on. Asks for threads until there are no more: one that is made while others are named is missed
  /// by nobody.
  Status start(const MoreThreads& more);
  /// From when on it records (ticks).
  std::uint64_t began() const { return began_; }
  /// What lies before is somebody else's to tell.
  void tell_from(std::uint64_t ticks) { tell_from_ = ticks; }

  std::uint64_t drain(RecordStore& store) override;
  void add_descriptors(std::vector<pollfd>&) const override {}
  int interval_ms() const override { return 20; }
  std::uint32_t clock_error_ns() const override;

 private:
  /// Where things are in this kernel's records; an event's id is 0 when it is not recorded.
  struct Layout {
    Field type, flags, pid;  // common to all
    std::uint16_t switch_id = 0, waking_id = 0, newtask_id = 0, rename_id = 0, ended_id = 0, enter_id = 0, exit_id = 0;
    Field prev_comm, prev_pid, prev_state, next_comm, next_pid;
    Field woken_comm, woken_pid;
    Field new_pid, new_flags;
    Field renamed_pid, renamed_comm;
    Field enter_nr, exit_nr;
    std::uint16_t marker_id = 0;
    Field marker_text;
  };
  /// A write to trace_marker, by our readings of the TSC.
  struct Marker {
    std::uint64_t before = 0;
    std::uint64_t after = 0;
  };
  struct Cpu {
    std::uint16_t number = 0;
    tracefs_cpu* reader = nullptr;
    std::uint64_t last_ticks = 0;
  };

  explicit Ftrace(TracefsPlace place) : place_(std::move(place)) {}
  Status read_layout();
  Status set_up(const FtraceOptions& options);
  std::string path_of(const char* file) const;  ///< of a file of the instance
  bool write_slowly(const char* file, const std::string& text) const;
  Status follow(const MoreThreads& more);
  void drain(Cpu& cpu, RecordStore& store);
  void mark();
  void take_marker(std::uint64_t ticks, std::string_view text);
  void take(Cpu& cpu, std::uint64_t ticks, std::span<const std::byte> record, RecordStore& store);

  TracefsPlace place_;
  tracefs_instance* instance_ = nullptr;
  kbuffer* page_ = nullptr;
  std::vector<std::byte> buffer_;
  std::vector<Cpu> cpus_;
  Layout layout_;
  FtraceOptions options_;
  int marker_ = -1;  ///< trace_marker
  std::array<Marker, 64> markers_;
  std::uint32_t marked_ = 0;
  /// Ticks by which the kernel's times can be ahead of ours, and behind them (negative), by the markers seen.
  std::int64_t most_ahead_ = std::numeric_limits<std::int64_t>::max();
  std::int64_t most_behind_ = std::numeric_limits<std::int64_t>::min();
  ClockPair since_;
  std::uint64_t began_ = 0;
  std::uint64_t tell_from_ = 0;
  std::vector<std::string> enabled_;  ///< files of events, in the instance
};

}  // namespace karst::kernel
