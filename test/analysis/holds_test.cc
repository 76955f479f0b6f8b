// analysis/holds.h: who had which lock, against a second, naive replay of each thread; and what it makes of records
// that no runtime has written.
#include "analysis/holds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "format/lock.h"
#include "format/note.h"
#include "format/values.h"
#include "sample_trace.h"

namespace {

using namespace karst;
using analysis::HoldEnd;
using analysis::LockHolds;
using test::SampleTrace;

enum HoldName : std::uint32_t { kHoldMain = 1, kTaken, kReleased, kKept, kMade };

class Locker {
 public:
  Locker() {
    sample.process(1, "app", {"main", "mutex", "mutex", "mutex", "mutex"});
    sample.notes(kTaken, format::kLockTaken).notes(kReleased, format::kLockReleased);
    sample.notes(kKept, format::kLockKept).notes(kMade, format::kLockMade);
  }
  Locker& thread(std::uint32_t tid) {
    end();
    sample.thread(tid, "app").enter(kHoldMain, now = 1000);
    return *this;
  }
  Locker& record(HoldName name, const std::vector<std::uint64_t>& numbers) {
    std::string bytes;
    for (std::uint64_t number : numbers) {
      std::string own;
      for (; number != 0; number >>= 8) own += static_cast<char>(number);
      bytes += static_cast<char>(own.size()) + own;
    }
    sample.values(format::NoteKind::kRecord, name, bytes + static_cast<char>(format::kValuesEnd), ++now);
    return *this;
  }
  LockHolds holds() {
    end();
    const reader::Trace trace = sample.open();
    analysis::HoldFinder finder(trace);
    for (const reader::Thread& thread : trace.processes()[0].threads)
      finder.add(thread, reader::rebuild_calls(trace, thread));
    LockHolds found = finder.take({});
    for (analysis::LockHold& hold : found.holds) {
      tids.push_back(hold.thread->tid);
      hold.thread = nullptr;  // it ends with the trace
    }
    return found;
  }

  SampleTrace sample;
  std::uint64_t now = 0;
  std::vector<std::uint32_t> tids;  // of the holds

 private:
  void end() {
    if (now != 0) sample.exit(kHoldMain, now + 1);
    now = 0;
  }
};

TEST(Holds, FromTakenToReleased) {
  Locker locker;
  locker.thread(1).record(kTaken, {0x10, 0}).record(kTaken, {0x20, 0}).record(kReleased, {0x20});
  locker.record(kReleased, {0x10}).record(kTaken, {0x30, 1});
  const LockHolds found = locker.holds();
  ASSERT_EQ(found.holds.size(), 3U);
  EXPECT_EQ(found.holds[0].lock, 0x10U);
  EXPECT_EQ(found.holds[0].begin, 1001U);
  EXPECT_EQ(found.holds[0].end, 1004U);
  EXPECT_EQ(found.holds[1].end, 1003U);
  EXPECT_EQ(found.holds[2].ended, HoldEnd::kTraceEnded);
  EXPECT_TRUE(found.inversions.empty());
}

TEST(Holds, WhatWasNotLetGoAfterAll) {
  Locker locker;
  locker.thread(1).record(kTaken, {0x10, 0}).record(kReleased, {0x10}).record(kKept, {0x10}).record(kReleased, {0x10});
  const LockHolds found = locker.holds();
  ASSERT_EQ(found.holds.size(), 1U);
  EXPECT_EQ(found.holds[0].end, 1004U);
}

TEST(Holds, AnInversionAndOneThatAThirdLockKeepsApart) {
  const auto with = [](bool guarded) {
    Locker locker;
    for (const std::uint32_t tid : {1U, 2U}) {
      const std::uint64_t first = tid == 1 ? 0x10 : 0x20, second = tid == 1 ? 0x20 : 0x10;
      locker.thread(tid);
      if (guarded) locker.record(kTaken, {0x30, 0});
      locker.record(kTaken, {first, 0}).record(kTaken, {second, 0});
      locker.record(kReleased, {second}).record(kReleased, {first});
      if (guarded) locker.record(kReleased, {0x30});
    }
    return locker.holds().inversions.size();
  };
  EXPECT_EQ(with(false), 1U);
  EXPECT_EQ(with(true), 0U);
}

TEST(Holds, RecordsThatNoRuntimeWrote) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  Locker locker;
  locker.thread(1).record(kKept, {7}).record(kReleased, {kMost}).record(kReleased, {}).record(kTaken, {});
  locker.record(kTaken, {kMost, kMost, kMost}).record(kMade, {kMost}).record(kTaken, {kMost}).record(kKept, {kMost});
  for (std::uint64_t i = 0; i < 3000; ++i) locker.record(kTaken, {i, 0});
  for (int i = 0; i < 3000; ++i) locker.record(kKept, {5});
  const LockHolds found = locker.holds();
  EXPECT_GE(found.holds.size(), 3000U);
  for (const analysis::LockHold& hold : found.holds) EXPECT_LE(hold.begin, hold.end);
}

TEST(Holds, RandomRecordsAgainstANaiveReplay) {
  using Row = std::tuple<std::uint32_t, std::uint64_t, std::uint64_t, std::uint64_t>;  // tid, lock, begin, end
  for (std::uint32_t seed = 1; seed <= 100; ++seed) {
    std::mt19937 random(seed);
    Locker locker;
    std::vector<Row> expected;
    for (std::uint32_t tid = 1; tid <= 3; ++tid) {
      locker.thread(tid);
      // Each thread has locks of its own, and lets go of what it has.
      std::vector<std::pair<std::uint64_t, std::uint64_t>> held;  // lock, since
      for (int i = 0; i < 200; ++i) {
        const std::uint64_t lock = tid * 0x1000 + random() % 6 * 8 + 8;
        const auto at = std::find_if(held.begin(), held.end(), [&](const auto& h) { return h.first == lock; });
        if (at == held.end()) {
          locker.record(kTaken, {lock, random() % 2});
          held.emplace_back(lock, locker.now);
        } else {
          locker.record(kReleased, {lock});
          expected.emplace_back(tid, lock, at->second, locker.now);
          held.erase(at);
        }
      }
      while (!held.empty()) {
        locker.record(kReleased, {held.back().first});
        expected.emplace_back(tid, held.back().first, held.back().second, locker.now);
        held.pop_back();
      }
    }
    std::vector<Row> found;
    const LockHolds holds = locker.holds();
    for (std::size_t i = 0; i < holds.holds.size(); ++i)
      found.emplace_back(locker.tids[i], holds.holds[i].lock, holds.holds[i].begin, holds.holds[i].end);
    std::sort(expected.begin(), expected.end());
    std::sort(found.begin(), found.end());
    ASSERT_EQ(found, expected) << seed;
  }
}

}  // namespace
