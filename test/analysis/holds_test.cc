// analysis/holds.h: who had which lock, against a second, naive replay of each thread; and what it makes of records
// that no runtime has written.
#include "analysis/holds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <set>
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

enum HoldName : std::uint32_t { kHoldMain = 1, kTaken, kReleased, kKept, kMade, kShares };

class Locker {
 public:
  Locker() {
    sample.process(1, "app", {"main", "mutex", "mutex", "mutex", "mutex", "rwlock (shared)"});
    sample.notes(kTaken, format::kLockTaken).notes(kReleased, format::kLockReleased);
    sample.notes(kKept, format::kLockKept).notes(kMade, format::kLockMade).notes(kShares, format::kLockTaken);
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

/// Threads that each take one lock while they have another one, under others; shared or not.
struct Order {
  std::uint32_t tid;
  std::uint64_t first, second;
  std::vector<std::uint64_t> under = {};
};
LockHolds holds_of(const std::vector<Order>& orders) {
  Locker locker;
  for (std::uint32_t tid = 1; tid <= 12; ++tid) {
    const auto is_its = [&](const Order& order) { return order.tid == tid; };
    if (std::none_of(orders.begin(), orders.end(), is_its)) continue;
    locker.thread(tid);
    for (const Order& order : orders) {
      if (!is_its(order)) continue;
      for (const std::uint64_t lock : order.under) locker.record(kTaken, {lock, 0});
      locker.record(kTaken, {order.first, 0}).record(kTaken, {order.second, 0});
      locker.record(kReleased, {order.second}).record(kReleased, {order.first});
      for (const std::uint64_t lock : order.under) locker.record(kReleased, {lock});
    }
  }
  return locker.holds();
}
/// The locks of each ring, the least address first.
std::vector<std::vector<std::uint64_t>> rings_in(const LockHolds& holds) {
  std::vector<std::vector<std::uint64_t>> rings;
  for (const analysis::LockRing& ring : holds.rings) {
    EXPECT_EQ(ring.locks.size(), ring.orders.size());
    std::set<const reader::Thread*> threads;
    for (const analysis::LockOrder& order : ring.orders) threads.insert(order.thread);
    EXPECT_EQ(threads.size(), ring.locks.size());
    std::vector<std::uint64_t> locks;
    for (const std::uint32_t id : ring.locks) locks.push_back(holds.locks[id].address);
    std::rotate(locks.begin(), std::min_element(locks.begin(), locks.end()), locks.end());
    rings.push_back(std::move(locks));
  }
  return rings;
}
using Found = std::vector<std::vector<std::uint64_t>>;

TEST(Holds, ARingOfThreeLocks) {
  const LockHolds found = holds_of({{1, 1, 2}, {2, 2, 3}, {3, 3, 1}});
  EXPECT_EQ(rings_in(found), (Found{{1, 2, 3}}));
  EXPECT_TRUE(found.inversions.empty());
  EXPECT_FALSE(found.rings_cut);
}

TEST(Holds, NoRingWhereThreadsCouldNotMeet) {
  // One lock over all of it, or over two parts.
  EXPECT_EQ(rings_in(holds_of({{1, 1, 2, {9}}, {2, 2, 3, {9}}, {3, 3, 1, {9}}})), Found{});
  EXPECT_EQ(rings_in(holds_of({{1, 1, 2, {9}}, {2, 2, 3}, {3, 3, 1, {9}}})), Found{});
  // A part that is also done without it.
  EXPECT_EQ(rings_in(holds_of({{1, 1, 2, {9}}, {2, 2, 3}, {3, 3, 1, {9}}, {3, 3, 1}})), (Found{{1, 2, 3}}));
  // One thread has a lock that another one needs to hold.
  EXPECT_EQ(rings_in(holds_of({{1, 1, 2, {3}}, {2, 2, 3}, {4, 3, 1}})), Found{});
  // Too few threads, or as many, of which two did one part.
  EXPECT_EQ(rings_in(holds_of({{1, 1, 2}, {1, 2, 3}, {1, 3, 1}})), Found{});
  EXPECT_EQ(rings_in(holds_of({{1, 1, 2}, {2, 2, 3}, {2, 3, 1}})), Found{});
  EXPECT_EQ(rings_in(holds_of({{1, 1, 2}, {2, 2, 3}, {2, 3, 1}, {3, 1, 2}})), Found{});
  EXPECT_EQ(rings_in(holds_of({{1, 1, 2}, {1, 2, 3}, {2, 2, 3}, {2, 3, 1}, {3, 3, 1}})), (Found{{1, 2, 3}}));
}

TEST(Holds, NoRingThroughReadersOfOneLock) {
  const auto with = [](HoldName held, HoldName taken) {
    Locker locker;
    locker.thread(1).record(kTaken, {1, 0}).record(kTaken, {2, 0}).record(kReleased, {2}).record(kReleased, {1});
    locker.thread(2).record(kTaken, {2, 0}).record(taken, {3, 0}).record(kReleased, {3}).record(kReleased, {2});
    locker.thread(3).record(held, {3, 0}).record(kTaken, {1, 0}).record(kReleased, {1}).record(kReleased, {3});
    return rings_in(locker.holds()).size();
  };
  EXPECT_EQ(with(kShares, kShares), 0U);
  EXPECT_EQ(with(kTaken, kShares), 1U);
  EXPECT_EQ(with(kShares, kTaken), 1U);
  // Two that read under it have it at once; one that writes has it alone.
  const auto under = [](HoldName as) {
    Locker locker;
    for (std::uint64_t i = 1; i <= 3; ++i) {
      const std::uint64_t next = i % 3 + 1;
      locker.thread(static_cast<std::uint32_t>(i)).record(as, {9, 0}).record(kTaken, {i, 0}).record(kTaken, {next, 0});
      locker.record(kReleased, {next}).record(kReleased, {i}).record(kReleased, {9});
    }
    return rings_in(locker.holds()).size();
  };
  EXPECT_EQ(under(kShares), 1U);
  EXPECT_EQ(under(kTaken), 0U);
}

TEST(Holds, RingsThatShareParts) {
  // Two rings, and a detour that makes none.
  Found found = rings_in(holds_of({{1, 1, 2}, {2, 2, 3}, {3, 3, 1}, {4, 3, 4}, {5, 4, 1}, {6, 7, 1}, {7, 2, 8}}));
  std::sort(found.begin(), found.end());
  EXPECT_EQ(found, (Found{{1, 2, 3}, {1, 2, 3, 4}}));
  // What a pair of locks tells is not told again.
  const LockHolds pairs = holds_of({{1, 1, 2}, {2, 2, 3}, {3, 3, 1}, {4, 2, 1}, {5, 3, 2}, {6, 1, 3}});
  EXPECT_EQ(pairs.inversions.size(), 3U);
  EXPECT_EQ(rings_in(pairs), Found{});
}

TEST(Holds, RingsOfUpToEightLocks) {
  for (std::uint32_t size = 3; size <= 10; ++size) {
    std::vector<Order> orders;
    for (std::uint32_t i = 0; i < size; ++i) orders.push_back({i + 1, i + 1, (i + 1) % size + 1});
    EXPECT_EQ(rings_in(holds_of(orders)).size(), size <= 8 ? 1U : 0U) << size;
  }
}

TEST(Holds, WhereThereAreTooManyWaysThatIsSaid) {
  // Each of 60 locks before each other one, always under one lock: no ring, and no end of ways to look for one.
  std::vector<Order> orders;
  for (std::uint64_t a = 1; a <= 60; ++a)
    for (std::uint64_t b = 1; b <= 60; ++b)
      if (a != b) orders.push_back({static_cast<std::uint32_t>(1 + a % 12), a, b, {99}});
  const LockHolds found = holds_of(orders);
  EXPECT_EQ(found.rings.size(), 0U);
  EXPECT_EQ(found.inversions.size(), 0U);
  EXPECT_FALSE(found.rings_cut);  // no way is longer than one part
  // Each before the half of them that follows: no pairs, and rings of any size, for two threads.
  orders.clear();
  for (std::uint64_t a = 0; a < 60; ++a)
    for (std::uint64_t b = 1; b < 30; ++b)
      orders.push_back({static_cast<std::uint32_t>(1 + a % 2), a + 1, 1 + (a + b) % 60});
  const LockHolds many = holds_of(orders);
  EXPECT_EQ(many.rings.size(), 0U);
  EXPECT_EQ(many.inversions.size(), 0U);
  EXPECT_TRUE(many.rings_cut);
}

/// Rings of three locks by trying all, as far as threads alone decide: each part by a thread of its own.
TEST(Holds, RandomOrdersAgainstTryingAllOfThem) {
  for (std::uint32_t seed = 1; seed <= 100; ++seed) {
    std::mt19937 random(seed);
    constexpr std::uint64_t kLocks = 6;
    std::vector<Order> orders;
    for (std::uint32_t tid = 1; tid <= 9; ++tid) {
      const std::uint64_t first = 1 + random() % kLocks;
      orders.push_back({tid, first, 1 + (first + random() % (kLocks - 1)) % kLocks});
    }
    const auto has = [&](std::uint64_t a, std::uint64_t b) {
      return std::any_of(orders.begin(), orders.end(), [&](const Order& o) { return o.first == a && o.second == b; });
    };
    // Which orders are in a ring of n, n to 6; each thread has one order, so that they are never too few.
    const auto leads = [&](std::uint64_t from, std::uint64_t to) {
      std::set<std::uint64_t> seen{from};
      for (std::uint64_t i = 0; i < kLocks; ++i)
        for (const Order& o : orders)
          if (seen.contains(o.first)) seen.insert(o.second);
      return seen.contains(to);
    };
    const LockHolds found = holds_of(orders);
    std::set<std::pair<std::uint64_t, std::uint64_t>> told;
    for (const std::vector<std::uint64_t>& ring : rings_in(found)) {
      EXPECT_GE(ring.size(), 3U);
      EXPECT_EQ(std::set<std::uint64_t>(ring.begin(), ring.end()).size(), ring.size());
      for (std::size_t i = 0; i < ring.size(); ++i) {
        const std::pair order{ring[i], ring[(i + 1) % ring.size()]};
        EXPECT_TRUE(has(order.first, order.second)) << seed;
        told.insert(order);
      }
    }
    for (const Order& o : orders)
      EXPECT_EQ(told.contains({o.first, o.second}) || has(o.second, o.first), leads(o.second, o.first))
          << "seed " << seed << ": " << o.first << " before " << o.second;
  }
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
