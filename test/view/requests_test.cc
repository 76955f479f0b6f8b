// The page's requests against those that `karst requests` finds.
#include "analysis/requests.h"

#include <gtest/gtest.h>
#include <simdjson.h>

#include <string>

#include "format/note.h"
#include "test/view/random_trace.h"
#include "view/api/api.h"

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
  view::Api api({index.get()}, "1");
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
  const view::Reply reply = api.answer("requests", {});
  simdjson::dom::parser parser, other;
  const simdjson::dom::element answer = parser.parse(reply.body);
  EXPECT_EQ(std::uint64_t(answer["count"]), wanted.size());
  ASSERT_EQ(answer["requests"].get_array().size(), wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const simdjson::dom::element here = answer["requests"].at(i);
    Json json;
    json.open('{');
    analysis::write_request(json, trace, analysis::first_ticks(trace), wanted[i]);
    const std::string text = json.close('}').take();
    for (const auto [key, value] : simdjson::dom::object(other.parse(text)))
      EXPECT_EQ(simdjson::minify(here[key]), simdjson::minify(value)) << key;
    EXPECT_EQ(std::string_view(here["id"]), std::to_string(wanted[i].id));
  }
  // The one that has no end, and no begin, lasts as long as its thread's history.
  EXPECT_EQ(std::string_view(answer["requests"].at(0)["id"]), "18446744073709551615");
  const std::int64_t function = answer["requests"].at(0)["function"];
  EXPECT_EQ(index->functions().functions()[static_cast<std::size_t>(function)].name, "main");
}

TEST(ViewRequests, LimitsAndTracesWithoutAny) {
  test::SampleTrace values = served();
  const auto index = test::index_of(values);
  view::Api api({index.get()}, "1");
  simdjson::dom::parser parser;
  const std::string body = api.answer("requests", {{"limit", "3"}}).body;
  const simdjson::dom::element answer = parser.parse(body);
  EXPECT_EQ(std::uint64_t(answer["count"]), 21U);
  EXPECT_EQ(answer["requests"].get_array().size(), 3U);
  EXPECT_EQ(api.answer("requests", {{"limit", "10001"}}).status, 400);
  view::Work stopped;
  stopped.stop = true;
  EXPECT_EQ(api.answer("requests", {{"limit", "4"}}, &stopped).status, 499);

  test::SampleTrace plain;
  plain.process(1, "app", {"main"}).thread(1, "app").call(1, 1000, 2000);
  const auto none = test::index_of(plain);
  EXPECT_EQ(view::Api({none.get()}, "1").answer("requests", {}).body, R"({"count":0,"requests":[]})");
}

}  // namespace
}  // namespace karst
