// SPDX-License-Identifier: MIT
// Hardware breakpoints in other processes, by perf_event_open: they cost nothing until they are hit, stop nothing, and
// tell when which thread was there with which arguments in its registers.
#pragma once
#include <poll.h>
#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/held_process.h"
#include "base/result.h"
#include "collect/launch/session.h"
#include "reader/model.h"

namespace karst::collect {

struct BreakpointHit {
  std::uint32_t place = 0;  ///< as it was given to add()
  pid_t owner = 0;          ///< the process that it was set in: `pid`, or one that this was forked from
  std::uint64_t address = 0;
  std::uint64_t ticks = 0;
  pid_t pid = 0;
  pid_t tid = 0;
  bool has_arguments = false;
  std::array<std::uint64_t, 6> arguments{};  ///< rdi, rsi, rdx, rcx, r8, r9
};

/// Of any number of processes: their threads now and all that come, in their children by fork as well. What a process
/// becomes by exec has none of them. One thread at a time.
class Breakpoints {
 public:
  Breakpoints();
  ~Breakpoints();
  Breakpoints(const Breakpoints&) = delete;
  Breakpoints& operator=(const Breakpoints&) = delete;

  /// Error: not allowed (with what would allow it), no breakpoint left (the processor has four), the process is gone.
  Status add(const HeldProcess& process, std::uint64_t address, std::uint32_t place);
  /// All that were added for this place.
  void remove(std::uint32_t place);
  /// All that were added in this process; its children lose what they inherited.
  void forget(pid_t pid);
  /// Readable when something was hit.
  void add_descriptors(std::vector<pollfd>& descriptors) const;
  /// In order of time. Hits of what was removed since are left out.
  std::vector<BreakpointHit> take();

 private:
  struct Event {
    std::uint64_t id;  ///< the kernel's, in samples
    pid_t pid;
    std::uint32_t place;
    Descriptor descriptor;
  };
  struct Ring {
    int cpu;
    Descriptor descriptor;  ///< an event that hits nothing; the others put their samples here
    void* pages = nullptr;
  };
  Status open_rings();
  Status open_on(const HeldProcess& process, pid_t tid, std::uint64_t address, std::uint32_t place);
  void read_ring(const Ring& ring, std::vector<BreakpointHit>& hits);

  std::vector<Ring> rings_;
  std::vector<Event> events_;
  Clock clock_;
};

}  // namespace karst::collect
