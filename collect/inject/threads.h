// Which thread of a process may be made to call dlopen now, and how it goes on afterwards.
#pragma once
#include <sys/types.h>
#include <sys/user.h>

#include <cstdint>
#include <vector>

#include "collect/inject/memory.h"
#include "collect/inject/tracee.h"

namespace karst::collect {

/// Where code stands that may hold locks of the dynamic linker or the allocator.
class BusyCode {
 public:
  BusyCode(const ForeignMemory& memory, const std::vector<Mapping>& mappings);
  /// No frame of the thread seems to be in such code or in a signal handler. Words on the stack that only look like
  /// return addresses count, so that a thread may be taken for busy; not the other way.
  bool is_free(const user_regs_struct& registers, const ForeignMemory& memory,
               const std::vector<Mapping>& mappings) const;

 private:
  struct Range {
    std::uint64_t begin;
    std::uint64_t end;
  };
  bool has(std::uint64_t address) const;
  std::vector<Range> ranges_;
  std::vector<Range> code_;
  std::vector<Range> libc_;
  /// libkarst's, and stubs. Its own threads stand there, which libc knows nothing of; others may hold its locks.
  std::vector<Range> own_;
};

/// Of the process; empty if it is gone.
std::vector<pid_t> threads_of(pid_t pid);
/// Threads in the order in which they are tried: those that sleep in system calls first.
std::vector<pid_t> threads_to_try(pid_t pid);

/// How a thread that was stopped goes on (arch::RemoteCall).
struct Resumption {
  std::uint64_t ip = 0;
  std::uint64_t ax = 0;
  std::uint64_t interrupted_ip = 0;  ///< if a signal comes before
  std::uint64_t interrupted_ax = 0;
};
Resumption resumption_of(const user_regs_struct& registers);
/// It waits in a system call that holds no lock of libc.
bool sleeps(const user_regs_struct& registers);

}  // namespace karst::collect
