// SPDX-License-Identifier: MIT
// A process of the runtime's own that shares the program's memory, and nothing else of it: it does what is to be done
// beside the program's threads for as long as the program lives (maintenance/control.h, timing/clock_thread.cc).
//
// Why no thread: programs count their threads, and refuse to fork, to enter a sandbox or to work at all if they are not
// alone (Chromium's zygote, sandboxes, runtimes' checks of fork). The kernel, too, denies some calls to a process of
// several threads. A process that shares the memory is none of the program's threads, for nobody who looks.
//
//                 program                          own process
//   memory        ---------------- one ------------------
//   descriptors   its own                          none but ours (own_descriptor.h)
//   directory     its own                          /
//   signals       its own                          own table, all blocked but kParentDied
//   children      the own process, which wait() does not report: it sends no signal at its end
//
// What runs in it may use no libc, no thread-local variable (karst_state among them, so no hook and nothing that
// records), and no lock of the program's. Numbers of processes and threads that it asks for are its own; the program's
// is `programs_pid()`.
//
// Its life. The kernel tells it by a signal when the thread that made it ends; it ends if the program has. It holds the
// memory for so long, mostly some 50 us. A program that executes another one says so before (maintenance/control.h); by
// a bare system call it does not, and is found out within a second.
#pragma once
#include <cstdint>

#include "runtime/system/own_memory.h"

namespace karst::runtime {

class OwnProcess {
 public:
  using Body = void (*)();

  /// Runs `body`; the process ends when it returns. `name`: what `ps` shows of it, at most 15 bytes. False, and nothing
  /// said, when none can be had (RLIMIT_NPROC, seccomp, memory, valgrind, no /proc). Not while it is running.
  bool start(Body body, const char* name);

  /// Waits until it has ended, and the kernel has forgotten it. Whoever calls it has made `body` return.
  void wait_until_gone();

  /// In a forked child, which has none: forgets it. Its memory is used again.
  void forget();

  bool running() const { return __atomic_load_n(&pid_, __ATOMIC_ACQUIRE) != 0; }

 private:
  friend bool is_own_process();
  friend bool was_own_process(std::uint32_t pid);
  static void begin();
  static OwnProcess* at(std::uintptr_t stack);
  void reap(int options);

  OwnMemory memory_;
  Body body_ = nullptr;
  const char* name_ = nullptr;
  OwnProcess* next_ = nullptr;  // of all that there are; a list that only grows
  bool listed_ = false;
  std::uint32_t pid_ = 0;  // cleared by the kernel when it ends
  std::uint32_t last_pid_ = 0;
};

/// The calling thread is such a process.
bool is_own_process();

/// One of them that has been killed had this number: what it was in the middle of stays so.
bool was_own_process(std::uint32_t pid);

/// The process whose memory this is: also if an own process asks.
std::uint32_t programs_pid();

/// Asked by an own process: false when the program executes another one by now, and this memory is nobody's.
bool program_is_there();

/// A path below /proc of the program's, from an own process: "/proc/PID/REST" in `path`. False: /proc is another
/// namespace's, or not there.
bool programs_proc(const char* rest, char* path, std::uint32_t room);

/// From now on the calling process, one of the runtime's own, does not interrupt a thread of the program's by being
/// woken (SCHED_BATCH). Its share of busy processors stays what it was, and the kernel may still give it a processor
/// when something else interrupts. Nothing changes where the program runs by another policy than the usual one (its
/// thread's is ours), or under a seccomp filter.
void make_own_process_polite();

}  // namespace karst::runtime
