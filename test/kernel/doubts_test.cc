// Records that the kernel left out: what is not known then, and from when on. reader/state_walk.h
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <vector>

#include "reader/states.h"
#include "test/kernel/records.h"

namespace karst::test {
namespace {

using reader::excerpt_states;
using reader::States;

/// What the thread did is also what a copy of the whole log says, in which the doubts are records.
std::string told(const States& states, std::uint32_t tid) {
  const States again(excerpt_states(states.log(), 0, 1000));
  EXPECT_EQ(describe(again, tid), describe(states, tid));
  EXPECT_EQ(again.doubts().left_out, 0U) << "told already";
  EXPECT_EQ(again.doubts().ticks, states.doubts().ticks);
  return describe(states, tid);
}

// 1 waits from 20 on; 11 leaves CPU 0 at 50, 1 leaves it at 80. Between the two 1 came.
TEST(Doubts, AThreadThatLeavesACpuHadComeToItSinceTheLastRecordThere) {
  const States states(make_log({leave_cpu(10, 0, 0, 1), leave_cpu(20, 0, 1, 11), leave_cpu(50, 0, 11, 0),
                                leave_cpu(80, 0, 1, 0), wake(90, 0, 0, 1, true), leave_cpu(91, 0, 0, 1)}));
  EXPECT_EQ(told(states, 1),
            "unknown 0-10 running@0 10-20 blocked(S) 20-50 unknown 50-80 blocked(S) 80-90 by interrupt woken 90-91 by "
            "interrupt running@0 91-1000");
  EXPECT_EQ(states.doubts().left_out, 1U);
  EXPECT_EQ(states.doubts().stretches, 1U);
  EXPECT_EQ(states.doubts().ticks, 30U);
  EXPECT_EQ(states.doubts().longest, 30U);
  EXPECT_EQ(states.of(1, 1)->between(0, 100).unknown, 40U);
  const reader::CpuLane& lane = states.cpus().at(0);
  EXPECT_EQ(lane.begin, (reader::Column<std::uint64_t>{10, 20, 50, 80, 91}));
  EXPECT_EQ(lane.task[2], reader::kNoTask) << "idle at first, then not";
}

// It cannot have run before it was woken.
TEST(Doubts, AThreadThatWasWokenWaitedUpToThere) {
  const States states(make_log({leave_cpu(10, 0, 0, 1), leave_cpu(20, 0, 1, 0), leave_cpu(30, 1, 0, 2),
                                wake(60, 1, 2, 1), leave_cpu(80, 0, 1, 0)}));
  EXPECT_EQ(told(states, 1), "unknown 0-10 running@0 10-20 blocked(S) 20-60 by 2 unknown 60-80 blocked(S) 80-1000");
}

// 1 ran on CPU 0, up to the waking that it did at 30 at least; at 70 another thread leaves that CPU.
TEST(Doubts, AThreadWhoseCpuAnotherLeavesHadGoneSinceItWasLastSeenThere) {
  const States states(
      make_log({leave_cpu(10, 0, 0, 1), wake(30, 0, 1, 2), leave_cpu(70, 0, 2, 0), leave_cpu(90, 1, 0, 1)}));
  EXPECT_EQ(told(states, 1), "unknown 0-10 running@0 10-30 unknown 30-90 running@1 90-1000");
  EXPECT_EQ(told(states, 2), "unknown 0-70 blocked(S) 70-1000");
  EXPECT_EQ(states.doubts().left_out, 1U) << "one record is enough: from 1 to 2";
}

TEST(Doubts, AThreadThatComesToASecondCpuHadLeftTheFirst) {
  const States states(
      make_log({leave_cpu(10, 0, 0, 1), enter_syscall(15, 1, 202), leave_cpu(40, 1, 0, 1), leave_cpu(60, 0, 12, 2)}));
  EXPECT_EQ(told(states, 1), "unknown 0-10 running@0 10-15 unknown 15-40 running@1 40-1000");
  EXPECT_EQ(states.cpus().at(0).task[1], reader::kNoTask);
}

// A thread that does something runs, whether it was seen to come or not.
TEST(Doubts, AThreadThatWakesOrMakesAnotherOrCallsTheSystemRuns) {
  for (const auto& act : {wake(60, 1, 1, 2), StateRecord{60, 3, 1, 1, 1, format::kStateNewThread, 0},
                          StateRecord{60, 1, 0, 202, 1, format::kStateSyscallEnter, 0}}) {
    const States states(make_log({leave_cpu(10, 0, 0, 1), leave_cpu(20, 0, 1, 0), leave_cpu(40, 1, 11, 0), act}));
    EXPECT_EQ(told(states, 1), "unknown 0-10 running@0 10-20 blocked(S) 20-40 unknown 40-60 running@1 60-1000");
  }
}

// It was seen to be made, and next when it woke another; not when it came to its CPU.
TEST(Doubts, AThreadIsInDoubtFromItsBirthOn) {
  const States states(
      make_log({leave_cpu(10, 0, 0, 1), StateRecord{30, 2, 1, 0, 0, format::kStateNewThread, 0}, wake(70, 1, 2, 3)}));
  EXPECT_EQ(states.of(1, 2)->between(30, 1000).unknown, 40U);
  EXPECT_EQ(states.doubts().stretches, 1U);
  EXPECT_EQ(states.doubts().ticks, 40U);
  EXPECT_EQ(States(excerpt_states(states.log(), 0, 1000)).doubts().ticks, 40U);
}

TEST(Doubts, AnIdleCpuRunsNobody) {
  const States states(make_log({leave_cpu(10, 0, 0, 1), wake(50, 0, 0, 2, true), leave_cpu(51, 0, 0, 2)}));
  EXPECT_EQ(told(states, 1), "unknown 0-1000");
  EXPECT_EQ(told(states, 2), "unknown 0-50 woken 50-51 by interrupt running@0 51-1000");
}

TEST(Doubts, AThreadThatIsWokenTwiceRanInBetween) {
  const States states(make_log({leave_cpu(10, 0, 0, 1), leave_cpu(20, 0, 1, 0), leave_cpu(21, 1, 0, 2),
                                wake(30, 1, 2, 1), wake(70, 1, 2, 1), leave_cpu(75, 0, 0, 1)}));
  EXPECT_EQ(told(states, 1),
            "unknown 0-10 running@0 10-20 blocked(S) 20-30 by 2 unknown 30-70 woken 70-75 by 2 running@0 75-1000");
}

// One that was preempted on its way to sleep is woken there, and goes on waiting for its CPU.
TEST(Doubts, APreemptedThreadMayBeWoken) {
  const States states(make_log({leave_cpu(10, 0, 0, 1), leave_cpu(20, 0, 1, 11, kCouldRun), leave_cpu(21, 1, 0, 2),
                                wake(30, 1, 2, 1), leave_cpu(40, 0, 11, 1)}));
  EXPECT_EQ(told(states, 1), "unknown 0-10 running@0 10-20 preempted 20-40 by 11 running@0 40-1000");
  EXPECT_EQ(states.doubts().left_out, 0U);
}

// A waking met 1 while it seemed to run on CPU 0; then it came to CPU 1. So it had slept.
TEST(Doubts, AWakingBehindTheLastSightMetASleeper) {
  const States states(
      make_log({leave_cpu(10, 0, 0, 1), leave_cpu(20, 1, 0, 2), wake(50, 1, 2, 1), leave_cpu(60, 1, 2, 1)}));
  EXPECT_EQ(told(states, 1), "unknown 0-50 woken 50-60 by 2 running@1 60-1000");
}

// perf events: who leaves and who comes are records of their own, and neither names the other.
TEST(Doubts, HoldForPerfEventsToo) {
  const States come(
      make_log({leave_cpu(10, 0, kNobody, 1, 0), leave_cpu(20, 0, 1, kNobody, 0), leave_cpu(30, 0, kNobody, 2, 0),
                leave_cpu(40, 0, 2, kNobody, 0), leave_cpu(80, 0, 1, kNobody, 0)}));
  EXPECT_EQ(told(come, 1), "unknown 0-10 running@0 10-20 blocked 20-40 unknown 40-80 blocked 80-1000");
  const States left(make_log({leave_cpu(10, 0, kNobody, 1, 0), leave_cpu(30, 0, kNobody, 2, 0)}));
  EXPECT_EQ(told(left, 1), "unknown 0-1000");
  EXPECT_EQ(told(left, 2), "unknown 0-30 running@0 30-1000");
}

TEST(Doubts, ThreadsOfOthersComeAndGoUnrecorded) {
  const States states(
      make_log({leave_cpu(10, 0, 0, 1), leave_cpu(20, 0, 1, 11), wake(30, 0, 12, 1), leave_cpu(40, 0, 13, 1),
                leave_cpu(50, 0, 1, 0), wake(60, 0, 0, 1, true), leave_cpu(61, 0, 14, 1)}));
  EXPECT_EQ(states.doubts().left_out, 0U);
  EXPECT_EQ(told(states, 1),
            "unknown 0-10 running@0 10-20 blocked(S) 20-30 by 12 woken 30-40 by 12 running@0 40-50 blocked(S) 50-60 by "
            "interrupt woken 60-61 by interrupt running@0 61-1000");
}

// ftrace has forgotten a thread that ends, but not what it still does to others.
TEST(Doubts, TheEndOfAThreadLeavesNone) {
  const States states(make_log({leave_cpu(5, 0, 0, 2),
                                leave_cpu(6, 0, 2, 1),
                                {20, 1, 0, 0, 0, format::kStateExit, 0},
                                wake(22, 0, 1, 2),
                                leave_cpu(30, 0, 0, 2),
                                leave_cpu(40, 0, 2, 0)}));
  EXPECT_EQ(states.doubts().left_out, 0U);
  EXPECT_EQ(told(states, 1), "unknown 0-6 running@0 6-20 gone 20-1000");
  EXPECT_EQ(told(states, 2),
            "unknown 0-5 running@0 5-6 blocked(S) 6-22 by 1 woken 22-30 by 1 running@0 30-40 "
            "blocked(S) 40-1000");
}

// What shows it lies behind the part.
TEST(Doubts, APartKnowsThemFromTheWhole) {
  const auto log =
      make_log({leave_cpu(10, 0, 0, 1), leave_cpu(20, 0, 1, 11), leave_cpu(50, 0, 11, 0), leave_cpu(80, 0, 1, 0)});
  EXPECT_EQ(describe(States(excerpt_states(log, 15, 70)), 1), "running@0 15-20 blocked(S) 20-50 unknown 50-70");
  EXPECT_EQ(describe(States(excerpt_states(log, 60, 90)), 1), "unknown 60-80 blocked(S) 80-90");
}

/// Five threads of the run and one of another process on two CPUs, and what they really did at each tick.
class Machine {
 public:
  using State = reader::ThreadState;
  static constexpr std::uint32_t kThreads = 5;

  explicit Machine(unsigned seed) : random_(seed) {
    state_.fill(State::kBlocked);
    for (std::uint64_t tick = 1; tick < 1000; ++tick) {
      for (std::uint16_t cpu = 0; cpu < 2; ++cpu)
        if (below(8) == 0) step(tick, cpu);
      for (std::uint32_t t = 1; t <= kThreads; ++t) truth_[t].push_back(state_[t]);
    }
  }

  /// All that happened but some of the switches, at most one between two others on its CPU.
  reader::StateLog log_without(unsigned one_in) {
    reader::StateLog log = make_log({});
    bool left_out[2] = {true, true};  // what comes first must be there
    for (const StateRecord& r : records_) {
      const bool leave = r.kind == format::kStateLeaveCpu && !left_out[r.cpu] && below(one_in) == 0;
      if (r.kind == format::kStateLeaveCpu) left_out[r.cpu] = leave;
      if (!leave) log.records.push_back(r);
    }
    return log;
  }
  State at(std::uint32_t thread, std::uint64_t tick) const { return truth_[thread][tick - 1]; }

 private:
  static constexpr std::uint32_t kOther = 11;
  unsigned below(unsigned n) { return random_() % n; }

  void step(std::uint64_t tick, std::uint16_t cpu) {
    const std::uint32_t now = on_[cpu];
    if (below(2) == 0) {
      const std::uint32_t sleeper = 1 + below(kThreads);
      if (state_[sleeper] != State::kBlocked) return;
      state_[sleeper] = State::kWoken;
      records_.push_back(wake(tick, cpu, now, sleeper, now == 0));
      return;
    }
    std::vector<std::uint32_t> ready = {0, kOther};
    for (std::uint32_t t = 1; t <= kThreads; ++t)
      if (state_[t] == State::kWoken || state_[t] == State::kPreempted) ready.push_back(t);
    const std::uint32_t next = ready[below(static_cast<unsigned>(ready.size()))];
    if (next == now || (next == kOther && on_[1 - cpu] == kOther)) return;
    const bool could_run = below(2) == 0;
    if (now != 0 && now != kOther) state_[now] = could_run ? State::kPreempted : State::kBlocked;
    if (next != 0 && next != kOther) state_[next] = State::kRunning;
    on_[cpu] = next;
    const bool others_alone = (now == 0 || now == kOther) && (next == 0 || next == kOther);
    if (!others_alone) records_.push_back(leave_cpu(tick, cpu, now, next, could_run ? kCouldRun : 'S'));
  }

  std::mt19937 random_;
  std::uint32_t on_[2] = {0, 0};
  std::array<State, kThreads + 1> state_;
  std::array<std::vector<State>, kThreads + 1> truth_;
  std::vector<StateRecord> records_;
};

// Whatever is left out: nothing that is told is wrong, as soon as the records behind have shown it.
TEST(Doubts, NothingThatIsToldIsWrong) {
  std::uint64_t unknown = 0;
  std::uint64_t known = 0;
  for (unsigned seed = 1; seed <= 200 && !HasFailure(); ++seed) {
    Machine machine(seed);
    const States whole(machine.log_without(1'000'000'000));
    EXPECT_EQ(whole.doubts().left_out, 0U);
    const States states(machine.log_without(10));
    const States part(excerpt_states(states.log(), 200, 700));
    for (std::uint32_t thread = 1; thread <= Machine::kThreads; ++thread) {
      const reader::ThreadStates* const t = states.of(1, thread);
      if (t == nullptr) continue;
      // The last state of all has no record behind it.
      for (std::uint64_t tick = 1; tick < t->begin.back(); ++tick) {
        const auto told = t->state[t->at(tick)];
        (told == reader::ThreadState::kUnknown ? unknown : known) += 1;
        if (told == reader::ThreadState::kUnknown) continue;
        EXPECT_EQ(told, machine.at(thread, tick)) << "seed " << seed << ", thread " << thread << " at " << tick;
        if (tick < 200 || tick >= 700) continue;
        const reader::ThreadStates* const same = part.of(1, thread);
        const auto in_part = same != nullptr ? same->state[same->at(tick)] : reader::ThreadState::kUnknown;
        EXPECT_EQ(in_part, told) << "part; seed " << seed << ", thread " << thread << " at " << tick;
      }
    }
  }
  EXPECT_GT(unknown, 0U);
  EXPECT_GT(known, 3 * unknown) << "one switch in ten is missing";
}

}  // namespace
}  // namespace karst::test
