// SPDX-License-Identifier: MIT
// A way to learn from the kernel when threads run and wait. One object for one run; one thread at a time.
#pragma once
#include <poll.h>
#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "kernel/record_store.h"

namespace karst::kernel {

class Collector {
 public:
  Collector() = default;
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;
  virtual ~Collector() = default;

  /// Takes what the kernel has recorded until now into the store. Returns the time, in ticks, before which all of it is
  /// there.
  virtual std::uint64_t drain(RecordStore& store) = 0;
  /// After a drain(): says what may be missing behind it, in this store or a copy of it.
  virtual void finish(RecordStore&) {}
  /// Descriptors that become readable when it is time to drain(); may be none, then the interval alone counts.
  virtual void add_descriptors(std::vector<pollfd>& to) const = 0;
  /// drain() is due after so many milliseconds at the latest.
  virtual int interval_ms() const = 0;
  /// Bound of the error between the records' times and the trace's clock, so far.
  virtual std::uint32_t clock_error_ns() const = 0;
};

}  // namespace karst::kernel
