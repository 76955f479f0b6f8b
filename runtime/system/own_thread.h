// SPDX-License-Identifier: MIT
// A thread of the runtime's own, which libc knows nothing of: made by a bare clone(), with a stack and a thread-local
// area of its own. What runs in it may use no libc, no thread-local variable (karst_state among them, so no hook and
// nothing that records), and no lock of the program's; no signal is delivered to it.
//
// It is seen by who counts the process's threads, so it does one thing and ends. What stays is a process
// (own_process.h).
#pragma once
#include <cstdint>

#include "runtime/system/own_memory.h"

namespace karst::runtime {

class OwnThread {
 public:
  using Body = void (*)();

  /// Runs `body`; the thread ends when it returns. False, and nothing said, when no thread can be had (RLIMIT_NPROC,
  /// seccomp, memory). Not while one is running. Async-signal-safe.
  bool start(Body body);

  /// Waits until the kernel counts the thread no more. Whoever calls it knows that `body` returns.
  void wait_until_gone();

  /// In a forked child, which has no thread but the one that forked: forgets it. Its memory is used again.
  void forget() { tid_ = 0; }

  bool running() const { return __atomic_load_n(&tid_, __ATOMIC_ACQUIRE) != 0; }

 private:
  OwnMemory memory_;
  std::uint32_t tid_ = 0;  // cleared by the kernel when the thread ends
  std::uint32_t last_tid_ = 0;
};

}  // namespace karst::runtime
