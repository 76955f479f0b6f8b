// Made-up programs with a planted cause, a hundred of each kind: explain must name it first, with its share.
#include "analysis/explain.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "test/analysis/sample_states.h"
#include "test/analysis/sample_trace.h"

namespace karst::analysis {
namespace {

using test::SampleStates;
using test::SampleTrace;

enum Function : std::uint32_t { kMain = 1, kServe, kParse, kLock, kStep, kSetUp, kHold };
enum class Plant {
  kNothing,
  kOwnTime,
  kMoreSteps,
  kOneMoreCall,
  kNewCall,
  kWait,
  kPreempted,
  kFirst,
  kPageFaults,
  kArgument
};

struct Program {
  SampleTrace sample;
  std::uint64_t begin = 0;    // of the call that was planted in
  std::uint64_t planted = 0;  // ticks
};

// 60 calls of serve() by thread 10, each parse() { step()... } and lock(), with times that differ by some percent.
Program make(Plant plant, std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto about = [&](double ticks) {
    return static_cast<std::uint64_t>(std::max(1.0, std::normal_distribution(ticks, ticks * 0.05)(random)));
  };
  Program program;
  SampleTrace& sample = program.sample;
  sample.process(10, "app", {"main", "serve", "parse", "lock", "step", "set_up", "hold"}).thread(10, "app");
  const bool with_states = plant == Plant::kWait || plant == Plant::kPreempted || random() % 2 == 0;
  SampleStates states(1000, 10'000'000);
  states.task(10, 10, "app").task(11, 10, "other").task(99, 98, "stranger", false);
  states.go(1000, 0, 0, 'R', 10).go(1000, 1, 0, 'R', 11);
  std::uint64_t now = 1001;
  sample.enter(kMain, now);
  constexpr std::uint32_t kCalls = 60;
  const std::uint32_t which = plant == Plant::kFirst ? 0 : static_cast<std::uint32_t>(random() % kCalls);
  for (std::uint32_t i = 0; i < kCalls; ++i) {
    const bool slow = i == which;
    const std::uint64_t amount = 3000 + random() % 5000;
    if (slow) program.begin = now;
    sample.enter(kServe, now);
    sample.enter(kParse, now += about(300));
    const std::uint32_t steps = slow && plant == Plant::kMoreSteps ? 60 : 10;
    const std::uint32_t odd_step = static_cast<std::uint32_t>(random() % steps);
    for (std::uint32_t step = 0; step < steps; ++step) {
      sample.enter(kStep, now += about(10));
      std::uint64_t length = about(100);
      // Each page that is touched for the first time, and one argument that takes long, are the program's own time: a
      // trace has neither faults nor arguments.
      const std::uint64_t more = !slow                                           ? 0
                                 : plant == Plant::kPageFaults                   ? amount / 10
                                 : plant == Plant::kArgument && step == odd_step ? amount
                                                                                 : 0;
      length += more;
      program.planted += more;
      sample.exit(kStep, now += length);
      if (step >= 10) program.planted += length;  // the time between steps is parse's own
    }
    if (slow && plant == Plant::kOwnTime) now += program.planted = amount;
    sample.exit(kParse, now += about(100));
    if (slow && plant == Plant::kOneMoreCall) {
      program.planted = amount;
      sample.enter(kLock, now += about(50));
      sample.exit(kLock, now += amount);
    }
    if (slow && (plant == Plant::kNewCall || plant == Plant::kFirst)) {
      sample.call(kSetUp, now, now + amount);
      now += program.planted = amount;
    }
    sample.enter(kLock, now += about(50));
    if (slow && plant == Plant::kWait) {
      program.planted = amount;
      const std::uint64_t woken = now + 10 + amount;
      states.go(now + 10, 0, 10, 'S', 0).wake(woken, 1, 10, 11).go(woken + 20, 0, 0, 'S', 10);
      now = woken + 20;
    }
    sample.exit(kLock, now += about(100));
    if (slow && plant == Plant::kPreempted) {
      program.planted = amount;
      states.go(now + 10, 0, 10, 'R', 99).go(now + 10 + amount, 0, 99, 'S', 10);
      now += 10 + amount;
    }
    sample.exit(kServe, now += about(100));
    now += about(200);
  }
  sample.exit(kMain, now);
  sample.thread(11, "other").call(kHold, 1001, now);
  if (with_states) sample.states(states.log());
  return program;
}

struct Answer {
  Explanation explanation;
  std::vector<std::string> path;  // of the first cause
};

Answer explain(const reader::Trace& trace, std::uint64_t begin) {
  const reader::Process& process = trace.processes()[0];
  CallRef call;
  for (const reader::Thread& thread : process.threads) {
    const reader::Calls calls = reader::rebuild_calls(trace, thread);
    for (std::uint32_t row = 0; row < calls.size(); ++row) {
      const bool it = begin == 0 ? calls.duration[row] > call.duration : calls.begin[row] == begin;
      if (calls.function[row] == kServe && it) call = {&thread, row, calls.duration[row], calls.begin[row]};
    }
  }
  Explainer explainer(trace, call, kServe);
  std::unique_ptr<Waits> waits;
  if (!trace.states().empty()) waits = std::make_unique<Waits>(trace, 0);
  for (const auto pass : {0, 1}) {
    for (const reader::Thread& thread : process.threads) {
      const reader::Calls calls = reader::rebuild_calls(trace, thread);
      if (pass == 0) explainer.learn(thread, query::CallColumns(calls));
      if (pass == 1) explainer.compare(thread, query::CallColumns(calls), waits.get());
    }
  }
  Answer answer{explainer.take(), {}};
  if (answer.explanation.causes.empty()) return answer;
  for (const std::uint32_t function : answer.explanation.causes[0].path)
    answer.path.push_back(explainer.functions().functions()[function].name);
  return answer;
}

using Path = std::vector<std::string>;

void names_it_first(Plant plant, const std::vector<CauseKind>& kinds, const Path& path) {
  int named = 0;
  for (std::uint32_t seed = 0; seed < 100; ++seed) {
    Program program = make(plant, seed);
    const Answer answer = explain(program.sample.open(), program.begin);
    const Explanation& of = answer.explanation;
    double sum = of.rest;
    for (const Cause& cause : of.causes) sum += cause.ticks;
    EXPECT_NEAR(sum, of.excess(), 0.001);
    EXPECT_EQ(of.siblings, 59U);
    if (of.causes.empty() || !of.stands_out) continue;
    const Cause& first = of.causes[0];
    const bool right_kind = std::find(kinds.begin(), kinds.end(), first.kind) != kinds.end();
    named += right_kind && answer.path == path &&
             std::abs(first.ticks - static_cast<double>(program.planted)) <= 0.1 * of.excess();
    if (plant == Plant::kWait && first.wait) {
      EXPECT_EQ(first.wait->waker.function, kHold);
    }
    EXPECT_EQ(of.first, program.begin == 1001);
  }
  EXPECT_GE(named, 95);
}

TEST(Explain, NamesALongerLoop) {
  names_it_first(Plant::kOwnTime, {CauseKind::kOwnTime, CauseKind::kComputing}, {"parse"});
}
TEST(Explain, NamesMoreCalls) { names_it_first(Plant::kMoreSteps, {CauseKind::kMoreCalls}, {"parse", "step"}); }
// One more call of what typical calls call, too, and a long one: it is more calls and longer ones, both of that path.
TEST(Explain, NamesThePathOfOneMoreCall) {
  names_it_first(Plant::kOneMoreCall, {CauseKind::kOwnTime, CauseKind::kComputing}, {"lock"});
}
// What a fault's or an argument's time is, a trace cannot know: it is time in the function that it happened in.
TEST(Explain, SaysOfAPageFaultStormThatItIsTheFunctionsOwnTime) {
  names_it_first(Plant::kPageFaults, {CauseKind::kOwnTime, CauseKind::kComputing}, {"parse", "step"});
}
TEST(Explain, SaysOfASlowArgumentThatItIsTheFunctionsOwnTime) {
  names_it_first(Plant::kArgument, {CauseKind::kOwnTime, CauseKind::kComputing}, {"parse", "step"});
}
TEST(Explain, NamesACallThatNoOtherMakes) { names_it_first(Plant::kNewCall, {CauseKind::kNew}, {"set_up"}); }
TEST(Explain, NamesAWait) { names_it_first(Plant::kWait, {CauseKind::kWaiting}, {"lock"}); }
TEST(Explain, NamesPreemption) { names_it_first(Plant::kPreempted, {CauseKind::kRunnable}, {}); }
TEST(Explain, NamesWhatOnlyTheFirstCallDoes) { names_it_first(Plant::kFirst, {CauseKind::kNew}, {"set_up"}); }

TEST(Explain, SaysNothingWhereNothingStandsOut) {
  int silent = 0;
  for (std::uint32_t seed = 0; seed < 100; ++seed) {
    Program program = make(Plant::kNothing, seed);
    silent += explain(program.sample.open(), 0).explanation.stands_out ? 0 : 1;
  }
  EXPECT_GE(silent, 95);
}

TEST(Explain, OneSampleIsNoComparison) {
  SampleTrace sample;
  sample.process(10, "app", {"main", "serve"}).thread(10, "app").enter(1, 1000).call(kServe, 1100, 9000).exit(1, 9100);
  const Explanation of = explain(sample.open(), 0).explanation;
  EXPECT_EQ(of.siblings, 0U);
  EXPECT_EQ(of.typical, 0U);
  EXPECT_FALSE(of.stands_out);
  EXPECT_TRUE(of.causes.empty());
}

// Sums of own times by path, of one call, the long way.
std::map<Path, double> own_times(const reader::Trace& trace, const reader::Calls& calls, std::uint32_t root) {
  const reader::Process& process = trace.processes()[0];
  std::map<Path, double> own;
  for (std::uint32_t row = root; row < calls.size(); ++row) {
    Path path;
    std::uint32_t up = row;
    for (; up != root && up != reader::kNoParent; up = calls.parent[up])
      path.insert(path.begin(), trace.function(process, calls.function[up]).name);
    if (up != root) continue;
    own[path] += static_cast<double>(calls.duration[row]);
    if (row == root) continue;
    path.pop_back();
    own[path] -= static_cast<double>(calls.duration[row]);
  }
  return own;
}

// All causes below a path, and in it, are the difference of its own times, found the long way with each call alone.
TEST(Explain, CausesAreTheDifferenceOfOwnTimes) {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    Program program = make(Plant::kOwnTime, seed);
    const reader::Trace trace = program.sample.open();
    const Explanation of = explain(trace, program.begin).explanation;
    const reader::Calls calls = reader::rebuild_calls(trace, trace.processes()[0].threads[0]);
    std::vector<std::uint32_t> siblings;
    std::uint32_t slow = 0;
    for (std::uint32_t row = 0; row < calls.size(); ++row) {
      if (calls.function[row] != kServe) continue;
      if (calls.begin[row] == program.begin)
        slow = row;
      else
        siblings.push_back(row);
    }
    std::sort(siblings.begin(), siblings.end(),
              [&](std::uint32_t a, std::uint32_t b) { return calls.duration[a] < calls.duration[b]; });
    EXPECT_EQ(of.usual, calls.duration[siblings[29]]);
    // A quarter of 59 to each side of the middle.
    double usual = 0;
    const Path parse{"parse"};
    for (std::size_t i = 29 - 14; i <= 29 + 14; ++i) usual += own_times(trace, calls, siblings[i])[parse] / 29;
    ASSERT_GE(of.typical, 29U);
    if (of.typical != 29) continue;  // others last exactly as long as the last of them
    EXPECT_NEAR(of.causes[0].ticks, own_times(trace, calls, slow)[parse] - usual, 0.01) << "seed " << seed;
  }
}

}  // namespace
}  // namespace karst::analysis
