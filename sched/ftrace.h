// Thread states by ftrace, for those who may: who woke whom, who took the CPU, which system call.
//
// An instance of tracefs of our own, by libtracefs, with the clock `x86-tsc`, which is the trace's own, so that times
// need no conversion. `set_event_pid` holds the program's pid, and the option event-fork adds what descends from it:
// the kernel then records a switch if either of its threads is ours, and a waking if the waker or the woken one is.
// A thread that ends leaves that filter before its last switch: sched_process_exit says that it is gone.
// Rings are read as raw pages and decoded at offsets that libtraceevent reads from the event formats of this kernel.
//
// sched_wakeup is not recorded: it says again, a little later, what sched_waking has said, and costs as much.
#pragma once
#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reader/result.h"
#include "sched/collector.h"
#include "sched/tracefs_place.h"

struct kbuffer;
struct tracefs_cpu;
struct tracefs_instance;

namespace karst::sched {

struct FtraceOptions {
  bool syscalls = false;
  bool everybody = false;                     ///< no filter: all that runs on the CPUs
  std::size_t bytes = std::size_t{16} << 20;  ///< of the kernel's rings together
};

class Ftrace : public Collector {
 public:
  /// Makes the instance. Error: it cannot be had; says what would be needed.
  static Result<std::unique_ptr<Ftrace>> open(const FtraceOptions& options);
  /// Removes the instance.
  ~Ftrace() override;

  /// Records from now on. `program` must not have called exec yet.
  Status start(pid_t program, RecordStore& store);

  void drain(RecordStore& store) override;
  void add_descriptors(std::vector<pollfd>&) const override {}
  int interval_ms() const override { return 20; }
  /// The kernel's reading of the TSC and ours differ by what the processor may move either.
  std::uint32_t clock_error_ns() const override { return 50; }

 private:
  struct Field {
    std::uint32_t offset = 0;
    std::uint32_t size = 0;
  };
  /// Where things are in this kernel's records; an event's id is 0 when it is not recorded.
  struct Layout {
    Field type, flags, pid;  // common to all
    std::uint16_t switch_id = 0, waking_id = 0, newtask_id = 0, rename_id = 0, ended_id = 0, enter_id = 0, exit_id = 0;
    Field prev_comm, prev_pid, prev_state, next_comm, next_pid;
    Field woken_comm, woken_pid;
    Field new_pid, new_flags;
    Field renamed_pid, renamed_comm;
    Field enter_nr, exit_nr;
  };
  struct Cpu {
    std::uint16_t number = 0;
    tracefs_cpu* reader = nullptr;
    std::uint64_t last_ticks = 0;
  };

  explicit Ftrace(TracefsPlace place) : place_(std::move(place)) {}
  Status read_layout();
  Status set_up(const FtraceOptions& options);
  void drain(Cpu& cpu, RecordStore& store);
  void take(Cpu& cpu, std::uint64_t ticks, std::span<const std::byte> record, RecordStore& store);

  TracefsPlace place_;
  tracefs_instance* instance_ = nullptr;
  kbuffer* page_ = nullptr;
  std::vector<std::byte> buffer_;
  std::vector<Cpu> cpus_;
  Layout layout_;
  FtraceOptions options_;
};

}  // namespace karst::sched
