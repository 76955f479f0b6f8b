// A thread of the runtime's own, which libc knows nothing of: made by a bare clone(), with a stack and a thread-local
// area of its own. What runs in it may use no libc, no thread-local variable (karst_state among them, so no hook and
// nothing that records), and no lock of the program's; no signal is delivered to it.
#pragma once
#include <cstdint>

namespace karst::runtime {

class OwnThread {
 public:
  using Body = void (*)();

  /// Runs `body`; the thread ends when it returns. False, and nothing said, when no thread can be had (RLIMIT_NPROC,
  /// seccomp, memory). Not while one is running.
  bool start(Body body);

  /// Waits until the kernel counts the thread no more. Whoever calls it has made `body` return.
  void wait_until_gone();

  /// In a forked child, which has no thread but the one that forked: forgets it. Its memory is used again.
  void forget() { tid_ = 0; }

  bool running() const { return __atomic_load_n(&tid_, __ATOMIC_ACQUIRE) != 0; }

 private:
  std::uintptr_t memory_ = 0;  // thread-local area, then stack
  std::uint32_t tid_ = 0;      // cleared by the kernel when the thread ends
  std::uint32_t last_tid_ = 0;
};

/// What `ps` and debuggers show of the calling thread, one of the runtime's own; at most 15 bytes.
void name_own_thread(const char* name);

/// From now on the calling thread, one of the runtime's own, does not interrupt a thread of the program's by being
/// woken (SCHED_BATCH). Its share of busy processors stays what it was, and the kernel may still give it a processor
/// when something else interrupts. Nothing changes where the program runs by another policy than the usual one (its
/// thread's is ours), or under a seccomp filter.
void make_own_thread_polite();

}  // namespace karst::runtime
