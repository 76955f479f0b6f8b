// The collectors on the real kernel: a program that waits at moments it notes itself, by the clock of its events.
#include <gtest/gtest.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <string>
#include <thread>

#include "analysis/syscall_names.h"
#include "kernel/late_ftrace.h"
#include "test/kernel/watched.h"

namespace karst::test {
namespace {

using kernel::Wanted;
using reader::ThreadState;
using reader::ThreadStates;

struct Shared {
  Notes notes[2];  ///< the first thread's and the second's
  std::atomic<std::uint32_t> turn;
  std::uint32_t slow_rounds;  ///< turns with a sleep in each, before all else
};

void futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value) {
  syscall(SYS_futex, &word, operation, value, nullptr, nullptr, 0);
}

/// What both threads of the program do, each waiting for the other.
void play(Shared& shared, std::uint32_t me, const int in, const int out) {
  Notes& notes = shared.notes[me];
  notes.tid = static_cast<std::uint32_t>(gettid());
  const std::uint64_t faults = faults_now();
  notes.begin = arch::time_stamp();
  for (int i = 0; i < 20; ++i)
    notes.around(Op::kSleep, [] {
      const timespec t{0, 300'000};
      syscall(SYS_nanosleep, &t, nullptr);
    });
  char word = 0;
  const auto turn = [&] {
    if (me == 0) notes.around(Op::kPipe, [&] { syscall(SYS_write, out, &word, 1); });
    notes.around(Op::kPipe, [&] { syscall(SYS_read, in, &word, 1); });
    if (me == 1) notes.around(Op::kPipe, [&] { syscall(SYS_write, out, &word, 1); });
  };
  for (std::uint32_t i = 0; i < shared.slow_rounds; ++i) {
    turn();
    notes.around(Op::kSleep, [] {
      const timespec t{0, 100'000};
      syscall(SYS_nanosleep, &t, nullptr);
    });
  }
  for (int i = 0; i < 150; ++i) turn();
  for (std::uint32_t now = 0; (now = shared.turn.load()) < 300;) {
    if (now % 2 == me) {
      shared.turn = now + 1;
      notes.around(Op::kFutex, [&] { futex(shared.turn, FUTEX_WAKE, 1); });
    } else {
      notes.around(Op::kFutex, [&] { futex(shared.turn, FUTEX_WAIT, now); });
    }
  }
  for (int i = 0; i < 50; ++i) notes.around(Op::kYield, [] { sched_yield(); });
  // Both on one CPU: each is the other's busy neighbour.
  notes.spin_begin = arch::time_stamp();
  // The clock is a system call, which may be recorded too: asked seldom, or its records fill the ring.
  timespec t{};
  do {
    for (int i = 0; i < 20'000; ++i) arch::pause();
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  } while (t.tv_sec == 0 && t.tv_nsec < 60'000'000);
  notes.spin_end = notes.end = arch::time_stamp();
  notes.faults = faults_now() - faults;
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

Watched run_program(Shared& shared, const kernel::StateOptions& options) {
  return watch(options, [&shared] { program(shared); });
}

/// How near the switches came to the notes around them, in ticks.
struct Nearest {
  std::uint64_t before = ~std::uint64_t{0};
  std::uint64_t after = ~std::uint64_t{0};
  std::uint64_t shortest = ~std::uint64_t{0};  ///< call that waits for the other thread
};

/// Everything that must hold however busy the machine is: what is known is right, to within the error that the trace
/// states. Only if records were lost may something be unknown. The kernel may wait in a page fault, too: as many waits
/// as there were of these may look odd.
Nearest check(const Shared& shared, const Watched& run) {
  const reader::States& states = *run.states;
  const bool wakers = (states.source().flags & format::kStatesWakes) != 0;
  const std::uint64_t wakes_from = wakers ? states.log().wakes_from() : ~std::uint64_t{0};
  const bool own_wakers = (states.source().flags & format::kStatesOwnWakes) != 0;
  const std::uint64_t error = run.error();
  const std::uint32_t pid = shared.notes[0].tid;
  std::uint64_t preempted = 0;
  std::uint64_t slept = 0;
  std::uint64_t woken_by_other = 0;
  Nearest nearest;
  EXPECT_LT(states.source().clock_error_ns, 2'000U);
  for (int me = 0; me < 2; ++me) {
    const Notes& notes = shared.notes[me];
    const std::uint32_t other = states.task_of(shared.notes[1 - me].tid);
    const ThreadStates* t = states.of(pid, notes.tid);
    if (t == nullptr && run.lost()) continue;
    EXPECT_NE(t, nullptr) << states.source().note;
    if (t == nullptr) continue;
    for (std::uint32_t i = 0; i < notes.count; ++i) {
      const Moment& m = notes.moments[i];
      if (m.op != Op::kSleep) continue;
      const auto times = t->between(m.before, m.after);
      // A thread that was kept from going to sleep until its time was up does not sleep.
      slept += times.blocked > 0 ? 1 : 0;
      EXPECT_TRUE(times.unknown == 0 || run.lost()) << "sleep " << i;
    }
    // Outside of the calls that wait the thread never waits, by its own clock: so no time is off by more than this.
    std::uint32_t next = 0;
    std::uint64_t odd = 0;
    const auto must = [&odd](bool holds, const char* what, std::size_t at) {
      if (holds) return;
      ++odd;
      std::printf("state %zu: %s\n", at, what);
    };
    for (std::size_t i = 0; i < t->size(); ++i) {
      const std::uint64_t begin = t->begin[i];
      const std::uint64_t end = t->end_of(i);
      if (begin < notes.begin + error || end + error > notes.end) continue;
      EXPECT_TRUE(run.lost() || t->state[i] != ThreadState::kUnknown) << i;
      EXPECT_NE(t->state[i], ThreadState::kGone) << i;
      if (t->state[i] != ThreadState::kBlocked) continue;
      while (next + 1 < notes.count && notes.moments[next].after + error < end) ++next;
      const Moment& m = notes.moments[next];
      must(begin + error >= m.before && end <= m.after + error, "blocked outside of the calls that wait", i);
      must(m.op != Op::kYield, "a yield does not block", i);
      if (begin >= m.before) nearest.before = std::min(nearest.before, begin - m.before);
      if (m.op != Op::kSleep) nearest.shortest = std::min(nearest.shortest, m.after - m.before);
      // With wakers known, between the two lies the wait for the CPU.
      std::size_t back = i + 1;
      while (back < t->size() && t->state[back] == ThreadState::kWoken) ++back;
      if (back < t->size() && t->state[back] == ThreadState::kRunning && t->begin[back] <= m.after)
        nearest.after = std::min(nearest.after, m.after - t->begin[back]);
      // Before all wakers are known, those are that the program's own threads are, if anything is.
      const bool all_known = begin >= wakes_from;
      if (!all_known && !own_wakers) {
        EXPECT_TRUE(end > wakes_from || t->by[i] == reader::kNoTask);
        continue;
      }
      if ((run.lost() || (!all_known && m.op == Op::kSleep)) && t->by[i] == reader::kNoTask) continue;
      // With threads for interrupts one of those wakes, not the interrupt.
      if (m.op == Op::kSleep) {
        must(reader::is_interrupt(t->by[i]) || (t->by[i] < states.tasks().size() && !states.tasks()[t->by[i]].of_run),
             "a sleep is ended by the timer", i);
      } else {
        must(t->by[i] == other, "woken by the other thread", i);
        woken_by_other += t->by[i] == other ? 1 : 0;
      }
    }
    const auto spun = t->between(notes.spin_begin, notes.spin_end);
    must(spun.blocked <= error, "a thread that computes is not blocked", 0);
    EXPECT_TRUE(spun.unknown == 0 || run.lost());
    EXPECT_LE(odd, notes.faults) << "waits that nothing explains";
    preempted += spun.runnable;
  }
  if (!run.lost()) {
    EXPECT_GT(slept, 0U);
    EXPECT_GT(preempted, 0U) << "two that compute on one CPU take it from each other";
    EXPECT_TRUE(!wakers || woken_by_other > 0);
  }
  std::printf(
      "stated error %u ns; from a call's begin to the switch at least %.0f ns, from there to its end %.0f ns; %llu and "
      "%llu page faults; lost %llu\n",
      states.source().clock_error_ns, static_cast<double>(nearest.before) / run.ticks_per_ns,
      static_cast<double>(nearest.after) / run.ticks_per_ns, static_cast<unsigned long long>(shared.notes[0].faults),
      static_cast<unsigned long long>(shared.notes[1].faults),
      static_cast<unsigned long long>(states.source().lost_events));
  return nearest;
}

/// No time can be early by more than the one and late by more than the other: the bound, proven from outside. Where a
/// switch takes longer than here, because the machine is slow or others trace it too, the proof is as much weaker: of
/// the shortest call that waits each of the two is less than half, as the other thread's are in there as well.
void expect_proven(const Nearest& nearest, const Watched& run) {
  if (run.lost() && nearest.shortest == Nearest{}.shortest) return;
  const std::uint64_t bound = std::max(run.ticks(2'000), nearest.shortest / 2);
  EXPECT_LT(nearest.before, bound);
  EXPECT_LT(nearest.after, bound);
}

class Collectors : public testing::Test {
 protected:
  Shared& shared() { return *shared_; }

 private:
  SharedMemory<Shared> shared_;
};

TEST_F(Collectors, PerfEventsTellRunningFromWaiting) {
  kernel::StateOptions options;
  options.wanted = Wanted::kPerf;
  const Watched run = run_program(shared(), options);
  if (run.states->source().backend == format::StateBackend::kNone) GTEST_SKIP() << run.states->source().note;
  EXPECT_EQ(run.states->source().backend, format::StateBackend::kPerf);
  EXPECT_FALSE(run.states->source().note.empty()) << "says what ftrace would need";
  expect_proven(check(shared(), run), run);
}

TEST_F(Collectors, FtraceNamesWakers) {
  kernel::StateOptions options;
  options.wanted = Wanted::kFtrace;
  const Watched run = run_program(shared(), options);
  if (run.states->source().backend == format::StateBackend::kNone) GTEST_SKIP() << run.states->source().note;
  EXPECT_TRUE(run.states->source().note.empty());
  expect_proven(check(shared(), run), run);
}

// Perf events tell what a program does from its begin, ftrace what it does later: nothing in between is unknown.
TEST_F(Collectors, FtraceJoinsAProgramThatRuns) {
  shared().slow_rounds = 1000;  // a quarter of a second
  kernel::StateOptions options;
  options.wanted = Wanted::kAuto;
  const Watched run = run_program(shared(), options);
  const reader::StateSource& source = run.states->source();
  if (source.backend != format::StateBackend::kFtrace) GTEST_SKIP() << source.note;
  const std::uint64_t from = run.states->log().wakes_from();
  EXPECT_GT(from, source.begin_ticks + run.ticks(std::uint64_t{kernel::kFtraceAfterMs} * 1'000'000));
  EXPECT_LT(from, shared().notes[0].end);
  expect_proven(check(shared(), run), run);
  EXPECT_NE(source.flags & format::kStatesOwnWakes, 0U);
  // A part from before it has not all wakers, and does not say that it has.
  const auto flags = [&](std::uint64_t begin, std::uint64_t end) {
    return reader::excerpt_states(run.states->log(), begin, end).source.flags & format::kStatesWakes;
  };
  EXPECT_EQ(flags(source.begin_ticks, from), 0U);
  EXPECT_NE(flags(source.begin_ticks, from + 1), 0U);
  EXPECT_NE(flags(from + 1, source.end_ticks), 0U);
}

TEST_F(Collectors, FtraceNamesSystemCalls) {
  kernel::StateOptions options;
  options.wanted = Wanted::kFtrace;
  options.syscalls = true;
  const Watched run = run_program(shared(), options);
  if (run.states->source().backend == format::StateBackend::kNone) GTEST_SKIP() << run.states->source().note;
  check(shared(), run);
  std::uint64_t named = 0;
  for (const Notes& notes : shared().notes) {
    const ThreadStates* t = run.states->of(shared().notes[0].tid, notes.tid);
    if (t == nullptr) continue;  // check() has said so
    for (std::uint32_t i = 0; i < notes.count; ++i) {
      const Moment& m = notes.moments[i];
      for (std::size_t at = t->at(m.before); at < t->size() && t->begin[at] < m.after; ++at) {
        if (t->state[at] != ThreadState::kBlocked || t->begin[at] < m.before) continue;
        if (t->syscall[at] == 0 && run.lost()) continue;
        const auto name = t->syscall[at] != 0 ? analysis::syscall_name(t->syscall[at] - 1) : "none";
        const bool expected = m.op == Op::kSleep   ? name == "nanosleep"
                              : m.op == Op::kPipe  ? name == "read" || name == "write"
                              : m.op == Op::kFutex ? name == "futex"
                                                   : name == "sched_yield";
        EXPECT_TRUE(expected) << name << " in a call of kind " << static_cast<int>(m.op);
        ++named;
      }
    }
  }
  EXPECT_TRUE(named > 0 || run.lost());
}

TEST_F(Collectors, AutoTakesTheBestThatWorks) {
  const Watched run = run_program(shared(), {});
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
    const Watched run = run_program(shared(), {});
    const auto& source = run.states->source();
    std::printf("without privileges: %s\n", source.note.c_str());
    bool good = gone && source.note.empty() == (source.backend == format::StateBackend::kFtrace);
    if (source.backend != format::StateBackend::kNone) check(shared(), run);
    good = good && !testing::Test::HasFailure();
    std::fflush(stdout);
    _exit(good ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(Collectors, OffRecordsNothingAndSaysSo) {
  kernel::StateOptions options;
  options.wanted = Wanted::kOff;
  const Watched run = run_program(shared(), options);
  EXPECT_EQ(run.states->source().backend, format::StateBackend::kNone);
  EXPECT_TRUE(run.states->empty());
  EXPECT_NE(run.states->source().note.find("--sched off"), std::string::npos);
}

}  // namespace
}  // namespace karst::test
