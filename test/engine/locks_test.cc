// api/locks and api/lock against random programs that say who had which lock, and against a plain look at each moment.
#include "engine/api/locks.h"

#include <gtest/gtest.h>
#include <simdjson.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "engine/api/api.h"
#include "engine/cut/cut.h"
#include "engine/tiles/lock_tracks.h"
#include "engine/tiles/tracks.h"
#include "test/engine/cached_index.h"
#include "test/engine/random_calls.h"
#include "test/engine/random_locks.h"
#include "test/engine/random_trace.h"

namespace karst {
namespace {

using test::RandomLocks;
using Span = std::tuple<std::uint64_t, std::uint64_t, std::uint32_t>;  // begin, end, thread

class LocksTest : public testing::TestWithParam<std::uint32_t> {
 protected:
  static std::shared_ptr<const engine::LockTracks> locks_of(const engine::TraceIndex& index) {
    return index.make<engine::LockTracks>(nullptr);
  }
  static std::string lock(engine::Api& api, const engine::Parameters& parameters, int status = 200) {
    const engine::Reply reply = api.answer("lock", parameters);
    EXPECT_EQ(reply.status, status) << reply.body;
    return reply.body;
  }
};

// Who has the lock of a track by its slices, or who waits.
std::multiset<Span> spans_of(const engine::LockTrack& track, bool holders) {
  std::multiset<Span> spans;
  const engine::CallColumns& calls = track.strip.calls;
  for (std::size_t row = 0; row < calls.size(); ++row)
    if ((calls.depth[row] < track.holder_lanes) == holders)
      spans.insert({calls.begin[row], calls.end(row), calls.function[row]});
  return spans;
}

TEST_P(LocksTest, HoldersAndWaitsAreThoseOfTheProgram) {
  RandomLocks made(GetParam(), true);
  const auto index = test::index_of(made.sample);
  const auto locks = locks_of(*index);
  EXPECT_TRUE(locks->holds_known);
  ASSERT_EQ(locks->tracks.size(), 2U);
  EXPECT_GE(locks->tracks[0].row.lock.total, locks->tracks[1].row.lock.total);
  for (const engine::LockTrack& track : locks->tracks) {
    const std::uint64_t address = track.row.lock.address;
    EXPECT_EQ(track.row.lock.name, address == RandomLocks::kFirstLock ? "cache" : "");
    EXPECT_EQ(track.left_out, 0U);
    std::multiset<Span> held, waited;
    for (const RandomLocks::Hold& hold : made.holds)
      if (hold.lock == address) held.insert({hold.begin, hold.end, hold.thread});
    for (const RandomLocks::Wait& wait : made.waits)
      if (wait.lock == address) waited.insert({wait.begin, wait.end, wait.thread});
    EXPECT_EQ(spans_of(track, true), held);
    EXPECT_EQ(spans_of(track, false), waited);
    EXPECT_EQ(track.holder_lanes, 1);
  }
}

TEST_P(LocksTest, SlicesOfALaneDoNotOverlap) {
  for (const bool all : {false, true}) {
    RandomLocks made(GetParam(), all, 9);
    const auto index = test::index_of(made.sample);
    for (const engine::LockTrack& track : locks_of(*index)->tracks) {
      std::vector<std::uint64_t> free_from(track.holder_lanes + track.wait_lanes);
      const engine::CallColumns& calls = track.strip.calls;
      for (std::size_t row = 0; row < calls.size(); ++row) {
        EXPECT_LE(free_from.at(calls.depth[row]), calls.begin[row]);
        free_from[calls.depth[row]] = calls.end(row);
      }
    }
  }
}

// Without records of holds: at each moment, what the last begin or end of a wait says.
TEST_P(LocksTest, WhatWaitsAloneTellIsSaidForNoLonger) {
  RandomLocks made(GetParam(), false);
  const auto index = test::index_of(made.sample);
  const auto locks = locks_of(*index);
  EXPECT_FALSE(locks->holds_known);
  ASSERT_EQ(locks->tracks.size(), 2U);
  for (const engine::LockTrack& track : locks->tracks) {
    std::vector<const RandomLocks::Wait*> waits;
    std::set<std::uint64_t> times;
    for (const RandomLocks::Wait& wait : made.waits) {
      if (wait.lock != track.row.lock.address) continue;
      waits.push_back(&wait);
      times.insert({wait.begin, wait.end});
    }
    const std::multiset<Span> spans = spans_of(track, true);
    for (const std::uint64_t time : times) {
      const bool somebody_waits = std::any_of(
          waits.begin(), waits.end(), [&](const auto* wait) { return wait->begin <= time && time < wait->end; });
      const auto said = std::find_if(waits.begin(), waits.end(), [&](const auto* wait) { return wait->begin == time; });
      const std::uint32_t who = said != waits.end() && (*said)->told ? (*said)->holder : 4;  // 4: nobody knows
      const auto shown = std::find_if(spans.begin(), spans.end(), [&](const Span& span) {
        return std::get<0>(span) <= time && time < std::get<1>(span);
      });
      ASSERT_EQ(shown != spans.end(), somebody_waits) << time;
      if (shown == spans.end()) continue;
      EXPECT_EQ(std::get<2>(*shown), who) << time;
      // What is said is the truth.
      if (who == 4) continue;
      EXPECT_TRUE(std::any_of(made.holds.begin(), made.holds.end(), [&](const RandomLocks::Hold& hold) {
        return hold.lock == track.row.lock.address && hold.thread == who && hold.begin <= time &&
               std::get<1>(*shown) <= hold.end + 2;
      })) << time;
    }
  }
}

TEST_P(LocksTest, AWaitLeadsToItsHoldersCall) {
  for (const bool all : {false, true}) {
    RandomLocks made(GetParam(), all);
    const test::CachedIndex cached(made.sample, "locks");
    const auto built = test::index_of(made.sample);
    engine::Api api({built.get()}, "0");
    engine::Api of_cached({cached.get()}, "0");
    const std::string first_list = api.answer("locks", {}).body;
    EXPECT_EQ(first_list, of_cached.answer("locks", {}).body);
    simdjson::dom::parser parser;
    for (const RandomLocks::Wait& wait : made.waits) {
      const engine::Parameters call = {{"thread", std::to_string(wait.thread)}, {"index", std::to_string(wait.row)}};
      const std::string body = lock(api, call);
      EXPECT_EQ(body, lock(of_cached, call));
      const simdjson::dom::element answer = parser.parse(body);
      EXPECT_EQ(std::uint64_t(answer["wait"]["thread"]), wait.thread);
      // With locks=all the holds tell, too.
      if (!wait.told && !all) {
        EXPECT_TRUE(answer["owner"].is_null());
        continue;
      }
      EXPECT_EQ(std::uint64_t(answer["owner"]["thread"]), wait.holder);
      EXPECT_EQ(std::uint64_t(answer["owner"]["call"]["index"]), wait.holder_row);
      std::uint64_t holder = 0;
      ASSERT_FALSE(answer["owner"]["place"].get(holder)) << body;
      const std::string lock_number = std::to_string(std::uint64_t(answer["lock"]));
      const std::string held = lock(api, {{"lock", lock_number}, {"holder", std::to_string(holder)}});
      const simdjson::dom::array waiters = parser.parse(held)["waiters"]["index"];
      EXPECT_NE(
          std::find_if(waiters.begin(), waiters.end(), [&](const auto& row) { return std::uint64_t(row) == wait.row; }),
          waiters.end())
          << held;
    }
  }
}

TEST_P(LocksTest, AHolderLeadsToThoseThatWaited) {
  RandomLocks made(GetParam(), true);
  const auto index = test::index_of(made.sample);
  engine::Api api({index.get()}, "0");
  const auto locks = locks_of(*index);
  simdjson::dom::parser parser;
  for (std::size_t number = 0; number < locks->tracks.size(); ++number) {
    const auto& holders = locks->tracks[number].row.holders;
    for (std::size_t i = 0; i < holders.size(); ++i) {
      const std::string body = lock(api, {{"lock", std::to_string(number)}, {"holder", std::to_string(i)}});
      const simdjson::dom::element answer = parser.parse(body);
      const auto hold = std::find_if(made.holds.begin(), made.holds.end(), [&](const RandomLocks::Hold& of) {
        return of.begin == holders[i].begin && of.lock == locks->tracks[number].row.lock.address;
      });
      ASSERT_NE(hold, made.holds.end());
      EXPECT_EQ(std::uint64_t(answer["owner"]["thread"]), hold->thread);
      EXPECT_EQ(std::uint64_t(answer["owner"]["call"]["index"]), hold->row);
      EXPECT_TRUE(bool(answer["held"]["exact"]));
      std::set<std::uint64_t> wanted, found;
      for (const RandomLocks::Wait& wait : made.waits)
        if (wait.lock == hold->lock && wait.begin < hold->end && wait.end > hold->begin && wait.thread != hold->thread)
          wanted.insert(std::uint64_t{wait.thread} << 32U | wait.row);
      for (std::size_t w = 0; w < answer["waiters"]["thread"].get_array().size(); ++w)
        found.insert(std::uint64_t(answer["waiters"]["thread"].at(w)) << 32U |
                     std::uint64_t(answer["waiters"]["index"].at(w)));
      EXPECT_EQ(found, wanted);
      EXPECT_EQ(std::uint64_t(answer["waiter_count"]), wanted.size());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, LocksTest, testing::Range(1U, 21U));

TEST(Locks, TracksAreThereOnceTheyWereAskedFor) {
  RandomLocks made(1, true);
  const auto index = test::index_of(made.sample);
  engine::Api api({index.get()}, "0");
  const std::string facts = api.answer("trace", {}).body;
  EXPECT_NE(facts.find("\"lock_waits\":["), std::string::npos);
  const auto id = static_cast<std::uint32_t>(engine::tracks_of(*index).size());
  const engine::Parameters tiles = {
      {"begin", "0"}, {"end", "100000"}, {"width", "100"}, {"tracks", std::to_string(id)}};
  EXPECT_EQ(api.answer("tiles", tiles).status, 400);
  simdjson::dom::parser parser;
  const simdjson::dom::element list = parser.parse(api.answer("locks", {}).body);
  EXPECT_EQ(std::uint64_t(list["locks"]["track"].at(0)), id);
  EXPECT_EQ(api.answer("tiles", tiles).status, 200);
  // What was listed before stays as it was.
  EXPECT_EQ(api.answer("trace", {}).body, facts);
}

TEST(Locks, QuestionsThatMakeNoSense) {
  RandomLocks made(2, true);
  const auto index = test::index_of(made.sample);
  engine::Api api({index.get()}, "0");
  EXPECT_EQ(api.answer("lock", {}).status, 400);
  EXPECT_EQ(api.answer("lock", {{"lock", "7"}, {"holder", "0"}}).status, 400);
  EXPECT_EQ(api.answer("lock", {{"lock", "0"}, {"holder", "99999999"}}).status, 400);
  EXPECT_EQ(api.answer("lock", {{"lock", "0"}}).status, 400);
  EXPECT_EQ(api.answer("lock", {{"thread", "0"}, {"index", "999999"}}).status, 400);
  EXPECT_EQ(api.answer("lock", {{"thread", "0"}, {"index", "0"}}).status, 404);  // main() is no wait
}

TEST(Locks, ATraceWithoutAnyHasNone) {
  test::SampleTrace sample;
  sample.process(1, "app", {"main"}).thread(1, "app").call(1, 1000, 2000);
  const auto index = test::index_of(sample);
  engine::Api api({index.get()}, "0");
  EXPECT_NE(api.answer("locks", {}).body.find("\"locks\":{\"track\":[],"), std::string::npos);
  EXPECT_NE(api.answer("trace", {}).body.find("\"lock_waits\":[]"), std::string::npos);
}

std::string packed_numbers(const std::vector<std::uint64_t>& numbers) {
  std::string bytes;
  for (std::uint64_t number : numbers) {
    std::string own;
    for (; number != 0; number >>= 8) own += static_cast<char>(number);
    bytes += static_cast<char>(own.size()) + own;
  }
  return bytes + static_cast<char>(format::kValuesEnd);
}

TEST(Locks, ReadersShareOneAndEachHasALane) {
  constexpr std::uint32_t kRead = 1, kWrite = 2, kWaits = 3, kShares = 4, kLetsGo = 5;
  test::SampleTrace sample;
  sample.process(1, "app", {"read", "write", "wait for rwlock", "rwlock (shared)", "rwlock"});
  sample.notes(kWaits, format::kLockValues).notes(kShares, format::kLockTaken).notes(kLetsGo, format::kLockReleased);
  for (std::uint32_t tid = 1; tid <= 3; ++tid)
    sample.thread(tid, "app")
        .enter(kRead, 1000 + tid)
        .values(format::NoteKind::kRecord, kShares, packed_numbers({0x10, 0}), 1100 + tid)
        .values(format::NoteKind::kRecord, kLetsGo, packed_numbers({0x10}), 1900 + tid)
        .exit(kRead, 2000);
  sample.thread(4, "app").enter(kWrite, 1200);
  sample.values(format::NoteKind::kArguments, kWaits, packed_numbers({0x10, 0}), 1300);
  sample.enter(kWaits, 1300).exit(kWaits, 1910).exit(kWrite, 2100);
  const auto index = test::index_of(sample);
  engine::Api api({index.get()}, "0");
  simdjson::dom::parser parser;
  const simdjson::dom::element list = parser.parse(api.answer("locks", {}).body);
  EXPECT_EQ(std::uint64_t(list["locks"]["holder_lanes"].at(0)), 3U);
  EXPECT_EQ(std::uint64_t(list["locks"]["lanes"].at(0)), 4U);
  const simdjson::dom::element wait = parser.parse(api.answer("lock", {{"thread", "3"}, {"index", "1"}}).body);
  EXPECT_EQ(std::uint64_t(wait["owner"]["owners"]), 3U);
  EXPECT_EQ(std::uint64_t(wait["owner"]["thread"]), 0U);
  EXPECT_EQ(std::uint64_t(wait["owner"]["call"]["index"]), 0U);
}

// A thread that is not in the trace, and one that was in no traced call.
TEST(Locks, WhatIsNotKnownOfAHolderIsNotThere) {
  constexpr std::uint32_t kCall = 1, kWaits = 2;
  test::SampleTrace sample;
  sample.process(1, "app", {"f", "wait for mutex"});
  sample.notes(kWaits, format::kLockValues);
  sample.thread(1, "app").enter(kCall, 1000);
  for (const std::uint64_t holder : {999U, 2U}) {
    const std::uint64_t at = holder == 2 ? 3000 : 1100;
    sample.values(format::NoteKind::kArguments, kWaits, packed_numbers({0x10, holder}), at);
    sample.enter(kWaits, at).exit(kWaits, at + 100);
  }
  sample.exit(kCall, 4000);
  sample.thread(2, "app").call(kCall, 1500, 1600);
  const auto index = test::index_of(sample);
  engine::Api api({index.get()}, "0");
  simdjson::dom::parser parser;
  simdjson::dom::element wait = parser.parse(api.answer("lock", {{"thread", "0"}, {"index", "1"}}).body);
  EXPECT_EQ(std::uint64_t(wait["owner"]["tid"]), 999U);
  EXPECT_EQ(std::int64_t(wait["owner"]["thread"]), -1);
  EXPECT_TRUE(wait["owner"]["call"].is_null());
  wait = parser.parse(api.answer("lock", {{"thread", "0"}, {"index", "2"}}).body);
  EXPECT_EQ(std::int64_t(wait["owner"]["thread"]), 1);
  EXPECT_TRUE(wait["owner"]["call"].is_null());
  // In the track it is the thread behind the last one.
  const auto& calls = index->made<engine::LockTracks>()->tracks.at(0).strip.calls;
  EXPECT_EQ(calls.function[0], 2U);
}

TEST(Locks, AHoldMayBeginAMomentBehindTheWaitThatNamesIt) {
  constexpr std::uint32_t kCall = 1, kWaits = 2, kTakes = 3, kReleases = 4;
  test::SampleTrace sample;
  sample.process(1, "app", {"f", "wait for mutex", "mutex", "mutex"});
  sample.notes(kWaits, format::kLockValues).notes(kTakes, format::kLockTaken);
  sample.notes(kReleases, format::kLockReleased);
  for (const std::uint32_t tid : {1U, 3U}) {
    const std::uint64_t at = tid == 1 ? 1210 : 1050;
    sample.thread(tid, "app").enter(kCall, 1000);
    sample.values(format::NoteKind::kRecord, kTakes, packed_numbers({0x10, 0}), at);
    sample.values(format::NoteKind::kRecord, kReleases, packed_numbers({0x10}), at + 151).exit(kCall, 2000);
  }
  sample.thread(2, "app").enter(kCall, 1000);
  sample.values(format::NoteKind::kArguments, kWaits, packed_numbers({0x10, 1}), 1200);
  sample.enter(kWaits, 1200).exit(kWaits, 1400).exit(kCall, 2000);
  const auto index = test::index_of(sample);
  engine::Api api({index.get()}, "0");
  simdjson::dom::parser parser;
  const simdjson::dom::element found = parser.parse(api.answer("lock", {{"thread", "2"}, {"index", "1"}}).body);
  EXPECT_EQ(std::uint64_t(found["owner"]["tid"]), 1U);
  EXPECT_EQ(std::uint64_t(found["owner"]["place"]), 1U);  // the one from 1210 on, not that of 1050 to 1201
}

// What counts is what it does with the lock, not that it waits for another one.
TEST(Locks, AHolderThatWaitsItselfIsInTheCallThatWaits) {
  constexpr std::uint32_t kCall = 1, kWaits = 2;
  test::SampleTrace sample;
  sample.process(1, "app", {"f", "wait for mutex"});
  sample.notes(kWaits, format::kLockValues);
  const auto wait = [&](std::uint64_t lock, std::uint32_t holder, std::uint64_t begin, std::uint64_t end) {
    sample.values(format::NoteKind::kArguments, kWaits, packed_numbers({lock, holder}), begin);
    sample.enter(kWaits, begin).exit(kWaits, end);
  };
  sample.thread(1, "app").enter(kCall, 1000);
  wait(0x20, 3, 1100, 1900);
  sample.exit(kCall, 2000);
  sample.thread(2, "app").enter(kCall, 1000);
  wait(0x10, 1, 1200, 1950);
  sample.exit(kCall, 2000);
  const auto index = test::index_of(sample);
  engine::Api api({index.get()}, "0");
  simdjson::dom::parser parser;
  const simdjson::dom::element found = parser.parse(api.answer("lock", {{"thread", "1"}, {"index", "1"}}).body);
  EXPECT_EQ(std::uint64_t(found["owner"]["thread"]), 0U);
  EXPECT_EQ(std::uint64_t(found["owner"]["call"]["index"]), 0U);
}

// In a part the holder's call may be left out, as it had ended before: what it did is not known then.
TEST(Locks, WhatAHolderDidBeforeAPartIsNotKnown) {
  RandomLocks made(3, true);
  const auto index = test::index_of(made.sample);
  engine::Api whole({index.get()}, "0");
  const std::uint64_t middle = index->origin() + (index->last_ticks() - index->origin()) / 2;
  const engine::TickRange range{middle, index->last_ticks()};
  const auto bytes = engine::cut_trace(test::scope_of(*index, range));
  ASSERT_TRUE(bytes.ok());
  simdjson::dom::parser parser;
  for (const bool page : {false, true}) {
    auto trace = reader::Trace::open_memory(*bytes, "cut.karst");
    engine::IndexProgress progress;
    auto cut = engine::TraceIndex::build(std::move(*trace), progress);
    ASSERT_TRUE(cut.ok());
    if (page) (*cut)->set_part({index->origin(), range});
    engine::Api api({cut->get()}, "0");
    ASSERT_EQ(api.answer("locks", {}).status, 200);
    std::size_t known = 0, unknown = 0;
    for (const engine::LockTracks::Place& place : (*cut)->made<engine::LockTracks>()->places) {
      const simdjson::dom::element answer = parser.parse(
          api.answer("lock", {{"thread", std::to_string(place.thread)}, {"index", std::to_string(place.row)}}).body);
      bool call_known = false;
      std::uint64_t row = 0;
      if (answer["owner"]["call_known"].get(call_known) != simdjson::SUCCESS) continue;
      const engine::LockTrack& track = (*cut)->made<engine::LockTracks>()->tracks[place.track];
      const std::uint64_t begin = (*cut)->made<engine::LockTracks>()->waits[track.row.waits[place.at]].begin;
      EXPECT_FALSE(begin < middle && call_known);
      ++(call_known ? known : unknown);
      if (!call_known) continue;
      // The same call as in the whole trace.
      const auto wait = std::find_if(made.waits.begin(), made.waits.end(),
                                     [&](const RandomLocks::Wait& of) { return of.begin == begin; });
      ASSERT_NE(wait, made.waits.end());
      ASSERT_EQ(answer["owner"]["call"]["index"].get(row), simdjson::SUCCESS);
      const engine::ThreadIndex& thread = (*cut)->threads()[std::uint64_t(answer["owner"]["thread"])];
      EXPECT_EQ(thread.calls.begin[row], index->threads()[wait->holder].calls.begin[wait->holder_row]);
    }
    EXPECT_GT(known, 5U);
    EXPECT_GT(unknown, 0U);
  }
}

TEST(Locks, OfATraceThatNoRuntimeWrote) {
  constexpr std::uint32_t kCall = 1, kWaits = 2, kTakes = 3, kReleases = 4, kNames = 5;
  for (std::uint32_t seed = 1; seed <= 30; ++seed) {
    std::mt19937 random(seed);
    const auto number = [&]() -> std::uint64_t {
      constexpr std::uint64_t kNumbers[] = {0, 1, 2, 0x10, 0x20, 0xffffffffU, ~std::uint64_t{0}};
      return kNumbers[random() % 7];
    };
    test::SampleTrace sample;
    sample.process(1, "app", {"f", "wait for mutex", "mutex", "mutex", "0x10"});
    sample.notes(kWaits, format::kLockValues).notes(kTakes, format::kLockTaken);
    sample.notes(kReleases, format::kLockReleased).notes(kNames, format::kLockName);
    std::uint64_t now = 1000;
    for (std::uint32_t tid = 1; tid <= 3; ++tid) {
      sample.thread(tid, "app");
      for (int i = 0; i < 200; ++i) {
        now = random() % 20 == 0 ? 1000 + random() % 500 : now + random() % 50;  // clocks that run backwards
        switch (random() % 6) {
          case 0:
            sample.values(format::NoteKind::kArguments, kWaits, packed_numbers({number(), number()}), now);
            break;
          case 1:
            sample.enter(random() % 2 == 0 ? kWaits : kCall, now);
            break;
          case 2:
            sample.exit(random() % 2 == 0 ? kWaits : kCall, now);
            break;
          case 3:
            sample.values(format::NoteKind::kRecord, kTakes, packed_numbers({number(), number()}), now);
            break;
          case 4:
            sample.values(format::NoteKind::kRecord, kReleases, packed_numbers({number()}), now);
            break;
          default:
            sample.values(format::NoteKind::kArguments, kWaits, std::string(random() % 9, '\x7f'), now);
        }
      }
    }
    const auto index = test::index_of(sample);
    engine::Api api({index.get()}, "0");
    EXPECT_EQ(api.answer("locks", {}).status, 200);
    for (std::size_t thread = 0; thread < index->threads().size(); ++thread)
      for (std::size_t row = 0; row < index->threads()[thread].calls.size(); ++row) {
        const int status =
            api.answer("lock", {{"thread", std::to_string(thread)}, {"index", std::to_string(row)}}).status;
        EXPECT_TRUE(status == 200 || status == 404) << status;
      }
    const auto first = engine::tracks_of(*index).size();
    for (std::size_t number_of = 0; number_of < index->made<engine::LockTracks>()->tracks.size(); ++number_of) {
      for (std::size_t i = 0; i < index->made<engine::LockTracks>()->tracks[number_of].row.holders.size(); ++i)
        EXPECT_EQ(api.answer("lock", {{"lock", std::to_string(number_of)}, {"holder", std::to_string(i)}}).status, 200);
      const engine::Reply tiles = api.answer("tiles", {{"width", "77"}, {"tracks", std::to_string(first + number_of)}});
      EXPECT_EQ(tiles.status, 200);
    }
  }
}

TEST(LockLanes, TheLowestThatIsFree) {
  using analysis::kNoLane;
  const std::vector<std::pair<std::uint64_t, std::uint64_t>> spans = {{0, 10}, {1, 5}, {2, 3}, {5, 6}, {5, 5}, {9, 20}};
  EXPECT_EQ(analysis::lanes_of(spans, 3), (std::vector<std::uint16_t>{0, 1, 2, 1, 2, 1}));
  EXPECT_EQ(analysis::lanes_of(spans, 2), (std::vector<std::uint16_t>{0, 1, kNoLane, 1, kNoLane, 1}));
}

}  // namespace
}  // namespace karst
