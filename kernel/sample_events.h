// SPDX-License-Identifier: MIT
// The perf events that sample threads, and the rings that they fill: one of CPU time for each thread and CPU, and one
// of times off a CPU, whose rings are apart.
//
// A thread that was made while its process was attached to may have an event of its own and an inherited one. Of its
// samples those of one event are taken: of the first that came.
#pragma once
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/held_process.h"
#include "base/result.h"
#include "kernel/perf_ring.h"
#include "kernel/sampler.h"
#include "kernel/unwind.h"

namespace karst::kernel {

inline constexpr int kDrainMs = 100;  ///< rings are emptied at least so often

/// A sample as the kernel writes it. Its `ticks` and `space` are for the caller to fill in.
struct KernelSample {
  RawSample sample;
  std::uint64_t ns = 0;     ///< CLOCK_MONOTONIC_RAW
  std::uint64_t event = 0;  ///< which one it comes from; inherited ones have their maker's number
};
/// `record`: of PERF_RECORD_SAMPLE, with its header.
KernelSample read_sample(std::span<const std::byte> record);

/// One thread at a time.
class SampleEvents {
 public:
  SampleEvents() = default;
  ~SampleEvents() { close(); }
  SampleEvents(const SampleEvents&) = delete;
  SampleEvents& operator=(const SampleEvents&) = delete;

  /// Of a child that waits to be let on to exec, or, if there is `held`, of that process and its threads. `source` is
  /// told what is sampled, and what is not and why. Error: the kernel refuses it.
  Status open(const SampleOptions& options, pid_t program, const HeldProcess* held, reader::SampleSource& source);
  void close();

  std::vector<PerfRing>& rings() { return rings_; }
  std::vector<PerfRing>& wait_rings() { return wait_rings_; }  ///< of threads that leave their CPUs
  const std::set<pid_t>& threads() const { return threads_; }  ///< that have events of their own
  /// Whether further threads' events write to rings.
  bool has_others() const { return !others_.empty(); }

  /// Whether another event of its thread has samples already.
  bool is_second_copy(const KernelSample& sample);
  /// The thread ended, or its number is another one's from now on.
  void forget(std::uint32_t tid);

 private:
  bool open_rings(const std::vector<pid_t>& threads, const HeldProcess* held, const perf_event_attr& attributes);
  Status open_others(const HeldProcess& held, const perf_event_attr& attributes);
  Status open_waits(std::uint32_t per_second, const perf_event_attr& attributes);
  Status map_wait_rings(std::uint32_t per_second);
  void close_waits();
  void note_event(int fd, pid_t thread);

  std::vector<PerfRing> rings_, wait_rings_;
  std::vector<int> others_, wait_others_;  // events of further threads
  std::set<pid_t> threads_;
  std::map<std::uint64_t, pid_t> owners_;  // of events, by the kernel's number
  /// By thread and whether they are of its switches: whose events its samples are taken from.
  std::map<std::pair<std::uint32_t, bool>, pid_t> taken_from_;
};

}  // namespace karst::kernel
