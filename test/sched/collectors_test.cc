// The collectors on the real kernel: a program that waits at moments it notes itself, by the clock of its events.
#include <gtest/gtest.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#include <atomic>
#include <cstdio>
#include <iterator>
#include <memory>
#include <string>
#include <thread>

#include "collect/clock.h"
#include "sched/recorder.h"

namespace karst::test {
namespace {

using reader::ThreadState;
using reader::ThreadStates;
using sched::Wanted;

enum class Op : std::uint32_t { kSleep, kPipe, kFutex, kYield };

/// What a thread noted around one call that waits, or may.
struct Moment {
  Op op;
  std::uint64_t before;
  std::uint64_t after;
};
struct Notes {
  std::uint32_t tid;
  std::uint32_t count;
  std::uint64_t begin;  ///< between these two nothing else waits
  std::uint64_t end;
  std::uint64_t spin_begin;
  std::uint64_t spin_end;
  Moment moments[4096];
};
struct Shared {
  Notes notes[2];  ///< the first thread's and the second's
  std::atomic<std::uint32_t> turn;
};

class Noting {
 public:
  explicit Noting(Notes& notes) : notes_(notes) {
    notes.tid = static_cast<std::uint32_t>(gettid());
    notes.begin = __rdtsc();
  }
  template <typename Call>
  void around(Op op, Call call) {
    Moment& m = notes_.moments[notes_.count % std::size(notes_.moments)];
    m.op = op;
    m.before = __rdtsc();
    call();
    m.after = __rdtsc();
    ++notes_.count;
  }

 private:
  Notes& notes_;
};

void futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value) {
  syscall(SYS_futex, &word, operation, value, nullptr, nullptr, 0);
}

/// What both threads of the program do, each waiting for the other.
void play(Shared& shared, std::uint32_t me, const int in, const int out) {
  Notes& notes = shared.notes[me];
  Noting noting(notes);
  for (int i = 0; i < 20; ++i)
    noting.around(Op::kSleep, [] {
      const timespec t{0, 300'000};
      nanosleep(&t, nullptr);
    });
  char word = 0;
  for (int i = 0; i < 150; ++i) {
    if (me == 0) noting.around(Op::kPipe, [&] { (void)!write(out, &word, 1); });
    noting.around(Op::kPipe, [&] { (void)!read(in, &word, 1); });
    if (me == 1) noting.around(Op::kPipe, [&] { (void)!write(out, &word, 1); });
  }
  for (std::uint32_t now = 0; (now = shared.turn.load()) < 300;) {
    if (now % 2 == me) {
      shared.turn = now + 1;
      noting.around(Op::kFutex, [&] { futex(shared.turn, FUTEX_WAKE, 1); });
    } else {
      noting.around(Op::kFutex, [&] { futex(shared.turn, FUTEX_WAIT, now); });
    }
  }
  for (int i = 0; i < 50; ++i) noting.around(Op::kYield, [] { sched_yield(); });
  // Both on one CPU: each is the other's busy neighbour.
  notes.spin_begin = __rdtsc();
  // The clock is a system call, which may be recorded too: asked seldom, or its records fill the ring.
  timespec t{};
  do {
    for (int i = 0; i < 20'000; ++i) _mm_pause();
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  } while (t.tv_sec == 0 && t.tv_nsec < 60'000'000);
  notes.spin_end = notes.end = __rdtsc();
}

/// Runs in the child.
void program(Shared& shared) {
  cpu_set_t all;
  sched_getaffinity(0, sizeof all, &all);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &all)) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
    break;
  }
  int there[2];
  int back[2];
  if (pipe(there) != 0 || pipe(back) != 0) return;
  std::thread second([&] { play(shared, 1, there[0], back[1]); });
  play(shared, 0, back[0], there[1]);
  second.join();
}

struct Ran {
  std::unique_ptr<reader::States> states;
  std::uint64_t margin = 0;  ///< 2 us in ticks
};

Ran run_program(Shared& shared, const sched::StateOptions& options) {
  int go[2];
  EXPECT_EQ(pipe(go), 0);
  const reader::ClockPair first = collect::read_clock_pair();
  const pid_t child = fork();
  if (child == 0) {
    char word = 0;
    close(go[1]);
    if (read(go[0], &word, 1) == 1) program(shared);
    _exit(0);
  }
  sched::StateRecorder recorder(options);
  recorder.start(child);
  EXPECT_EQ(write(go[1], "", 1), 1);
  close(go[0]);
  close(go[1]);
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  reader::StateLog log = recorder.stop();
  const reader::ClockPair last = collect::read_clock_pair();
  Ran run;
  run.margin = 2'000 * (last.ticks - first.ticks) / (last.monotonic_raw_ns - first.monotonic_raw_ns);
  run.states = std::make_unique<reader::States>(std::move(log));
  return run;
}

/// Everything that must hold whoever else uses the machine.
void check(const Shared& shared, const Ran& run) {
  const reader::States& states = *run.states;
  const bool wakers = (states.source().flags & format::kStatesWakes) != 0;
  EXPECT_LT(states.source().clock_error_ns, 2'000U);
  EXPECT_EQ(states.source().lost_events, 0U);
  const std::uint32_t pid = shared.notes[0].tid;
  std::uint64_t preempted = 0;
  std::uint64_t woken_by_other = 0;
  std::uint64_t least_before = ~std::uint64_t{0};
  std::uint64_t least_after = ~std::uint64_t{0};
  for (int me = 0; me < 2; ++me) {
    const Notes& notes = shared.notes[me];
    const std::uint32_t other = states.task_of(shared.notes[1 - me].tid);
    const ThreadStates* t = states.of(pid, notes.tid);
    ASSERT_NE(t, nullptr) << states.source().note;
    for (std::uint32_t i = 0; i < notes.count; ++i) {
      const Moment& m = notes.moments[i];
      if (m.op != Op::kSleep) continue;
      const auto times = t->between(m.before, m.after);
      EXPECT_GT(times.blocked, 0U) << "sleep " << i;
      EXPECT_EQ(times.unknown, 0U) << "sleep " << i;
    }
    // Outside of the calls that wait the thread never waits, by its own clock: so no time is off by more than this.
    std::uint32_t next = 0;
    for (std::size_t i = 0; i < t->size(); ++i) {
      const std::uint64_t begin = t->begin[i];
      const std::uint64_t end = t->end_of(i);
      if (begin < notes.begin + run.margin || end + run.margin > notes.end) continue;
      EXPECT_NE(t->state[i], ThreadState::kUnknown);
      EXPECT_NE(t->state[i], ThreadState::kGone);
      if (t->state[i] != ThreadState::kBlocked) continue;
      while (next + 1 < notes.count && notes.moments[next].after + run.margin < end) ++next;
      const Moment& m = notes.moments[next];
      EXPECT_GE(begin + run.margin, m.before) << "blocked before the call";
      EXPECT_LE(end, m.after + run.margin) << "blocked behind the call";
      EXPECT_NE(m.op, Op::kYield) << "a yield does not block";
      least_before = std::min(least_before, begin - std::min(begin, m.before));
      least_after = std::min(least_after, m.after - std::min(m.after, end));
      if (!wakers) {
        EXPECT_EQ(t->by[i], reader::kNoTask);
      } else if (m.op == Op::kSleep) {
        EXPECT_EQ(t->by[i], reader::kInterruptTask);
      } else {
        EXPECT_EQ(t->by[i], other);
        woken_by_other += t->by[i] == other ? 1 : 0;
      }
    }
    const auto spun = t->between(notes.spin_begin, notes.spin_end);
    EXPECT_LE(spun.blocked, run.margin) << "a thread that computes is not blocked";
    EXPECT_EQ(spun.unknown, 0U);
    preempted += spun.runnable;
  }
  EXPECT_GT(preempted, 0U) << "two that compute on one CPU take it from each other";
  if (wakers) {
    EXPECT_GT(woken_by_other, 0U);
  }
  // The clocks differ by less than the larger of these.
  std::printf(
      "least time from the call's begin to the switch %llu ticks, from the switch to its end %llu; 2 us: %llu\n",
      static_cast<unsigned long long>(least_before), static_cast<unsigned long long>(least_after),
      static_cast<unsigned long long>(run.margin));
}

class Collectors : public testing::Test {
 protected:
  void SetUp() override {
    void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    shared_ = static_cast<Shared*>(memory);
    // What page faults wait for must not be taken for waits of the program's.
    for (Notes& n : shared_->notes)
      for (Moment& m : n.moments) m.before = 1;
  }
  void TearDown() override { munmap(shared_, sizeof(Shared)); }
  Shared* shared_ = nullptr;
};

TEST_F(Collectors, PerfEventsTellRunningFromWaiting) {
  sched::StateOptions options;
  options.wanted = Wanted::kPerf;
  const Ran run = run_program(*shared_, options);
  if (run.states->source().backend == format::StateBackend::kNone) GTEST_SKIP() << run.states->source().note;
  EXPECT_EQ(run.states->source().backend, format::StateBackend::kPerf);
  EXPECT_FALSE(run.states->source().note.empty()) << "says what ftrace would need";
  check(*shared_, run);
}

TEST_F(Collectors, FtraceNamesWakersAndSystemCalls) {
  sched::StateOptions options;
  options.wanted = Wanted::kFtrace;
  options.syscalls = true;
  const Ran run = run_program(*shared_, options);
  if (run.states->source().backend == format::StateBackend::kNone) GTEST_SKIP() << run.states->source().note;
  EXPECT_TRUE(run.states->source().note.empty());
  check(*shared_, run);
  const Notes& notes = shared_->notes[1];
  const ThreadStates& t = *run.states->of(shared_->notes[0].tid, notes.tid);
  for (std::uint32_t i = 0; i < notes.count; ++i) {
    const Moment& m = notes.moments[i];
    for (std::size_t at = t.at(m.before); at < t.size() && t.begin[at] < m.after; ++at) {
      if (t.state[at] != ThreadState::kBlocked || t.begin[at] < m.before) continue;
      const auto name = t.syscall[at] != 0 ? reader::syscall_name(t.syscall[at] - 1) : "none";
      const char* expected = m.op == Op::kSleep ? "clock_nanosleep" : m.op == Op::kFutex ? "futex" : "read";
      if (m.op == Op::kSleep && name == "nanosleep") continue;  // older libc
      EXPECT_EQ(name, expected);
    }
  }
}

TEST_F(Collectors, AutoTakesTheBestThatWorks) {
  const Ran run = run_program(*shared_, {});
  const auto& source = run.states->source();
  if (source.backend == format::StateBackend::kNone) GTEST_SKIP() << source.note;
  EXPECT_EQ(source.backend == format::StateBackend::kFtrace, source.note.empty()) << source.note;
}

// As any user: root gives its rights away first.
TEST_F(Collectors, WorkWithoutPrivileges) {
  if (geteuid() != 0) GTEST_SKIP() << "the other tests have none either";
  const pid_t child = fork();
  if (child == 0) {
    constexpr uid_t kNobody = 65534;
    const bool gone = setresgid(kNobody, kNobody, kNobody) == 0 && setresuid(kNobody, kNobody, kNobody) == 0;
    prctl(PR_SET_DUMPABLE, 1);
    const Ran run = run_program(*shared_, {});
    const auto& source = run.states->source();
    std::printf("without privileges: %s\n", source.note.c_str());
    bool good = gone && !source.note.empty() && source.backend != format::StateBackend::kFtrace;
    if (source.backend == format::StateBackend::kPerf) check(*shared_, run);
    good = good && !testing::Test::HasFailure();
    std::fflush(stdout);
    _exit(good ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(Collectors, OffRecordsNothingAndSaysSo) {
  sched::StateOptions options;
  options.wanted = Wanted::kOff;
  const Ran run = run_program(*shared_, options);
  EXPECT_EQ(run.states->source().backend, format::StateBackend::kNone);
  EXPECT_TRUE(run.states->empty());
  EXPECT_NE(run.states->source().note.find("--sched off"), std::string::npos);
}

}  // namespace
}  // namespace karst::test
