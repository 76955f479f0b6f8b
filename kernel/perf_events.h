// SPDX-License-Identifier: MIT
// Thread states by perf_event_open, which needs no privileges where kernel.perf_event_paranoid is 2 or less.
//
// The program's first thread gets, before it calls exec, one software event per CPU that counts nothing, with
// `context_switch`, `task` and `comm`: the kernel then writes a record whenever a thread of the program, or of what
// descends from it, comes to that CPU or leaves it, and says if it could have run on. The events are inherited; the
// kernel lets inherited events be mapped only if each belongs to one CPU, which is why there is one for each. The rings
// they write to are ours, in the karst process: nothing of it is in the traced program, and they outlive it.
//
// Each kFaultsPerRecord page faults of a thread in user code are a record, too.
//
// Who may use tracepoints (root) also has sched_waking, of the program's threads while they run: whom they wake. What
// others wake, the kernel's timers among them, is not told.
//
// Beside ftrace only the switches of the program's threads are asked for, which fill what ftrace leaves out
// (RecordStore::add_beside).
//
// Times are CLOCK_MONOTONIC_RAW. Each drain takes a paired reading of it and of the trace's clock; records lie between
// two of these and are placed by interpolation.
#pragma once
#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/descriptor.h"
#include "base/result.h"
#include "kernel/collector.h"
#include "kernel/event_formats.h"
#include "kernel/perf_ring.h"
#include "kernel/raw_clock.h"
#include "kernel/tracefs_place.h"
#include "reader/model.h"

namespace karst::kernel {

/// Reads page faults of a process and its descendants: a counter, no ring.
class FaultCounter {
 public:
  explicit FaultCounter(pid_t program);
  bool works() const { return static_cast<bool>(event_); }
  std::uint64_t read() const;

 private:
  Descriptor event_;
};

enum class PerfRole : std::uint8_t { kAlone, kBesideFtrace };

class PerfEvents : public Collector {
 public:
  /// `program` must not have called exec yet, or is `running`: then each thread that it has gets its own events, which
  /// write to the same rings. Rings take at most `bytes` together. Error: why the kernel refuses, and
  /// what would have to be done.
  static Result<std::unique_ptr<PerfEvents>> open(pid_t program, bool running, PerfRole role, std::size_t bytes,
                                                  RecordStore& store);
  ~PerfEvents() override;

  std::uint64_t drain(RecordStore& store) override;
  void finish(RecordStore& store) override;
  void add_descriptors(std::vector<pollfd>& to) const override;
  int interval_ms() const override { return 200; }
  std::uint32_t clock_error_ns() const override { return clock_.error_ns(); }

  /// When threads have page faults is recorded.
  bool tells_faults() const { return tells_faults_; }
  /// Whom the program's threads wake, from now on. To be called before the program runs. Error: it cannot be had.
  Status record_wakes(pid_t program, const TracefsPlace& place);
  /// ftrace tells what happens from then on; from here come only switches, to fill what it leaves out.
  void tell_beside_from(std::uint64_t ticks);
  /// take_forks() will ask which threads were made. To be called before the program runs.
  void note_forks() { note_forks_ = true; }
  /// Threads that were made (kStateNewThread), as far as it was drained, since this was last asked.
  std::vector<format::StateRecord> take_forks() { return std::exchange(forks_, {}); }

 private:
  struct Ring : PerfRing {
    std::uint64_t last_ns = 0;  ///< time of the latest record
    bool was_full = false;      ///< behind the latest record there was no room for another
  };
  explicit PerfEvents(PerfRole role) : beside_from_(role == PerfRole::kAlone ? ~std::uint64_t{0} : 0) {}
  bool map(std::size_t bytes);
  bool open_rings(const perf_event_attr& attributes, pid_t thread);
  Status open_thread(const perf_event_attr& attributes, pid_t thread);
  void record_faults(pid_t thread);
  void drain(Ring& ring, RecordStore& store);
  void take(Ring& ring, std::span<const std::byte> record, RecordStore& store);
  void take_waking(const Ring& ring, std::span<const std::byte> sample, RecordStore& store) const;
  void take_switch(format::StateRecord made, std::uint16_t misc, std::uint32_t pid, RecordStore& store);

  std::uint64_t beside_from_;  ///< ticks; from then on ftrace tells, and this fills what it leaves out
  bool note_forks_ = false;
  bool tells_faults_ = false;
  std::vector<format::StateRecord> forks_;
  std::vector<Ring> rings_;
  std::vector<int> others_;      ///< events of further threads
  std::vector<int> wakes_;       ///< events of wakings
  Field waker_, woken_, flags_;  ///< in a waking's record
  std::vector<std::byte> copy_;  ///< of a record that wraps around
  RawClock clock_;
};

}  // namespace karst::kernel
