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
  kArgument,
  kArgumentOfCall,  // more steps, as serve() was asked for
  kReturned,        // own time, and then something else is returned
};

struct Program {
  SampleTrace sample;
  std::uint64_t begin = 0;    // of the call that was planted in
  std::uint64_t planted = 0;  // ticks
};

// 60 calls of serve() by thread 10, each parse() { step()... } and lock(), with times that differ by some percent.
// `noted`: arguments and returned values are, of which most have nothing to do with the time.
Program make(Plant plant, std::uint32_t seed, bool noted = false) {
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
  std::mt19937 others(seed + 1000);
  std::uint32_t counter = 0;
  const auto note = [&](std::uint32_t function, std::uint32_t n, std::uint64_t k) {
    if (noted)
      sample.values(format::NoteKind::kArguments, function, SampleTrace::two_integers(n, static_cast<std::uint32_t>(k)),
                    now);
  };
  for (const std::uint32_t function : {kServe, kStep}) sample.function(function).values = "n:i4,k:u4|:i4,r:u4";
  sample.enter(kMain, now);
  constexpr std::uint32_t kCalls = 60;
  const std::uint32_t which = plant == Plant::kFirst ? 0 : static_cast<std::uint32_t>(random() % kCalls);
  for (std::uint32_t i = 0; i < kCalls; ++i) {
    const bool slow = i == which;
    const std::uint64_t amount = 3000 + random() % 5000;
    if (slow) program.begin = now;
    const bool more_steps = slow && (plant == Plant::kMoreSteps || plant == Plant::kArgumentOfCall);
    note(kServe, slow && plant == Plant::kArgumentOfCall ? 60 : 10, about(100));
    sample.enter(kServe, now);
    sample.enter(kParse, now += about(300));
    const std::uint32_t steps = more_steps ? 60 : 10;
    const std::uint32_t odd_step = static_cast<std::uint32_t>(random() % steps);
    for (std::uint32_t step = 0; step < steps; ++step) {
      now += about(10);
      // Some steps are given more and are not longer.
      note(kStep,
           slow && plant == Plant::kArgument && step == odd_step ? 500000
           : others() % 25 == 0                                  ? 1010
                                                                 : 1000,
           ++counter);
      sample.enter(kStep, now);
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
    if (slow && (plant == Plant::kOwnTime || plant == Plant::kReturned)) now += program.planted = amount;
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
    now += about(100);
    if (noted)
      sample.values(format::NoteKind::kReturned, kServe,
                    SampleTrace::two_integers(slow && plant == Plant::kReturned ? 0xffffffff : others() % 3, others()),
                    now);
    sample.exit(kServe, now);
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
  ValueSamples values;
  std::unique_ptr<Waits> waits;
  if (!trace.states().empty()) waits = std::make_unique<Waits>(trace, 0);
  for (const auto pass : {0, 1}) {
    for (const reader::Thread& thread : process.threads) {
      const reader::Calls calls = reader::rebuild_calls(trace, thread);
      if (pass == 0) explainer.learn(thread, columns::CallColumns(calls));
      const CallValues noted(calls);
      values.look_at(trace, thread, &noted);
      if (pass == 1) explainer.compare(thread, columns::CallColumns(calls), waits.get(), &values);
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
// What a fault's or an argument's time is, a trace cannot know: it is time in the function that it happened in. How
// many faults there were is told with it (test/e2e/slow.py).
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

std::string all_words(const Explanation& of) {
  std::string text;
  for (const ValueHint& hint : of.values) text += "call: " + hint.words + "\n";
  for (const Cause& cause : of.causes)
    for (const ValueHint& hint : cause.values) text += "below: " + hint.words + "\n";
  return text;
}

// Exactly one value, and the cause's share is what it is without values.
void names_the_value(Plant plant, const std::string& begin) {
  int named = 0;
  for (std::uint32_t seed = 0; seed < 100; ++seed) {
    Program program = make(plant, seed, true);
    const Explanation of = explain(program.sample.open(), program.begin).explanation;
    const std::string text = all_words(of);
    const bool right = text.starts_with(begin) && text.find('\n') == text.size() - 1;
    named += right;
    if (!right) std::printf("seed %u: %s\n", seed, text.c_str());
    double sum = of.rest;
    for (const Cause& cause : of.causes) sum += cause.ticks;
    EXPECT_NEAR(sum, of.excess(), 0.001);
  }
  EXPECT_GE(named, 95);
}

TEST(Explain, NamesAnArgumentOfTheSlowStep) {
  names_the_value(Plant::kArgument, "below: n=500000 in the longest of 10 calls; n=1000 in ");
}
TEST(Explain, NamesAnArgumentOfTheCallItself) { names_the_value(Plant::kArgumentOfCall, "call: n=60 here; n=10 in "); }
TEST(Explain, NamesWhatOnlyTheSlowCallReturned) { names_the_value(Plant::kReturned, "call: returned -1 here; "); }

TEST(Explain, NamesNoValueWhereNoneIsTheCause) {
  for (const Plant plant : {Plant::kNothing, Plant::kOwnTime, Plant::kMoreSteps, Plant::kOneMoreCall, Plant::kNewCall,
                            Plant::kWait, Plant::kPreempted, Plant::kFirst, Plant::kPageFaults}) {
    int silent = 0;
    for (std::uint32_t seed = 0; seed < 100; ++seed) {
      Program program = make(plant, seed, true);
      const std::string text = all_words(explain(program.sample.open(), program.begin).explanation);
      silent += text.empty();
      if (!text.empty()) std::printf("plant %d, seed %u: %s\n", static_cast<int>(plant), seed, text.c_str());
    }
    EXPECT_GE(silent, 95) << static_cast<int>(plant);
  }
}

// The differ rule by itself.
std::string hint_of(const std::vector<std::string>& typical, const std::string& here) {
  ValueSamples samples;
  for (const std::string& text : typical) samples.add_typical(3, NamedValues{{"a", text}});
  samples.set_here(3, NamedValues{{"a", here}});
  const std::vector<ValueHint> hints = samples.hints(3, 0, false, 1);
  return hints.empty() ? "" : hints[0].words;
}

TEST(ValueHints, AreValuesThatAreNewWhereTheyRepeat) {
  std::vector<std::string> addresses, counters, sizes, modes;
  for (int i = 0; i < 100; ++i) {
    addresses.push_back("0x" + std::to_string(1000 + i));
    sizes.push_back(std::to_string(900 + i * 37 % 100));
    counters.push_back(std::to_string(i + 1));
    modes.push_back(i % 3 == 0 ? "RED" : i % 3 == 1 ? "BLUE" : "GREEN");
  }
  EXPECT_EQ(hint_of(addresses, "0x7"), "");
  EXPECT_EQ(hint_of(counters, "360285"), "");
  EXPECT_EQ(hint_of(sizes, "1005"), "");
  EXPECT_EQ(hint_of(sizes, "950"), "");
  EXPECT_EQ(hint_of(sizes, "5000"), "a=5000 here; 900 to 999, median 949, in 100 typical calls");
  EXPECT_EQ(hint_of(sizes, "-5000"), "a=-5000 here; 900 to 999, median 949, in 100 typical calls");
  EXPECT_EQ(hint_of(modes, "RED"), "");
  EXPECT_EQ(hint_of(modes, "BLACK"), "a=BLACK here; never in 100 typical calls");
  EXPECT_EQ(hint_of(modes, "<optimized out>"), "");
  EXPECT_EQ(hint_of({"1", "1", "1", "1"}, "7"), "") << "too few";
  EXPECT_EQ(hint_of({"1", "1", "1", "1", "1"}, "7"), "a=7 here; a=1 in 5 of 5 typical calls");
  EXPECT_EQ(hint_of({"\"a\"", "\"a\"", "\"b\"", "\"b\"", "\"a\""}, "null"),
            "a=null here; a=\"a\" in 3 of 5 typical calls");
}

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
