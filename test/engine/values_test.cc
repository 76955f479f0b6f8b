// Arguments and returned values in the answers of the Api, against analysis/values.h and by hand.
#include "analysis/values.h"

#include <gtest/gtest.h>
#include <simdjson.h>

#include <random>
#include <string>

#include "engine/api/api.h"
#include "engine/api/values.h"
#include "format/note.h"
#include "format/values.h"
#include "test/engine/cached_index.h"
#include "test/engine/random_trace.h"

namespace karst {
namespace {

using format::NoteKind;
using test::SampleTrace;

constexpr std::uint32_t kMain = 1, kOpen = 2, kPlain = 3, kPoint = 4;

std::string text_value(const std::string& text) { return static_cast<char>(text.size()) + text; }

// main() { open() plain() point() ... } by two threads; open() has a text and a number, point() a structure.
SampleTrace sample(int rounds = 20) {
  SampleTrace made;
  made.process(1, "app", {"main", "open(char const*, int)", "plain", "point()", "never(int)"});
  made.function(kOpen).values = "path:s,flags:i4|:i4";
  made.function(kPoint).values = "|x:i4,y:u4";
  made.function(5).values = "n:i4|";
  std::mt19937 random(5);
  for (std::uint32_t tid = 1; tid <= 2; ++tid) {
    std::uint64_t now = 1000;
    made.thread(tid, "app").enter(kMain, now);
    for (int i = 0; i < rounds; ++i) {
      const auto later = [&] { return now += 1 + random() % 50; };
      const std::string path =
          i == 3 ? "<img src=x onerror=alert(1)>\n\x1b[31m\"\x01\xff" : "/etc/" + std::to_string(i);
      made.values(NoteKind::kArguments, kOpen,
                  text_value(path) + '\4' + std::string("\xfe\xff\xff\xff", 4) + static_cast<char>(format::kValuesEnd),
                  later());
      made.enter(kOpen, later()).call(kPlain, later(), later());
      made.values(NoteKind::kReturned, kOpen,
                  '\1' + std::string(1, static_cast<char>(i)) + static_cast<char>(format::kValuesEnd), later());
      made.exit(kOpen, later());
      made.enter(kPoint, later());
      if (i % 4 != 0)
        made.values(NoteKind::kReturned, kPoint, SampleTrace::two_integers(static_cast<std::uint32_t>(i), 7), later());
      made.exit(kPoint, later());
    }
    made.exit(kMain, now + 10);
  }
  return made;
}

analysis::NamedValues values_of(const simdjson::dom::element& call) {
  analysis::NamedValues found;
  for (const std::string key : {"arguments", "returned"}) {
    simdjson::dom::array names;
    if (call[key]["name"].get(names) != simdjson::SUCCESS) continue;
    for (std::size_t i = 0; i < names.size(); ++i) {
      std::string name{std::string_view(names.at(i))};
      if (key == "returned") name = name.empty() ? "returned" : "returned " + name;
      found.emplace_back(name, std::string{std::string_view(call[key]["text"].at(i))});
    }
  }
  return found;
}

// What analysis/values.h says of a thread's calls that are read anew.
std::vector<analysis::NamedValues> said_of(const engine::TraceIndex& index, const engine::ThreadIndex& thread) {
  const reader::Calls calls = reader::rebuild_calls(index.trace(), *thread.thread);
  const analysis::CallValues values(calls);
  std::vector<analysis::NamedValues> said;
  for (std::uint32_t row = 0; row < calls.size(); ++row) {
    said.push_back(values.named(index.trace(), *thread.thread, row));
    // JSON has a sign of its own for what is no UTF-8.
    for (auto& [name, text] : said.back())
      if (const auto at = text.find('\xff'); at != std::string::npos) text.replace(at, 1, "\xef\xbf\xbd");
  }
  return said;
}

void expect_what_is_said(const engine::TraceIndex& index) {
  engine::Api api({&index}, "1");
  simdjson::dom::parser parser;
  std::size_t with_values = 0;
  for (std::size_t number = 0; number < index.threads().size(); ++number) {
    const auto said = said_of(index, index.threads()[number]);
    ASSERT_EQ(said.size(), index.threads()[number].calls.size());
    std::string all;
    for (std::uint32_t row = 0; row < said.size(); ++row) {
      const std::string place = std::to_string(row);
      all += (all.empty() ? "" : ",") + place;
      const engine::Reply reply = api.answer("call", {{"thread", std::to_string(number)}, {"index", place}});
      ASSERT_EQ(reply.status, 200) << reply.body;
      EXPECT_EQ(values_of(parser.parse(reply.body)), said[row]) << row;
      with_values += said[row].empty() ? 0 : 1;
    }
    const engine::Reply reply = api.answer("values", {{"thread", std::to_string(number)}, {"index", all}});
    ASSERT_EQ(reply.status, 200) << reply.body;
    std::uint32_t next = 0;
    const auto expect_none_until = [&](std::uint32_t row) {
      for (; next < row; ++next) EXPECT_TRUE(said[next].empty()) << next;
    };
    for (const auto call : parser.parse(reply.body)["calls"]) {
      const auto row = static_cast<std::uint32_t>(std::uint64_t(call["index"]));
      expect_none_until(row);
      EXPECT_EQ(values_of(call), said[next++]) << row;
    }
    expect_none_until(static_cast<std::uint32_t>(said.size()));
  }
  EXPECT_EQ(with_values, 2U * (20 + 15));
}

TEST(ViewValues, AreThoseOfTheCall) {
  SampleTrace made = sample();
  const auto index = test::index_of(made);
  expect_what_is_said(*index);
  // By hand: main is call 0, the fourth open() call 10.
  engine::Api api({index.get()}, "1");
  const std::string body = api.answer("values", {{"thread", "1"}, {"index", "10,0,12"}}).body;
  EXPECT_EQ(body, R"({"calls":[{"arguments":{"name":["path","flags"],)"
                  R"("text":["\"<img src=x onerror=alert(1)>\\n\\x1b[31m\\\"\\x01)"
                  "\xef\xbf\xbd"
                  R"(\"","-2"]},"returned":{"name":[""],"text":["3"]},"index":10},)"
                  R"({"arguments":{"name":[],"text":[]},"returned":{"name":["x","y"],"text":["3","7"]},"index":12}]})");
}

TEST(ViewValues, TheTraceNamesFunctionsThatHaveThem) {
  SampleTrace made = sample();
  const auto index = test::index_of(made);
  simdjson::dom::parser parser;
  const std::string body = engine::Api({index.get()}, "1").answer("trace", {}).body;
  std::vector<std::string> names;
  for (const auto number : parser.parse(body)["values"])
    names.push_back(index->functions().functions()[std::uint64_t(number)].name);
  EXPECT_EQ(names, (std::vector<std::string>{"open(char const*, int)", "point()"}));
}

// An index from a cache has columns and no notes.
TEST(ViewValues, AreReadAgainForAnIndexOfTheCache) {
  SampleTrace made = sample();
  const test::CachedIndex index(made, "karst-values");
  expect_what_is_said(*index);
  // One who does not wait gets none, and the next one does.
  engine::Api api({index.get()}, "1");
  engine::Work stopped;
  stopped.stop = true;
  EXPECT_EQ(api.answer("values", {{"thread", "0"}, {"index", "1"}}, &stopped).status, 499);
  EXPECT_NE(api.answer("values", {{"thread", "0"}, {"index", "1"}}).body.find("/etc/0"), std::string::npos);
}

TEST(ViewValues, TracesWithoutAnySayNothingOfThem) {
  auto made = test::random_index({.seed = 3, .threads = 2, .calls = 500});
  engine::Api api({made.index.get()}, "1");
  EXPECT_NE(api.answer("trace", {}).body.find("\"values\":[]"), std::string::npos);
  for (const char* words : {R"("arguments":{"name":[],"text":[]})", R"("returned":{"name":[],"text":[]})"})
    EXPECT_NE(api.answer("call", {{"thread", "0"}, {"index", "5"}}).body.find(words), std::string::npos);
  EXPECT_EQ(api.answer("values", {{"thread", "0"}, {"index", "1,2"}}).body, R"({"calls":[]})");
}

TEST(ViewValues, QuestionsThatMakeNoSense) {
  SampleTrace made = sample();
  const auto index = test::index_of(made);
  engine::Api api({index.get()}, "1");
  const auto status = [&](const engine::Parameters& parameters) { return api.answer("values", parameters).status; };
  std::string many = "0";
  for (std::size_t i = 1; i < engine::kMostValues; ++i) many += ",0";
  EXPECT_EQ(status({{"thread", "1"}, {"index", many}}), 200);
  EXPECT_EQ(status({{"thread", "1"}, {"index", many + ",0"}}), 400);
  EXPECT_EQ(status({{"thread", "2"}, {"index", "0"}}), 400);
  EXPECT_EQ(status({{"thread", "0"}, {"index", "100000"}}), 400);
  EXPECT_EQ(status({{"thread", "0"}, {"index", "x"}}), 400);
  EXPECT_EQ(status({{"thread", "0"}}), 400);
  EXPECT_EQ(status({{"index", "0"}}), 400);
}

}  // namespace
}  // namespace karst
