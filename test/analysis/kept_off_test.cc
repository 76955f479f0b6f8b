// Who had the CPU that a thread waited for: several in turn, others, what is not known, and a wait on two CPUs.
#include "analysis/kept_off.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "analysis/waits.h"
#include "test/analysis/sample_states.h"
#include "test/analysis/sample_trace.h"
#include "words/wait_words.h"

namespace karst {
namespace {

using analysis::KeptOff;
using reader::ThreadState;
using test::SampleStates;
using test::SampleTrace;

constexpr std::uint32_t kLow = 10, kHigh = 11, kMid = 12, kHog = 99, kKworker = 98;

SampleStates states(bool all_cpus = false) {
  SampleStates of(1'000, 3'000'000);
  of.task(kLow, 10, "low").task(kHigh, 10, "high").task(kMid, 10, "mid");
  of.task(kHog, 97, "hog", false).task(kKworker, 96, "kworker", false);
  return all_cpus ? of.all_cpus() : of;
}

/// The thread `low` waits in work() while mid is in sweep(), and in step() within it for a little, and high in grab().
struct Found {
  explicit Found(const SampleStates& of) : trace(make(of)), waits(trace, 0) {}

  reader::Trace make(const SampleStates& of) {
    sample.process(10, "app", {"work()", "grab()", "sweep()", "step()"});
    sample.thread(kLow, "low").call(1, 2'000, 2'900'000);
    sample.thread(kHigh, "high").call(2, 100'000, 200'000);
    sample.thread(kMid, "mid").enter(3, 200'000).call(4, 300'000, 400'000).exit(3, 1'100'000);
    sample.states(of.log());
    return sample.open();
  }
  const std::vector<analysis::Wait>& of_low() const { return waits.of(trace.processes()[0].threads[0]); }
  KeptOff kept(std::size_t wait) const {
    return analysis::KeptOffFinder(trace,
                                   [this](const reader::Thread& thread) {
                                     calls = reader::rebuild_calls(trace, thread);
                                     return columns::CallColumns(calls);
                                   })
        .of(of_low().at(wait));
  }
  std::string words(std::size_t wait) const {
    const words::Writing writing{[this](const reader::Thread& of, std::uint32_t id) {
                                   return trace.function(trace.processes()[of.process], id).name;
                                 },
                                 [](std::uint64_t ticks) { return std::to_string(ticks); }};
    return words::wait_words(of_low().at(wait), trace.states(), writing,
                             words::kept_off_words(kept(wait), trace.states(), writing));
  }

  SampleTrace sample;  // which the trace is read from
  reader::Trace trace;
  analysis::Waits waits;
  mutable reader::Calls calls;
};

std::uint64_t all_of(const KeptOff& kept) {
  std::uint64_t sum = kept.unknown + kept.more_ticks;
  for (const analysis::CpuShare& share : kept.shares) sum += share.ticks;
  return sum;
}

TEST(KeptOff, NamesWhoStayedBeforeWhoCameFirst) {
  const Found found(states()
                        .go(1'500, 0, 0, 'R', kLow)
                        .go(100'000, 0, kLow, 'R', kHigh)
                        .go(200'000, 0, kHigh, 'S', kMid)
                        .go(1'100'000, 0, kMid, 'S', kLow));
  EXPECT_EQ(found.words(0), "runnable, kept off CPU 0: 900000 by 12 mid in sweep(), 100000 by 11 high in grab()");
  const KeptOff kept = found.kept(0);
  ASSERT_EQ(kept.shares.size(), 2U);
  EXPECT_EQ(kept.shares[0].in.thread->tid, kMid);
  EXPECT_EQ(kept.unknown, 0U);
}

TEST(KeptOff, SumsUpWhoCameSeveralTimes) {
  const Found found(states()
                        .go(1'500, 0, 0, 'R', kLow)
                        .go(100'000, 0, kLow, 'R', kHigh)
                        .go(150'000, 0, kHigh, 'R', kMid)
                        .go(500'000, 0, kMid, 'R', kHigh)
                        .go(550'000, 0, kHigh, 'S', kMid)
                        .go(700'000, 0, kMid, 'S', kLow));
  EXPECT_EQ(found.words(0), "runnable, kept off CPU 0: 500000 by 12 mid in sweep(), 100000 by 11 high in grab()");
}

TEST(KeptOff, OneAloneNeedsNoTime) {
  const Found found(
      states().go(1'500, 0, 0, 'R', kLow).go(300'000, 0, kLow, 'R', kMid).go(400'000, 0, kMid, 'S', kLow));
  EXPECT_EQ(found.words(0), "runnable, kept off CPU 0 by 12 mid in step()");
}

// Of others it is recorded who came first and who left last.
TEST(KeptOff, OthersMayHaveTakenTurns) {
  const Found same(states().go(1'500, 0, 0, 'R', kLow).go(300'000, 0, kLow, 'R', kHog).go(400'000, 0, kHog, 'R', kLow));
  EXPECT_EQ(same.words(0), "runnable, kept off CPU 0 by 99 hog and perhaps others");
  const Found two(
      states().go(1'500, 0, 0, 'R', kLow).go(300'000, 0, kLow, 'R', kKworker).go(400'000, 0, kHog, 'R', kLow));
  EXPECT_EQ(two.words(0), "runnable, kept off CPU 0 by others, 98 kworker first and 99 hog last");
  const Found idle(states().go(1'500, 0, 0, 'R', kLow).go(300'000, 0, kLow, 'R', 0).go(400'000, 0, kHog, 'R', kLow));
  EXPECT_EQ(idle.words(0), "runnable, kept off CPU 0 by 99 hog and perhaps others");
}

TEST(KeptOff, WithAllCpusOthersHaveSharesToo) {
  const Found found(states(true)
                        .go(1'500, 0, 0, 'R', kLow)
                        .go(300'000, 0, kLow, 'R', kKworker)
                        .go(310'000, 0, kKworker, 'S', kHog)
                        .go(500'000, 0, kHog, 'R', kLow));
  EXPECT_EQ(found.words(0), "runnable, kept off CPU 0: 190000 by 99 hog, 10000 by 98 kworker");
}

TEST(KeptOff, SaysWhatIsNotKnown) {
  const Found lost(states()
                       .go(1'500, 0, 0, 'R', kLow)
                       .go(300'000, 0, kLow, 'R', kMid)
                       .go(1'000'000, 0, kMid, 'R', format::kUnknownTid)
                       .go(1'100'000, 0, format::kUnknownTid, 'R', kLow));
  EXPECT_EQ(lost.words(0), "runnable, kept off CPU 0: 700000 by 12 mid in sweep(), 100000 not known");
  EXPECT_EQ(lost.kept(0).unknown, 100'000U);
  const Found nobody(states()
                         .go(1'500, 0, 0, 'R', kLow)
                         .go(300'000, 0, kLow, 'R', format::kUnknownTid)
                         .go(400'000, 0, format::kUnknownTid, 'R', kLow));
  EXPECT_EQ(nobody.words(0), "runnable, kept off CPU 0");
  EXPECT_EQ(nobody.kept(0).unknown, 100'000U);
}

// No CPU idles while a thread waits for it: from there on it waited for the other.
TEST(KeptOff, AThreadThatIsMovedWaitsForASecondCpu) {
  const Found found(states()
                        .go(1'500, 0, 0, 'R', kLow)
                        .go(1'600, 1, 0, 'R', kMid)
                        .go(100'000, 0, kLow, 'R', kHigh)
                        .go(200'000, 0, kHigh, 'S', 0)
                        .go(700'000, 1, kMid, 'S', kLow));
  EXPECT_EQ(found.of_low()[0].next_cpu, 1U);
  EXPECT_EQ(found.words(0),
            "runnable, kept off CPU 0, then CPU 1: 500000 by 12 mid in sweep(), 100000 by 11 high in grab()");
}

TEST(KeptOff, AThreadThatIsTakenAwayWaitedForTheCpuThatItLeft) {
  const Found found(states()
                        .go(1'500, 0, 0, 'R', kLow)
                        .go(1'600, 1, 0, 'R', kHigh)
                        .go(200'000, 0, kLow, 'R', kMid)
                        .go(700'000, 1, kHigh, 'S', kLow));
  EXPECT_EQ(found.words(0), "runnable, kept off CPU 0 by 12 mid in sweep()");
}

// Where it ran before says nothing.
TEST(KeptOff, AWokenThreadWaitsForTheCpuThatItRunsOnNext) {
  const Found found(states()
                        .go(1'500, 0, 0, 'R', kLow)
                        .go(50'000, 0, kLow, 'S', 0)
                        .go(150'000, 1, 0, 'R', kMid)
                        .wake(500'000, 1, kLow, kMid)
                        .go(700'000, 1, kMid, 'S', kLow));
  EXPECT_EQ(found.words(0),
            "blocked in sleep, woken by 12 mid in sweep(); the last 200000 kept off CPU 1 by 12 mid in sweep()");
}

TEST(KeptOff, AnIdleCpuKeepsNobodyOff) {
  const Found found(states()
                        .go(1'500, 0, 0, 'R', kLow)
                        .go(50'000, 0, kLow, 'S', 0)
                        .wake(60'000, 1, kLow, 0, true)
                        .go(61'000, 0, 0, 'R', kLow));
  EXPECT_EQ(found.words(0), "blocked in sleep, woken by an interrupt; the last 1000 waiting for a CPU");
}

// Bytes that a thread sends on the same machine are handed on in an interrupt's stead, on its CPU.
TEST(KeptOff, AnInterruptNamesTheThreadThatRanAndItsCall) {
  const Found found(states()
                        .go(1'500, 0, 0, 'R', kLow)
                        .go(50'000, 0, kLow, 'S', 0)
                        .go(150'000, 1, 0, 'R', kMid)
                        .wake(500'000, 1, kLow, kMid, true)
                        .go(501'000, 0, 0, 'R', kLow));
  EXPECT_EQ(found.words(0),
            "blocked in sleep, woken by an interrupt while 12 mid ran in sweep(); "
            "the last 1000 waiting for a CPU");
  EXPECT_EQ(found.of_low()[0].waker.thread, nullptr);
}

TEST(KeptOff, OfVeryManyTheLongestAreTold) {
  SampleStates of(1'000, 3'000'000);
  of.task(kLow, 10, "low").all_cpus();
  constexpr std::uint32_t kMany = 40;
  for (std::uint32_t i = 0; i < kMany; ++i) of.task(1'000 + i, 1'000 + i, "other", false);
  of.go(1'500, 0, 0, 'R', kLow).go(100'000, 0, kLow, 'R', 1'000);
  std::uint64_t now = 100'000;
  for (std::uint32_t i = 0; i < kMany; ++i) {
    now += 1'000 + i;
    of.go(now, 0, 1'000 + i, 'R', i + 1 < kMany ? 1'001 + i : kLow);
  }
  const Found found(of);
  const KeptOff kept = found.kept(0);
  EXPECT_EQ(kept.shares.size(), analysis::kMostShares);
  EXPECT_EQ(kept.more, kMany - analysis::kMostShares);
  EXPECT_EQ(all_of(kept), now - 100'000);
  EXPECT_EQ(found.words(0), "runnable, kept off CPU 0: 1039 by 1039 other, 1038 by 1038 other, 1037 by 1037 other, " +
                                std::to_string(now - 100'000 - 1039 - 1038 - 1037) + " by 37 others");
}

// What is beyond the bound of work is not known.
TEST(KeptOff, LooksAtSoManyStretchesAndNoMore) {
  SampleStates of = states(true);
  of.go(1'500, 0, 0, 'R', kLow).go(100'000, 0, kLow, 'R', kHog);
  std::uint64_t now = 100'000;
  const auto turns = static_cast<std::uint32_t>(analysis::kMostStretches + 100);
  for (std::uint32_t i = 0; i < turns; ++i) {
    now += 10;
    const std::uint32_t from = i % 2 == 0 ? kHog : kKworker;
    of.go(now, 0, from, 'R', i + 1 == turns ? kLow : from == kHog ? kKworker : kHog);
  }
  const KeptOff kept = Found(of).kept(0);
  EXPECT_EQ(kept.unknown, 1'000U);
  EXPECT_EQ(all_of(kept), now - 100'000);
}

// Every part of a wait is somebody's, or not known, once.
TEST(KeptOff, SharesAddUpToTheWait) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    SampleTrace sample;
    sample.process(10, "app", {"work()"});
    for (const std::uint32_t tid : {kLow, kHigh, kMid}) sample.thread(tid, "t").call(1, 2'000, 400'000);
    reader::StateLog log = test::random_states(seed, 10, {kLow, kHigh, kMid}, 1'000, 500'000, 3'000);
    std::mt19937 random(seed);
    if (seed % 2 == 1) log.source.flags |= format::kStatesCpus;
    if (seed % 4 >= 2)
      for (int i = 0; i < 9; ++i)
        log.records[random() % log.records.size()].other = static_cast<std::uint32_t>(random());
    sample.states(log);
    const reader::Trace trace = sample.open();
    const analysis::Waits waits(trace, 0);
    reader::Calls calls;
    const analysis::KeptOffFinder finder(trace, [&](const reader::Thread& thread) {
      calls = reader::rebuild_calls(trace, thread);
      return columns::CallColumns(calls);
    });
    for (const reader::Thread& thread : trace.processes()[0].threads) {
      std::vector<const analysis::Wait*> all;
      for (const analysis::Wait& wait : waits.of(thread)) all.push_back(&wait);
      const std::vector<KeptOff> found = finder.of(all);
      for (std::size_t i = 0; i < all.size(); ++i) {
        const analysis::Wait& wait = *all[i];
        const std::uint64_t length = wait.state == ThreadState::kBlocked   ? wait.runnable
                                     : wait.state == ThreadState::kUnknown ? 0
                                                                           : wait.length();
        EXPECT_EQ(all_of(found[i]), length) << seed;
        const KeptOff alone = finder.of(wait);
        EXPECT_EQ(alone.unknown, found[i].unknown);
        for (std::size_t s = 1; s < found[i].shares.size(); ++s)
          EXPECT_GE(found[i].shares[s - 1].ticks, found[i].shares[s].ticks);
      }
    }
  }
}

}  // namespace
}  // namespace karst
