// Hardware breakpoints in another process, by perf_event_open: they cost nothing until they are hit, stop nothing, and
// tell when which thread was there with which arguments in its registers.
#pragma once
#include <poll.h>
#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "collect/session.h"
#include "reader/model.h"
#include "reader/result.h"

namespace karst::collect {

struct BreakpointHit {
  std::uint64_t address = 0;
  std::uint64_t ticks = 0;
  pid_t pid = 0;
  pid_t tid = 0;
  bool has_arguments = false;
  std::array<std::uint64_t, 6> arguments{};  ///< rdi, rsi, rdx, rcx, r8, r9
};

/// Of one process, its threads now and all that come. One thread at a time.
class Breakpoints {
 public:
  explicit Breakpoints(pid_t pid);
  ~Breakpoints();
  Breakpoints(const Breakpoints&) = delete;
  Breakpoints& operator=(const Breakpoints&) = delete;

  /// Error: not allowed (with what would allow it), no breakpoint left (the processor has four), the process is gone.
  Status add(std::uint64_t address);
  void remove(std::uint64_t address);
  /// Readable when something was hit.
  void add_descriptors(std::vector<pollfd>& descriptors) const;
  /// In order of time.
  std::vector<BreakpointHit> take();

 private:
  struct Event {
    std::uint64_t address;
    Descriptor descriptor;
  };
  struct Ring {
    int cpu;
    Descriptor descriptor;  ///< an event that hits nothing; the others put their samples here
    void* pages = nullptr;
  };
  Status open_rings();
  Status open_on(pid_t tid, std::uint64_t address);
  void read_ring(const Ring& ring, std::vector<BreakpointHit>& hits);

  pid_t pid_;
  std::vector<Ring> rings_;
  std::vector<Event> events_;
  reader::Clock clock_;
};

}  // namespace karst::collect
