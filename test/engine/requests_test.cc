// The page's requests against those that `karst requests` finds.
#include "analysis/requests.h"

#include <gtest/gtest.h>
#include <simdjson.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "answers/data.h"
#include "answers/requests.h"
#include "engine/api/api.h"
#include "engine/api/requests.h"
#include "format/note.h"
#include "test/engine/random_trace.h"

namespace karst {
namespace {

using format::NoteKind;

test::SampleTrace served() {
  test::SampleTrace values;
  values.process(1, "app", {"main", "parse", "answer"}).costs(2 * format::kCallCostUnit, format::kCallCostUnit);
  values.thread(1, "app").enter(1, 1000);
  std::uint64_t now = 1100;
  for (std::uint64_t id = 1; id <= 20; ++id) {
    values.note(NoteKind::kRequestBegin, id, now).note(NoteKind::kRequest, id, now + 10);
    values.call(2, now + 20, now + 30 + id * 7 % 11 * 10).note(NoteKind::kRequest, 0, now + 150);
    if (id != 20) values.note(NoteKind::kRequestEnd, id, now + 160 + id * 7 % 11);
    now += 200;
  }
  values.exit(1, now);
  values.thread(2, "other")
      .enter(1, 1000)
      .note(NoteKind::kRequest, ~std::uint64_t{0}, 1500)
      .call(3, 1600, 1900)
      .exit(1, 9000);
  values.thread(3, "quiet").call(1, 1000, 9000);
  return values;
}

TEST(ViewRequests, SayWhatTheCommandSays) {
  test::SampleTrace values = served();
  const auto index = test::index_of(values);
  engine::Api api({index.get()}, "1");
  const reader::Trace& trace = index->trace();
  analysis::RequestFinder finder(trace, nullptr, std::nullopt, false);
  for (const reader::Thread& thread : trace.processes()[0].threads) {
    EXPECT_EQ(analysis::tells_of_requests(trace, thread), thread.tid != 3);
    const reader::Calls calls = reader::rebuild_calls(trace, thread);
    finder.add(thread, calls, calls);
  }
  std::vector<analysis::Request> wanted = finder.take();
  ASSERT_EQ(wanted.size(), 21U);
  std::stable_sort(wanted.begin(), wanted.end(),
                   [](const auto& a, const auto& b) { return a.duration() > b.duration(); });
  const engine::Reply reply = api.answer("requests", {});
  simdjson::dom::parser parser, other;
  const simdjson::dom::element answer = parser.parse(reply.body);
  EXPECT_EQ(std::uint64_t(answer["count"]), wanted.size());
  const answers::Times times(trace);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    Json json;
    json.open('{');
    const answers::RequestRow row{wanted[i], times};
    answers::write_fields(json, trace, answers::requests(), &row);
    const std::string text = json.close('}').take();
    const simdjson::dom::object said = other.parse(text);
    for (const answers::Field& field : answers::requests().fields) {
      const simdjson::dom::element list = answer["requests"][field.key];
      if (field.may_lack) {
        EXPECT_EQ(list.get_array().size(), 0U) << field.key;  // there are no states
        continue;
      }
      const simdjson::dom::element here = list.at(i);
      if (field.type == answers::Type::kId)
        EXPECT_EQ(std::string_view(here), simdjson::minify(said[field.name]));
      else if (field.type == answers::Type::kFunction)
        EXPECT_EQ(index->functions().functions()[static_cast<std::size_t>(std::int64_t(here))].name,
                  std::string_view(said[field.name]));
      else if (field.type == answers::Type::kProcess)
        EXPECT_EQ(std::int64_t(here), 0);
      else
        EXPECT_EQ(simdjson::minify(here), simdjson::minify(said[field.name])) << field.key;
    }
  }
  // The one that has no end, and no begin, lasts as long as its thread's history.
  EXPECT_EQ(std::string_view(answer["requests"]["request"].at(0)), "18446744073709551615");
  const std::int64_t function = answer["requests"]["most_in"].at(0);
  EXPECT_EQ(index->functions().functions()[static_cast<std::size_t>(function)].name, "main");
}

TEST(ViewRequests, LimitsAndTracesWithoutAny) {
  test::SampleTrace values = served();
  const auto index = test::index_of(values);
  engine::Api api({index.get()}, "1");
  simdjson::dom::parser parser;
  const std::string body = api.answer("requests", {{"limit", "3"}}).body;
  const simdjson::dom::element answer = parser.parse(body);
  EXPECT_EQ(std::uint64_t(answer["count"]), 21U);
  for (const answers::Field& field : answers::requests().fields)
    EXPECT_EQ(answer["requests"][field.key].get_array().size(), field.may_lack ? 0U : 3U) << field.key;
  EXPECT_EQ(api.answer("requests", {{"limit", "10001"}}).status, 400);
  engine::Work stopped;
  stopped.stop = true;
  EXPECT_EQ(api.answer("requests", {{"limit", "4"}}, &stopped).status, 499);

  test::SampleTrace plain;
  plain.process(1, "app", {"main"}).thread(1, "app").call(1, 1000, 2000);
  const auto none = test::index_of(plain);
  const std::string empty = engine::Api({none.get()}, "1").answer("requests", {}).body;
  const simdjson::dom::element nothing = parser.parse(empty);
  EXPECT_EQ(std::uint64_t(nothing["count"]), 0U);
  for (const char* list : {"requests", "tracks"})
    for (const auto [key, rows] : nothing[list].get_object()) EXPECT_EQ(rows.get_array().size(), 0U) << list << key;
}

// Threads that take up requests at random, several at a time, and numbers that come back.
test::SampleTrace random_requests(std::uint32_t seed) {
  std::mt19937 random(seed);
  test::SampleTrace values;
  values.process(1, "app", {"main", "work"});
  for (std::uint32_t tid = 1; tid <= 5; ++tid) {
    std::uint64_t now = 1000 + tid;
    values.thread(tid, "app").enter(1, now);
    for (int i = 0; i < 60; ++i) {
      now += 1 + random() % 40;
      const std::uint64_t id = random() % 7;
      if (id != 0 && random() % 4 == 0) values.note(NoteKind::kRequestBegin, id, now);
      values.note(NoteKind::kRequest, id, now + 1).call(2, now + 2, now + 4);
      now += 5 + random() % 30;
      if (id != 0 && random() % 3 == 0) values.note(NoteKind::kRequestEnd, id, now);
    }
    values.exit(1, now + 10);
  }
  return values;
}

class RequestTracksTest : public testing::TestWithParam<std::uint32_t> {
 protected:
  RequestTracksTest() : sample_(random_requests(GetParam())), index_(test::index_of(sample_)) {}
  test::SampleTrace sample_;
  std::unique_ptr<engine::TraceIndex> index_;
};

TEST_P(RequestTracksTest, HaveEachRequestAndAllWorkOnIt) {
  const auto found = index_->make<engine::RequestTracks>(nullptr);
  ASSERT_EQ(found->tracks.size(), 1U);
  const engine::RequestTrack& track = found->tracks[0];
  EXPECT_EQ(track.count, found->requests.size());
  using Piece = std::tuple<std::uint64_t, std::uint64_t, std::uint32_t, std::uint64_t>;  // begin, end, thread, request
  std::multiset<Piece> worked, drawn;
  for (std::uint32_t thread = 0; thread < index_->threads().size(); ++thread) {
    const reader::Calls calls = reader::rebuild_calls(index_->trace(), *index_->threads()[thread].thread);
    std::uint64_t id = 0, since = 0;
    const auto until = [&](std::uint64_t at) {
      for (const analysis::Request& request : found->requests) {
        const std::uint64_t begin = std::max(since, request.begin), end = std::min(at, request.end);
        if (request.id == id && begin < end) worked.insert({begin, end, thread, id});
      }
    };
    for (const reader::Note& note : calls.notes) {
      if (note.kind != static_cast<std::uint32_t>(NoteKind::kRequest)) continue;
      until(note.ticks);
      id = static_cast<unsigned char>(calls.bytes_of(note).empty() ? 0 : calls.bytes_of(note)[0]);
      since = note.ticks;
    }
    until(calls.last_ticks + 1);
  }
  std::multiset<std::uint32_t> places;
  std::vector<std::uint64_t> free_from(track.lanes());
  std::map<std::uint32_t, std::uint32_t> group;  // of a request
  const engine::CallColumns& calls = track.strip.calls;
  const std::uint32_t size = 1U + track.work_lanes;
  for (std::size_t row = 0; row < calls.size(); ++row) {
    const std::uint32_t place = track.strip.source[row], lane = calls.depth[row];
    ASSERT_LT(lane, track.lanes());
    EXPECT_GE(calls.begin[row], free_from[lane]) << "slices of a lane overlap";
    free_from[lane] = calls.end(row);
    if (lane % size != 0) {
      drawn.insert({calls.begin[row], calls.end(row), calls.function[row], found->requests[place].id});
      continue;
    }
    places.insert(place);
    group[place] = lane / size;
    EXPECT_EQ(calls.begin[row], found->requests[place].begin);
    EXPECT_EQ(calls.end(row), found->requests[place].end);
  }
  for (std::size_t row = 0; row < calls.size(); ++row)
    EXPECT_EQ(calls.depth[row] / size, group.at(track.strip.source[row])) << "work lies below its request";
  // What there was no lane for is counted, all else is there: of a request that has none its work is not counted.
  EXPECT_TRUE(std::includes(worked.begin(), worked.end(), drawn.begin(), drawn.end()));
  EXPECT_GE(found->requests.size(), places.size());
  EXPECT_TRUE(places.contains(0)) << "the longest has a lane";
  if (track.left_out == 0) {
    EXPECT_EQ(places.size(), found->requests.size());
    EXPECT_EQ(drawn, worked);
  }
  for (std::size_t i = 1; i < found->requests.size(); ++i)
    EXPECT_GE(found->requests[i - 1].duration(), found->requests[i].duration());
}

TEST_P(RequestTracksTest, TheirIdsStayWhoeverIsAskedFirst) {
  engine::Api api({index_.get()}, "1"), other({index_.get()}, "1");
  simdjson::dom::parser parser;
  const std::uint64_t id =
      simdjson::dom::element(parser.parse(api.answer("requests", {}).body))["tracks"]["track"].at(0);
  for (const char* first : {"locks", "frames"}) EXPECT_EQ(other.answer(first, {}).status, 200);
  EXPECT_EQ(
      std::uint64_t(simdjson::dom::element(parser.parse(other.answer("requests", {}).body))["tracks"]["track"].at(0)),
      id);
  EXPECT_EQ(
      api.answer("tiles", {{"begin", "0"}, {"end", "9000"}, {"width", "100"}, {"tracks", std::to_string(id)}}).status,
      200);
  EXPECT_EQ(api.answer("tiles", {{"begin", "0"}, {"end", "9000"}, {"width", "100"}, {"tracks", std::to_string(id + 1)}})
                .status,
            400);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RequestTracksTest, testing::Range(0U, 12U));

}  // namespace
}  // namespace karst
