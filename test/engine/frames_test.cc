// api/frames, api/frame and the tiles of frames against a plain look at the marks among all notes.
#include "engine/api/frames.h"

#include <gtest/gtest.h>
#include <simdjson.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "engine/api/api.h"
#include "engine/protocol.h"
#include "test/engine/cached_index.h"
#include "test/engine/random_notes.h"

namespace karst {
namespace {

struct Marked {
  std::uint64_t number;
  double begin;
  std::uint64_t ns;
};

// The frames that two marks enclose.
std::vector<Marked> frames_in(const engine::TraceIndex& index) {
  std::vector<std::uint64_t> marks;
  for (const engine::ThreadIndex& thread : index.threads())
    for (const reader::Note& note : reader::rebuild_calls(index.trace(), *thread.thread).notes)
      if (note.kind == static_cast<std::uint32_t>(test::NoteKind::kFrame)) marks.push_back(note.ticks);
  std::sort(marks.begin(), marks.end());
  std::vector<Marked> frames;
  for (std::size_t i = 1; i < marks.size(); ++i)
    frames.push_back({i + 1, index.since_origin(marks[i - 1]), index.trace().clock().to_ns(marks[i] - marks[i - 1])});
  return frames;
}

class FramesTest : public testing::TestWithParam<std::uint32_t> {
 protected:
  FramesTest() : sample_(test::random_notes(GetParam())), index_(test::index_of(sample_)), all_(frames_in(*index_)) {}

  simdjson::dom::element ask(const char* path, const engine::Parameters& parameters) {
    const engine::Reply reply = api_.answer(path, parameters);
    EXPECT_EQ(reply.status, 200) << reply.body;
    return parser_.parse(reply.body);
  }

  test::SampleTrace sample_;
  std::unique_ptr<engine::TraceIndex> index_;
  std::vector<Marked> all_;
  engine::Api api_{{index_.get()}, "1"};
  simdjson::dom::parser parser_;
};

TEST_P(FramesTest, AreCountedAndTheSlowestAreNamed) {
  ASSERT_GT(all_.size(), 100U);
  {
    const auto list = ask("frames", {});
    EXPECT_EQ(std::uint64_t(list["more"]), 0U);
    ASSERT_EQ(list["frames"]["name"].get_array().size(), 1U);
    EXPECT_EQ(std::string_view(list["frames"]["name"].at(0)), "main");
    EXPECT_EQ(std::uint64_t(list["frames"]["count"].at(0)), all_.size() + 1);  // and the first, which nobody began
  }
  std::vector<Marked> slowest = all_;
  std::stable_sort(slowest.begin(), slowest.end(), [](const Marked& a, const Marked& b) { return a.ns > b.ns; });
  const std::uint64_t target = slowest[slowest.size() / 5].ns;
  const auto is_over = [&](const Marked& one) { return one.ns > target; };
  const Marked& middle = all_[all_.size() / 2];
  const auto found =
      ask("frame", {{"set", "0"}, {"target", std::to_string(target)}, {"number", std::to_string(middle.number)}});
  EXPECT_EQ(std::uint64_t(found["over"]), static_cast<std::uint64_t>(std::count_if(all_.begin(), all_.end(), is_over)));
  EXPECT_EQ(std::uint64_t(found["durations"]["calls"]), all_.size());
  EXPECT_EQ(std::uint64_t(found["durations"]["max"]), slowest.front().ns);
  EXPECT_EQ(std::uint64_t(found["durations"]["min"]), slowest.back().ns);
  ASSERT_EQ(found["slowest"]["number"].get_array().size(), engine::kSlowestFrames);
  for (std::size_t i = 0; i < engine::kSlowestFrames; ++i) {
    EXPECT_EQ(std::uint64_t(found["slowest"]["number"].at(i)), slowest[i].number);
    EXPECT_EQ(double(found["slowest"]["begin"].at(i)), slowest[i].begin);
    EXPECT_EQ(std::uint64_t(found["slowest"]["duration"].at(i)), slowest[i].ns);
  }
  EXPECT_EQ(std::uint64_t(found["frame"]["number"]), middle.number);
  EXPECT_EQ(std::uint64_t(found["frame"]["duration"]), middle.ns);
  EXPECT_TRUE(bool(found["frame"]["marked"]));
  const auto at = all_.begin() + (&middle - all_.data());
  const auto next = std::find_if(at + 1, all_.end(), is_over);
  ASSERT_NE(next, all_.end());
  EXPECT_EQ(std::uint64_t(found["next"]["number"]), next->number);
  const auto previous = std::find_if(std::make_reverse_iterator(at), all_.rend(), is_over);
  ASSERT_NE(previous, all_.rend());
  EXPECT_EQ(std::uint64_t(found["previous"]["number"]), previous->number);
}

TEST_P(FramesTest, ACacheHasTheSame) {
  const test::CachedIndex cached(sample_, "frames");
  engine::Api of_cached({cached.get()}, "1");
  for (const engine::Parameters& asked : {engine::Parameters{{"set", "0"}, {"target", "50"}, {"number", "7"}},
                                          engine::Parameters{{"set", "0"}, {"target", "50"}}})
    EXPECT_EQ(api_.answer("frame", asked).body, of_cached.answer("frame", asked).body);
  EXPECT_EQ(api_.answer("frames", {}).body, of_cached.answer("frames", {}).body);
}

// Whoever asked for locks before: ids of frames are the same.
TEST_P(FramesTest, TilesHaveThem) {
  const std::uint64_t track = ask("frames", {})["frames"]["track"].at(0);
  ask("locks", {});
  EXPECT_EQ(std::uint64_t(ask("frames", {})["frames"]["track"].at(0)), track);
  const double end = index_->since_origin(index_->last_ticks()) + 1;
  const std::string bytes =
      api_.answer("tiles",
                  {{"begin", "0"}, {"end", std::to_string(end)}, {"width", "8192"}, {"tracks", std::to_string(track)}})
          .body;
  engine::TileHeader header{};
  ASSERT_GE(bytes.size(), sizeof header);
  std::memcpy(&header, bytes.data(), sizeof header);
  ASSERT_EQ(header.rows, 1U);
  // Each pixel names its longest frame, so the longest of all is there.
  std::vector<double> durations(header.slices);
  std::vector<std::uint32_t> numbers(header.slices);
  const std::size_t begins = sizeof header + sizeof(engine::TileRow);
  const std::size_t columns = begins + header.slices * sizeof(double);
  std::memcpy(durations.data(), bytes.data() + columns, header.slices * sizeof(double));
  const std::size_t functions = columns + header.slices * sizeof(double);
  const std::size_t padded = (header.slices * sizeof(std::uint32_t) + 7) / 8 * 8;
  std::memcpy(numbers.data(), bytes.data() + functions + padded, header.slices * sizeof(std::uint32_t));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] == 1) continue;
    const Marked& frame = all_.at(numbers[i] - 2);
    EXPECT_EQ(frame.number, numbers[i]);
    EXPECT_NEAR(durations[i], static_cast<double>(frame.ns), 1.0);
  }
  const auto longest =
      std::max_element(all_.begin(), all_.end(), [](const Marked& a, const Marked& b) { return a.ns < b.ns; });
  EXPECT_NE(std::find(numbers.begin(), numbers.end(), longest->number), numbers.end());
}

TEST_P(FramesTest, WhatMakesNoSenseIsRefused) {
  const auto status = [&](const engine::Parameters& parameters) { return api_.answer("frame", parameters).status; };
  EXPECT_EQ(status({{"set", "0"}, {"target", "1000"}}), 200);
  EXPECT_EQ(status({{"target", "1000"}}), 400);
  EXPECT_EQ(status({{"set", "1"}, {"target", "1000"}}), 400);
  EXPECT_EQ(status({{"set", "0"}}), 400);
  EXPECT_EQ(status({{"set", "0"}, {"target", "-1"}}), 400);
  EXPECT_EQ(status({{"set", "0"}, {"target", "nan"}}), 400);
  EXPECT_EQ(status({{"set", "0"}, {"target", "1000"}, {"number", "0"}}), 400);
  EXPECT_EQ(status({{"set", "0"}, {"target", "1000"}, {"number", "99999999999999999999"}}), 400);
}

INSTANTIATE_TEST_SUITE_P(Random, FramesTest, testing::Range(1U, 5U));

TEST(FramesOfNames, ATraceWithoutAnyHasNoSet) {
  test::SampleTrace sample;
  sample.process(1, "app", {"main"}).thread(1, "app").call(1, 1000, 9000);
  const auto index = test::index_of(sample);
  engine::Api api({index.get()}, "1");
  EXPECT_EQ(api.answer("frames", {}).body, R"({"more":0,"frames":{"track":[],"process":[],"name":[],"count":[]}})");
  EXPECT_EQ(api.answer("frame", {{"set", "0"}, {"target", "1"}}).status, 400);
}

// The main ones come first, then the name with the most marks; one mark alone begins nothing that is measured.
TEST(FramesOfNames, MainFramesComeFirst) {
  test::SampleTrace sample;
  sample.process(1, "app", {"main", "audio", "Frame", "once"}).thread(1, "app").enter(1, 1000);
  for (std::uint64_t i = 0; i < 5; ++i) sample.values(test::NoteKind::kFrame, 2, "", 1100 + i * 10);
  for (std::uint64_t i = 0; i < 3; ++i) sample.values(test::NoteKind::kFrame, 3, "", 1500 + i * 100);
  sample.values(test::NoteKind::kFrame, 4, "", 1900).exit(1, 2000);
  const auto index = test::index_of(sample);
  engine::Api api({index.get()}, "1");
  simdjson::dom::parser parser;
  const std::string list = api.answer("frames", {}).body;
  const simdjson::dom::element frames = parser.parse(list);
  std::vector<std::string> names;
  for (const auto name : frames["frames"]["name"]) names.emplace_back(std::string_view(name));
  EXPECT_EQ(names, (std::vector<std::string>{"Frame", "audio", "once"}));
  const std::string once = api.answer("frame", {{"set", "2"}, {"target", "1"}}).body;
  const simdjson::dom::element none = parser.parse(once);
  EXPECT_EQ(std::uint64_t(none["durations"]["calls"]), 0U);
  EXPECT_TRUE(none["durations"]["max"].is_null());
  EXPECT_EQ(none["slowest"]["number"].get_array().size(), 0U);
  EXPECT_TRUE(none["next"].is_null());
}

}  // namespace
}  // namespace karst
