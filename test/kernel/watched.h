// A program in a child whose threads note the TSC around each call that waits, recorded by a StateRecorder.
#pragma once
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <iterator>
#include <memory>
#include <utility>

#include "arch/cpu.h"
#include "base/clock.h"
#include "kernel/recorder.h"

namespace karst::test {

enum class Op : std::uint32_t { kSleep, kPipe, kFutex, kYield };

/// What a thread noted around one call that waits, or may.
struct Moment {
  Op op;
  std::uint64_t before;
  std::uint64_t after;
};

/// Page faults of the calling thread. The kernel may wait in one, wherever the program is.
inline std::uint64_t faults_now() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return static_cast<std::uint64_t>(usage.ru_minflt + usage.ru_majflt);
}

/// A thread's notes, in memory that it shares with the test.
struct Notes {
  std::uint32_t tid;
  std::uint32_t count;
  std::uint64_t begin;  ///< between these two nothing else waits
  std::uint64_t end;
  std::uint64_t spin_begin;
  std::uint64_t spin_end;
  std::uint64_t faults;  ///< between begin and end
  Moment moments[16384];

  template <typename Call>
  void around(Op op, Call call) {
    Moment& m = moments[count % std::size(moments)];
    m.op = op;
    m.before = arch::time_stamp();
    arch::finish_before();
    call();
    arch::finish_before();
    m.after = arch::time_stamp();
    ++count;
  }
};

/// Memory for a T that parent and child share, all of it touched already.
template <typename T>
class SharedMemory {
 public:
  SharedMemory() {
    void* memory = mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory != MAP_FAILED) value_ = static_cast<T*>(memory);
  }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory() {
    if (value_ != nullptr) munmap(value_, sizeof(T));
  }
  T& operator*() const { return *value_; }
  T* operator->() const { return value_; }

 private:
  T* value_ = nullptr;
};

struct Watched {
  std::unique_ptr<reader::States> states;
  double ticks_per_ns = 1;

  std::uint64_t ticks(std::uint64_t ns) const {
    return static_cast<std::uint64_t>(static_cast<double>(ns) * ticks_per_ns);
  }
  /// The bound that the trace states of the error between its clocks, rounded up.
  std::uint64_t error() const { return ticks(states->source().clock_error_ns + std::uint64_t{1}) + 1; }
  /// Not all that happened was recorded: what is missing may be unknown.
  bool lost() const {
    const reader::StateSource& source = states->source();
    return source.lost_events != 0 || source.overwritten_events != 0 || states->doubts().left_out != 0;
  }
};

/// Runs `program()` in a child, recorded from before its first instruction to its end.
template <typename Program>
Watched watch(const kernel::StateOptions& options, Program program) {
  int go[2];
  EXPECT_EQ(pipe(go), 0);
  const ClockPair first = read_clock_pair();
  const pid_t child = fork();
  if (child == 0) {
    char word = 0;
    close(go[1]);
    if (read(go[0], &word, 1) == 1) program();
    _exit(0);
  }
  kernel::StateRecorder recorder(options);
  recorder.start(child);
  EXPECT_EQ(write(go[1], "", 1), 1);
  close(go[0]);
  close(go[1]);
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  reader::StateLog log = recorder.stop();
  const ClockPair last = read_clock_pair();
  Watched run;
  run.ticks_per_ns = static_cast<double>(last.ticks - first.ticks) /
                     static_cast<double>(last.monotonic_raw_ns - first.monotonic_raw_ns);
  run.states = std::make_unique<reader::States>(std::move(log));
  return run;
}

}  // namespace karst::test
