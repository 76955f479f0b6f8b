// api/notes against a plain look at all notes of calls that are rebuilt, and by hand.
#include "engine/api/notes.h"

#include <gtest/gtest.h>
#include <simdjson.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include "analysis/notes.h"
#include "engine/api/api.h"
#include "format/memory.h"
#include "test/engine/cached_index.h"
#include "test/engine/random_notes.h"
#include "test/engine/random_trace.h"

namespace karst {
namespace {

using format::NoteKind;
using test::SampleTrace;

constexpr std::uint32_t kMain = 1;

struct Said {
  std::uint64_t ticks = 0;
  std::uint32_t thread = 0;
  std::uint32_t row = 0;
  std::string kind, group, name, value, line;
};

// All notes in the order of the answer, the oldest first.
std::vector<Said> said_in(const engine::TraceIndex& index) {
  std::vector<Said> all;
  for (std::uint32_t number = 0; number < index.threads().size(); ++number) {
    const reader::Thread& thread = *index.threads()[number].thread;
    const reader::Calls calls = reader::rebuild_calls(index.trace(), thread);
    for (const reader::Note& note : calls.notes) {
      const std::string kind(format::kind_of_note(note.kind).word);
      if (kind == "arguments" || kind == "returned") continue;
      const std::string group = kind == "integer" || kind == "number"               ? "value"
                                : kind.starts_with("request") || kind == "works on" ? "request"
                                : kind == "unknown"                                 ? "other"
                                                                                    : kind;
      all.push_back({note.ticks, number, note.row, kind, group,
                     std::string(analysis::note_name(index.trace(), thread, note)),
                     analysis::note_value(index.trace(), thread, calls, note),
                     analysis::note_line(index.trace(), thread, calls, note)});
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const Said& a, const Said& b) {
    return std::tuple(a.ticks, a.thread) < std::tuple(b.ticks, b.thread);
  });
  return all;
}

class NotesTest : public testing::TestWithParam<std::uint32_t> {
 protected:
  NotesTest() : sample_(test::random_notes(GetParam())), index_(test::index_of(sample_)), all_(said_in(*index_)) {}

  // Those that `wanted` takes, in order, against the answer.
  static void expect_notes(engine::Api& api, const engine::TraceIndex& index, std::vector<Said> all,
                           const engine::Parameters& parameters, const std::function<bool(const Said&)>& wanted,
                           std::size_t limit = 1000) {
    std::erase_if(all, [&](const Said& one) { return !wanted(one); });
    const auto newest = parameters.find("order");
    if (newest != parameters.end() && newest->second == "newest") std::reverse(all.begin(), all.end());
    const engine::Reply reply = api.answer("notes", parameters);
    ASSERT_EQ(reply.status, 200) << reply.body;
    simdjson::dom::parser parser;
    const simdjson::dom::element answer = parser.parse(reply.body);
    EXPECT_EQ(std::uint64_t(answer["count"]), all.size());
    ASSERT_EQ(answer["notes"].get_array().size(), std::min(limit, all.size()));
    std::size_t i = 0;
    for (const auto note : answer["notes"]) {
      const Said& one = all[i++];
      EXPECT_EQ(double(note["time"]), index.since_origin(one.ticks));
      EXPECT_EQ(std::uint64_t(note["thread"]), one.thread);
      EXPECT_EQ(std::string_view(note["kind"]), one.kind);
      EXPECT_EQ(std::string_view(note["group"]), one.group);
      EXPECT_EQ(std::string_view(note["line"]), one.line);
      std::string_view name, value;
      EXPECT_EQ(note["name"].get(name) == simdjson::SUCCESS, !one.name.empty());
      EXPECT_EQ(note["value"].get(value) == simdjson::SUCCESS, !one.value.empty());
      EXPECT_EQ(name, one.name);
      EXPECT_EQ(value, one.value);
      ASSERT_NE(one.row, reader::kNoParent);
      EXPECT_EQ(std::uint64_t(note["index"]), one.row);
      EXPECT_EQ(std::uint64_t(note["function"]), index.function_of(index.threads()[one.thread], one.row));
    }
  }
  void expect_notes(const engine::Parameters& parameters, const std::function<bool(const Said&)>& wanted,
                    std::size_t limit = 1000) {
    expect_notes(api_, *index_, all_, parameters, wanted, limit);
  }

  SampleTrace sample_;
  std::unique_ptr<engine::TraceIndex> index_;
  std::vector<Said> all_;
  engine::Api api_{{index_.get()}, "1"};
};

TEST_P(NotesTest, AreAllThatThreadsSayInOrderOfTime) {
  ASSERT_GT(all_.size(), 500U);
  ASSERT_LT(all_.size(), 5000U);
  expect_notes(
      {{"limit", "10000"}}, [](const Said&) { return true; }, 10'000);
  expect_notes(
      {{"limit", "10000"}, {"order", "newest"}}, [](const Said&) { return true; }, 10'000);
  expect_notes(
      {{"limit", "7"}}, [](const Said&) { return true; }, 7);
  expect_notes(
      {{"limit", "7"}, {"order", "newest"}}, [](const Said&) { return true; }, 7);
  expect_notes(
      {{"limit", "0"}}, [](const Said&) { return true; }, 0);
}

TEST_P(NotesTest, OfARangeOfThreadsOfKindsAndWithAText) {
  const double span = index_->since_origin(index_->last_ticks());
  const double begin = std::floor(span / 3), end = std::floor(span / 2);
  const auto in_range = [&](const Said& one) {
    const double time = index_->since_origin(one.ticks);
    return time >= begin && time < end;
  };
  const std::string from = std::to_string(begin), to = std::to_string(end);
  expect_notes({{"begin", from}, {"end", to}}, in_range);
  expect_notes({{"begin", from}, {"end", to}, {"order", "newest"}, {"limit", "9"}}, in_range, 9);
  expect_notes({{"threads", "0,2"}}, [](const Said& one) { return one.thread != 1; });
  expect_notes({{"threads", "3"}}, [](const Said&) { return false; });
  for (const char* group : {"message", "value", "frame", "request", "text", "record", "other"})
    expect_notes({{"kind", group}}, [&](const Said& one) { return one.group == group; });
  expect_notes(
      {{"kind", "frame,text"}, {"limit", "3"}, {"order", "newest"}},
      [](const Said& one) { return one.group == "frame" || one.group == "text"; }, 3);
  const auto has = [](const char* text) {
    return [text](const Said& one) { return one.line.find(text) != std::string::npos; };
  };
  expect_notes({{"q", "LINE 1"}}, has("Line 1"));
  expect_notes({{"q", "cache IS"}}, has("cache is full"));
  expect_notes({{"q", "length = 1"}}, has("length = 1"));
  expect_notes({{"q", "on request 4"}}, has("on request 4"));
  expect_notes({{"q", "nobody says this"}}, [](const Said&) { return false; });
  expect_notes(
      {{"q", "line 2"}, {"kind", "message"}, {"begin", from}, {"end", to}, {"threads", "1"}, {"limit", "2"}},
      [&](const Said& one) { return in_range(one) && one.thread == 1 && has("Line 2")(one); }, 2);
}

TEST_P(NotesTest, OfACallAreThoseMadeInIt) {
  const engine::CallColumns& calls = index_->threads()[1].calls;
  std::size_t with_notes = 0;
  for (std::uint32_t row = 1; row < 60; ++row) {
    ASSERT_EQ(calls.depth[row], 1);
    const auto made_in = [&](const Said& one) { return one.thread == 1 && one.row == row; };
    with_notes += std::any_of(all_.begin(), all_.end(), made_in) ? 1 : 0;
    expect_notes({{"thread", "1"}, {"index", std::to_string(row)}}, made_in);
  }
  EXPECT_GT(with_notes, 20U);
  expect_notes({{"thread", "1"}, {"index", "0"}}, [](const Said& one) { return one.thread == 1; });
}

TEST_P(NotesTest, MarksAddUpWhatPixelsHave) {
  const double span = index_->since_origin(index_->last_ticks());
  const double begin = std::floor(span / 4), end = std::floor(span * 3 / 4);
  for (const std::uint32_t width : {1U, 40U, 8192U}) {
    const engine::Reply reply = api_.answer("notes", {{"begin", std::to_string(begin)},
                                                      {"end", std::to_string(end)},
                                                      {"kind", "message"},
                                                      {"threads", "0,2"},
                                                      {"width", std::to_string(width)}});
    ASSERT_EQ(reply.status, 200) << reply.body;
    simdjson::dom::parser parser;
    const simdjson::dom::element answer = parser.parse(reply.body);
    EXPECT_FALSE(bool(answer["truncated"]));
    const simdjson::dom::array marks = answer["marks"];
    std::size_t next = 0;
    std::uint64_t count = 0;
    for (const std::uint32_t thread : {0U, 2U}) {
      std::vector<std::vector<const Said*>> pixels(width);
      for (const Said& one : all_) {
        const double time = index_->since_origin(one.ticks);
        if (one.thread != thread || one.group != "message" || time < begin || time >= end) continue;
        pixels[static_cast<std::size_t>((time - begin) * width / (end - begin))].push_back(&one);
        ++count;
      }
      for (const auto& pixel : pixels) {
        if (pixel.empty()) continue;
        ASSERT_LT(next, marks.size());
        const simdjson::dom::element mark = marks.at(next++);
        EXPECT_EQ(std::uint64_t(mark["thread"]), thread);
        EXPECT_EQ(std::uint64_t(mark["count"]), pixel.size());
        EXPECT_EQ(double(mark["time"]), index_->since_origin(pixel.front()->ticks));
        EXPECT_EQ(double(mark["last"]), index_->since_origin(pixel.back()->ticks));
        EXPECT_EQ(std::string_view(mark["line"]), pixel.front()->line);
        EXPECT_EQ(std::uint64_t(mark["index"]), pixel.front()->row);
      }
    }
    EXPECT_EQ(next, marks.size());
    EXPECT_EQ(std::uint64_t(answer["count"]), count);
    EXPECT_GT(count, 20U);
  }
}

/// What a plot is made of.
struct Point {
  std::uint64_t ticks = 0;
  double value = 0;
};

// By pixel: least, most, how many, and the last one; before the first pixel the last of all before.
void expect_plot(engine::Api& api, const engine::TraceIndex& index, std::size_t number, std::string_view name,
                 const std::vector<Point>& points) {
  simdjson::dom::parser parser;
  const std::string list = api.answer("plots", {}).body;
  const simdjson::dom::element plots = parser.parse(list)["plots"];
  ASSERT_EQ(plots.get_array().size(), 2U);
  EXPECT_EQ(std::string_view(plots.at(number)["name"]), name);
  EXPECT_EQ(std::uint64_t(plots.at(number)["count"]), points.size());
  const auto [least, most] = std::minmax_element(points.begin(), points.end(),
                                                 [](const Point& a, const Point& b) { return a.value < b.value; });
  EXPECT_EQ(double(plots.at(number)["min"]), least->value);
  EXPECT_EQ(double(plots.at(number)["max"]), most->value);
  const double span = index.since_origin(index.last_ticks());
  const double begin = std::floor(span / 4), end = std::floor(span * 3 / 4);
  for (const std::uint32_t width : {1U, 50U, 3000U}) {
    const std::string body = api.answer("plots", {{"begin", std::to_string(begin)},
                                                  {"end", std::to_string(end)},
                                                  {"plot", std::to_string(number)},
                                                  {"width", std::to_string(width)}})
                                 .body;
    const simdjson::dom::element plot = parser.parse(body)["plots"].at(0);
    std::vector<std::vector<double>> pixels(width);
    const Point* before = nullptr;
    for (const Point& one : points) {
      const double time = index.since_origin(one.ticks);
      if (time >= end) continue;
      if (time < begin) {
        before = &one;
      } else {
        pixels[static_cast<std::size_t>((time - begin) / (end - begin) * width)].push_back(one.value);
      }
    }
    ASSERT_NE(before, nullptr);
    EXPECT_EQ(double(plot["before"]), before->value);
    std::size_t next = 0;
    for (std::uint32_t pixel = 0; pixel < width; ++pixel) {
      const std::vector<double>& values = pixels[pixel];
      if (values.empty()) continue;
      ASSERT_LT(next, plot["at"].get_array().size());
      EXPECT_EQ(std::uint64_t(plot["at"].at(next)), pixel);
      EXPECT_EQ(std::uint64_t(plot["count"].at(next)), values.size());
      EXPECT_EQ(double(plot["last"].at(next)), values.back());
      EXPECT_EQ(double(plot["min"].at(next)), *std::min_element(values.begin(), values.end()));
      EXPECT_EQ(double(plot["max"].at(next++)), *std::max_element(values.begin(), values.end()));
    }
    EXPECT_EQ(next, plot["at"].get_array().size());
    EXPECT_GT(next, 0U);
  }
}

TEST_P(NotesTest, PlotsAreThoseOfTheValues) {
  std::vector<Point> points;
  for (const Said& one : all_)
    if (one.group == "value") points.push_back({one.ticks, std::stod(one.value)});
  expect_plot(api_, *index_, 1, "queue length", points);
}

// A frame's time stands where it ends, whichever threads marked its ends.
TEST_P(NotesTest, PlotsOfFramesAreHowLongTheyTook) {
  std::vector<Point> points;
  const Said* before = nullptr;
  for (const Said& one : all_) {
    if (one.group != "frame") continue;
    if (before != nullptr)
      points.push_back(
          {one.ticks, static_cast<double>(index_->trace().clock().to_ns(one.ticks - before->ticks)) / 1e6});
    before = &one;
  }
  expect_plot(api_, *index_, 0, "frame main (ms)", points);
}

// What calls were given is found by its values, not by the function's name, and only when it is asked for.
TEST_P(NotesTest, ValuesOfCallsAreFoundWhenTheyAreAskedFor) {
  std::vector<std::pair<double, std::string>> given, said;
  for (const engine::ThreadIndex& thread : index_->threads()) {
    const reader::Calls calls = reader::rebuild_calls(index_->trace(), *thread.thread);
    for (const reader::Note& note : calls.notes) {
      const bool is_given = note.kind == static_cast<std::uint32_t>(NoteKind::kArguments);
      (is_given ? given : said)
          .emplace_back(index_->since_origin(note.ticks),
                        analysis::note_line(index_->trace(), *thread.thread, calls, note));
    }
  }
  ASSERT_GT(given.size(), 100U);
  simdjson::dom::parser parser;
  const auto count = [&](const engine::Parameters& parameters) {
    const engine::Reply reply = api_.answer("notes", parameters);
    EXPECT_EQ(reply.status, 200) << reply.body;
    return std::uint64_t(parser.parse(reply.body)["count"]);
  };
  EXPECT_EQ(count({}), said.size());
  EXPECT_EQ(count({{"kind", "call"}}), given.size());
  EXPECT_EQ(count({{"kind", "call"}, {"q", "WORK(INT)"}}), 0U);
  EXPECT_EQ(count({{"kind", "call"}, {"q", "N=1"}}), given.size()) << given.front().second;
  EXPECT_EQ(count({{"kind", "call"}, {"q", "n=7"}}), 0U);
  // With others they lie in one order of time.
  const std::string body =
      api_.answer("notes", {{"kind", "message,value,frame,request,text,record,call,other"}, {"limit", "10000"}}).body;
  const simdjson::dom::element all = parser.parse(body);
  EXPECT_EQ(std::uint64_t(all["count"]), given.size() + said.size());
  std::vector<std::pair<double, std::string>> expected = given, found;
  expected.insert(expected.end(), said.begin(), said.end());
  double last = -1;
  for (const auto note : all["notes"]) {
    EXPECT_LE(last, double(note["time"]));
    last = double(note["time"]);
    EXPECT_EQ(std::string_view(note["group"]) == "call", std::string_view(note["kind"]) == "arguments");
    found.emplace_back(last, std::string_view(note["line"]));
  }
  std::sort(expected.begin(), expected.end());
  std::sort(found.begin(), found.end());
  EXPECT_EQ(found, expected);
}

TEST_P(NotesTest, TheTraceCountsThem) {
  const std::string body = api_.answer("trace", {}).body;
  simdjson::dom::parser parser;
  const simdjson::dom::array threads = parser.parse(body)["threads"];
  for (std::uint32_t number = 0; number < 3; ++number)
    for (const auto [group, count] : simdjson::dom::object(threads.at(number)["notes"]))
      EXPECT_EQ(std::uint64_t(count),
                static_cast<std::uint64_t>(std::count_if(
                    all_.begin(), all_.end(),
                    [&, of = group](const Said& one) { return one.thread == number && one.group == of; })))
          << group;
  EXPECT_EQ(threads.at(0)["notes"].get_object().size(), format::kNoteGroups);
  EXPECT_TRUE(threads.at(3)["notes"].is_null());
}

INSTANTIATE_TEST_SUITE_P(Seeds, NotesTest, testing::Values(1, 2));

class NotesOfACache : public NotesTest {};

// An index from a cache knows how many notes there are, and reads their threads again for the notes themselves.
TEST_P(NotesOfACache, AreTheSame) {
  const test::CachedIndex index(sample_, "karst-notes");
  for (std::size_t number = 0; number < 4; ++number)
    EXPECT_EQ(index->threads()[number].notes, index_->threads()[number].notes);
  engine::Api api({index.get()}, "1");
  engine::Work stopped;
  stopped.stop = true;
  EXPECT_EQ(api.answer("notes", {{"q", "x"}}, &stopped).status, 499);
  expect_notes(
      api, *index, all_, {{"limit", "10000"}}, [](const Said&) { return true; }, 10'000);
  expect_notes(api, *index, all_, {{"q", "text OF"}}, [](const Said& one) { return one.group == "text"; });
}

INSTANTIATE_TEST_SUITE_P(Seeds, NotesOfACache, testing::Values(3));

// Texts are the program's: whatever bytes, of whatever length.
TEST(ViewNotes, HostileTexts) {
  SampleTrace made;
  const std::string umlauts = [] {
    std::string text;
    for (int i = 0; i < 3000; ++i) text += "\u00e4";
    return text;
  }();
  made.process(1, "app", {"main", "a" + umlauts});
  made.thread(1, "app").values(NoteKind::kMessage, 0, "before any call", 900).enter(kMain, 1000);
  made.values(NoteKind::kMessage, 0, "<b>\n\x1b[31m\"\\\xff", 1100);
  made.values(NoteKind::kInteger, 2, "\1", 1200).exit(kMain, 2000);
  const auto index = test::index_of(made);
  engine::Api api({index.get()}, "1");
  simdjson::dom::parser parser;
  const std::string body = api.answer("notes", {}).body;
  const simdjson::dom::array notes = parser.parse(body)["notes"];
  ASSERT_EQ(notes.size(), 3U);
  EXPECT_EQ(notes.at(0)["index"].error(), simdjson::NO_SUCH_FIELD);
  EXPECT_EQ(std::string_view(notes.at(1)["line"]), "<b>\n\x1b[31m\"\\\xef\xbf\xbd");
  EXPECT_EQ(std::uint64_t(notes.at(1)["index"]), 0U);
  // Cut between two letters: "a" and 999 of two bytes, and the sign that there is more.
  EXPECT_EQ(std::string_view(notes.at(2)["name"]), "a" + umlauts.substr(0, 1998) + "\u2026");
  const std::string marks = api.answer("notes", {{"width", "1"}, {"begin", "250"}, {"end", "400"}}).body;
  EXPECT_EQ(std::string_view(parser.parse(marks)["marks"].at(0)["line"]), "a" + umlauts.substr(0, 198) + "\u2026");
}

TEST(ViewNotes, AClockThatRanBackwards) {
  SampleTrace made;
  made.process(1, "app", {"main"}).thread(1, "app").enter(kMain, 1000);
  for (const std::uint64_t at : {1500, 1300, 1400, 1200}) made.values(NoteKind::kMessage, 0, std::to_string(at), at);
  made.exit(kMain, 2000);
  const auto index = test::index_of(made);
  simdjson::dom::parser parser;
  const std::string body = engine::Api({index.get()}, "1").answer("notes", {{"begin", "450"}, {"end", "550"}}).body;
  std::vector<std::string> lines;
  for (const auto note : parser.parse(body)["notes"]) lines.emplace_back(std::string_view(note["line"]));
  // Held at the latest time so far, in the order of their making.
  EXPECT_EQ(lines, (std::vector<std::string>{"1500", "1300", "1400", "1200"}));
}

TEST(ViewNotes, PlotsOfOddValues) {
  SampleTrace made;
  made.process(1, "app", {"main", "b", "a"}).thread(1, "app").enter(kMain, 1000);
  const auto number = [&](double value, std::uint64_t at) {
    std::string bytes(8, '\0');
    std::memcpy(bytes.data(), &value, 8);
    made.values(NoteKind::kNumber, 2, bytes, at);
  };
  number(-2.5, 1100);
  number(std::nan(""), 1200);
  number(HUGE_VAL, 1300);
  number(0.125, 1400);
  made.values(NoteKind::kInteger, 3, std::string(8, '\xff'), 1500).exit(kMain, 2000);
  const auto index = test::index_of(made);
  engine::Api api({index.get()}, "1");
  EXPECT_EQ(api.answer("plots", {}).body, R"({"plots":[{"process":0,"name":"a","count":1,"min":-1,"max":-1},)"
                                          R"({"process":0,"name":"b","count":2,"min":-2.5,"max":0.125}]})");
  EXPECT_EQ(
      api.answer("plots", {{"begin", "0"}, {"end", "1000"}, {"width", "10"}, {"plot", "1"}}).body,
      R"({"plots":[{"plot":1,"before":null,"at":[1,4],"count":[1,1],"min":[-2.5,0.125],"max":[-2.5,0.125],"last":[-2.5,0.125]}]})");
  EXPECT_EQ(api.answer("plots", {{"width", "10"}, {"plot", "2"}}).status, 400);
  EXPECT_EQ(api.answer("plots", {{"width", "0"}}).status, 400);
  std::string many = "0";
  for (int i = 0; i < 50; ++i) many += ",0";
  EXPECT_EQ(api.answer("plots", {{"width", "8192"}, {"plot", many}}).status, 400);
}

TEST(ViewNotes, MemoryIsAPlotOfWhatLives) {
  SampleTrace made;
  made.process(1, "app", {"main", "malloc", "free"});
  const auto record = [&](std::uint32_t name, const std::string& bytes, std::uint64_t at) {
    made.values(NoteKind::kRecord, name, bytes + '\xff', at);
  };
  made.notes(2, format::kAllocated).notes(3, format::kFreed);
  // 1 MiB, 3 MiB, and the first one is freed by another thread.
  made.thread(1, "app").enter(kMain, 1000);
  record(2, std::string("\3\0\0\x10\1\x10", 6), 1100);
  record(2, std::string("\3\0\0\x30\1\x20", 6), 1300);
  made.exit(kMain, 2000).thread(2, "other").enter(kMain, 1000);
  record(3, "\1\x10", 1500);
  made.exit(kMain, 2000);
  const auto index = test::index_of(made);
  engine::Api api({index.get()}, "1");
  EXPECT_EQ(api.answer("plots", {}).body,
            R"_({"plots":[{"process":0,"name":"living memory (MiB)","count":3,"min":1,"max":4}]})_");
  EXPECT_EQ(api.answer("plots", {{"begin", "200"}, {"end", "1000"}, {"width", "8"}, {"plot", "0"}}).body,
            R"({"plots":[{"plot":0,"before":1,"at":[1,3],"count":[1,1],"min":[4,3],"max":[4,3],"last":[4,3]}]})");
}

TEST(ViewNotes, MarksHaveALimit) {
  SampleTrace made;
  made.process(1, "app", {"main"});
  for (std::uint32_t tid = 1; tid <= 3; ++tid) {
    made.thread(tid, "app").enter(kMain, 1000);
    for (std::uint64_t i = 0; i < 8192; ++i) made.values(NoteKind::kMessage, kMain, "", 1000 + i);
    made.exit(kMain, 1000 + 8192);
  }
  const auto index = test::index_of(made);
  engine::Api api({index.get()}, "1");
  simdjson::dom::parser parser;
  const auto ask = [&](const char* threads) {
    return std::string(
        api.answer("notes", {{"begin", "0"}, {"end", "8192"}, {"width", "8192"}, {"threads", threads}}).body);
  };
  const std::string two = ask("0,1"), three = ask("0,1,2");
  EXPECT_EQ(parser.parse(two)["marks"].get_array().size(), 16384U);
  EXPECT_FALSE(bool(parser.parse(two)["truncated"]));
  EXPECT_EQ(parser.parse(three)["marks"].get_array().size(), engine::kMaxNoteMarks);
  EXPECT_TRUE(bool(parser.parse(three)["truncated"]));
}

TEST(ViewNotes, QuestionsThatMakeNoSenseAndTracesWithoutAny) {
  SampleTrace made = test::random_notes(1, 10);
  const auto index = test::index_of(made);
  engine::Api api({index.get()}, "1");
  const auto status = [&](const engine::Parameters& parameters) { return api.answer("notes", parameters).status; };
  EXPECT_EQ(status({{"limit", "10000"}}), 200);
  EXPECT_EQ(status({{"limit", "10001"}}), 400);
  EXPECT_EQ(status({{"kind", "message,frame"}}), 200);
  EXPECT_EQ(status({{"kind", "messages"}}), 400);
  EXPECT_EQ(status({{"order", "time"}}), 400);
  EXPECT_EQ(status({{"width", "0"}}), 400);
  EXPECT_EQ(status({{"width", "8193"}}), 400);
  EXPECT_EQ(status({{"width", "5"}, {"begin", "7"}, {"end", "7"}}), 400);
  EXPECT_EQ(status({{"thread", "0"}, {"index", "100000"}}), 400);
  EXPECT_EQ(status({{"threads", "4"}}), 400);

  SampleTrace plain;
  plain.process(1, "app", {"main"}).thread(1, "app").call(1, 1000, 2000);
  const auto none = test::index_of(plain);
  EXPECT_EQ(engine::Api({none.get()}, "1").answer("notes", {}).body, R"({"count":0,"notes":[]})");
  EXPECT_EQ(engine::Api({none.get()}, "1").answer("notes", {{"width", "9"}}).body,
            R"({"count":0,"truncated":false,"marks":[]})");
}

}  // namespace
}  // namespace karst
