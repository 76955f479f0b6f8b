// SPDX-License-Identifier: MIT
// Which thread of a process may be made to call dlopen now, and how it goes on afterwards.
#pragma once
#include <sys/types.h>
#include <sys/user.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "collect/inject/allocator.h"
#include "collect/inject/memory.h"
#include "collect/inject/tracee.h"

namespace karst::collect {

/// What a stopped thread has on its stack, from the stack pointer on.
struct StackWords {
  user_regs_struct registers{};
  std::vector<std::uint64_t> words;
};
/// None: it stands on no stack that has room for a call.
std::optional<StackWords> stack_of(const user_regs_struct& registers, const ForeignMemory& memory,
                                   const std::vector<Mapping>& mappings);

/// Where code stands that may hold locks of the dynamic linker or the allocator.
class BusyCode {
 public:
  BusyCode(const ForeignMemory& memory, const std::vector<Mapping>& mappings, const OwnAllocator& allocator);
  enum class Verdict : std::uint8_t {
    kFree,     ///< no frame of the thread is in such code or in a signal handler
    kBusy,     ///< it stands in such code
    kNotKnown  ///< a word on its stack looks like a return address in such code, and may be an old one
  };
  Verdict judge(const StackWords& stack, const ForeignMemory& memory) const;
  /// Whether frames that stand, or go on, at these addresses are not in such code, nor in a signal handler.
  bool is_free(const std::vector<std::uint64_t>& frames, const ForeignMemory& memory) const;

 private:
  struct Range {
    std::uint64_t begin;
    std::uint64_t end;
  };
  bool has(std::uint64_t address) const;
  /// The signal whose frame begins at this word came while the thread was in a system call, as select(), and not in
  /// code that may hold a lock. (PostgreSQL forks in its handlers; the children never leave them.)
  bool interrupted_a_call(const StackWords& stack, std::size_t at, const ForeignMemory& memory) const;
  /// A system call's instruction stands before that address.
  bool is_behind_call(std::uint64_t address, const ForeignMemory& memory) const;
  std::vector<Range> ranges_;
  std::vector<Range> code_;
  std::vector<Range> libc_;
  /// libkarst's, and stubs. Its own threads stand there, which libc knows nothing of; others may hold its locks.
  std::vector<Range> own_;
  /// The program's own allocator is told from its other code. A thread that runs there may be at a lock of it all the
  /// same, in a function that nobody knows to be the allocator's.
  bool only_sleepers_ = false;
};

/// Threads in the order in which they are tried: those that sleep in system calls first. Without those that cannot stop
/// now, or have ended.
std::vector<pid_t> threads_to_try(const HeldProcess& process);

inline constexpr std::uint64_t kSystemCallSize = 2;  ///< bytes of the instruction

/// A thread that does not stop, as it waits in the kernel and takes no interruption there. Until the wait ends it
/// executes nothing, and who has asked it to stop has it stop before it does.
struct DeepWait {
  std::uint64_t ip = 0;  ///< behind its system call
  std::uint64_t sp = 0;
  bool is_vfork = false;  ///< for a child, which executes code of the process's in the process's memory meanwhile
  bool is_exec = false;   ///< the process is about to become another program
};
/// None: it is not in such a wait.
std::optional<DeepWait> deep_wait_of(const HeldProcess& process, pid_t thread, const ForeignMemory& memory);

/// How a thread that was stopped goes on (arch::RemoteCall).
struct Resumption {
  std::uint64_t ip = 0;
  std::uint64_t ax = 0;
  std::uint64_t interrupted_ip = 0;  ///< if a signal's handler runs before
  std::uint64_t interrupted_ax = 0;
  bool may_restart = false;  ///< not so if the handler has SA_RESTART
};
Resumption resumption_of(const user_regs_struct& registers);
/// It waits in a system call that holds no lock of libc.
bool sleeps(const user_regs_struct& registers);

}  // namespace karst::collect
