// Sums of two traces that are compared: what a call is taken to cost is the same in both.
#include <gtest/gtest.h>
#include <simdjson.h>

#include <memory>
#include <string>
#include <vector>

#include "engine/api/api.h"
#include "test/engine/random_trace.h"

namespace karst {
namespace {

/// main lasts 2000 ns and makes four calls of 100 ns. Its process measured that a call costs so many ns.
std::unique_ptr<engine::TraceIndex> trace_with(std::uint32_t cost, std::uint32_t inside, std::uint64_t rate) {
  test::SampleTrace sample;
  sample.process(1, "app", {"main", "leaf"}).costs(cost * format::kCallCostUnit, inside * format::kCallCostUnit);
  sample.ticks_per_second(rate).thread(1, "app").enter(1, 1000);
  for (std::uint64_t call = 0; call < 4; ++call) sample.call(2, 1100 + 200 * call, 1200 + 200 * call);
  sample.exit(1, 3000);
  return test::index_of(sample);
}

double number(engine::Api& api, const char* path, const engine::Parameters& parameters, const char* field) {
  const engine::Reply reply = api.answer(path, parameters);
  EXPECT_EQ(reply.status, 200) << reply.body;
  simdjson::dom::parser parser;
  return parser.parse(reply.body)[field].get_double();
}

TEST(ViewCompare, TakesTheSameOutOfBothTraces) {
  const auto a = trace_with(8, 2, 1'000'000'000), b = trace_with(12, 6, 1'000'000'000);
  engine::Api api({a.get(), b.get()}, "1");
  EXPECT_EQ(number(api, "functions", {}, "busy"), 2000 - 2 - 4 * 8);
  EXPECT_EQ(number(api, "functions", {{"trace", "1"}}, "busy"), 2000 - 6 - 4 * 12);
  EXPECT_EQ(number(api, "functions", {{"b.trace", "1"}}, "busy"), 2000 - 4 - 4 * 10);
  EXPECT_EQ(number(api, "functions", {{"trace", "1"}, {"b.trace", "0"}}, "busy"), 2000 - 4 - 4 * 10);
  for (const char* total : {"total", "total_b"}) {
    EXPECT_EQ(number(api, "flame", {{"b.trace", "1"}}, total), 2000 - 4 - 4 * 10);
    EXPECT_EQ(number(api, "flame", {{"b.trace", "1"}, {"raw", "1"}}, total), 2000);
  }
  // Two parts of one trace have what its process measured.
  EXPECT_EQ(number(api, "flame", {{"b.trace", "0"}}, "total_b"), 2000 - 2 - 4 * 8);
}

TEST(ViewCompare, FindingsAreThoseOfKarstDiff) {
  // Two files of one name, as they may be dropped. Their bytes are read again.
  test::SampleTrace samples[2];
  for (std::uint64_t side = 0; side < 2; ++side) {
    const std::uint64_t begin = 1000 + 50 * side;
    samples[side].process(1, "app", {"main", "leaf"}).thread(1, "app").enter(1, begin);
    for (std::uint64_t call = 1; call <= 8 + 8 * side; ++call)
      samples[side].call(2, begin + 200 * call, begin + 200 * call + 100 + 10 * side);
    samples[side].exit(1, begin + 4000);
  }
  const auto a = test::index_of(samples[0]), b = test::index_of(samples[1]);
  engine::Api api({a.get(), b.get()}, "1");
  const engine::Reply reply = api.answer("findings", {{"b.trace", "1"}});
  ASSERT_EQ(reply.status, 200) << reply.body;
  simdjson::dom::parser parser;
  const simdjson::dom::element answer = parser.parse(reply.body);
  EXPECT_EQ(std::string_view(answer["all"]), "4.000 us in all, before 4.000 us");
  const auto of = [&](const char* key, std::size_t at) { return answer["findings"][key].at(at).value(); };
  EXPECT_EQ(std::string_view(of("words", 0)), "main calls leaf 16 times, before 8: +880 ns (exact)");
  EXPECT_EQ(std::string_view(of("function", 0)), "leaf");
  EXPECT_TRUE(bool(of("certain", 0)));
  EXPECT_EQ(double(of("more", 0)), 880);
  // Runs differ by more than that. Two parts of one trace do not.
  EXPECT_TRUE(std::string_view(of("words", 1)).starts_with("leaf takes 110 ns a call"));
  EXPECT_FALSE(bool(of("certain", 1)));
  EXPECT_EQ(api.answer("findings", {{"b.trace", "2"}}).status, 400);
  engine::Work work;
  work.stop = true;
  EXPECT_EQ(api.answer("findings", {{"b.trace", "1"}, {"raw", "1"}}, &work).status, 499);
}

TEST(ViewCompare, FlowsInOrderAreWithoutThatToo) {
  const auto a = trace_with(8, 2, 1'000'000'000), b = trace_with(12, 6, 1'000'000'000);
  engine::Api api({a.get(), b.get()}, "1");
  // Node by node, then those of b.
  const auto times = [&api](engine::Parameters parameters, const char* field) {
    const engine::Reply reply = api.answer("align", parameters);
    EXPECT_EQ(reply.status, 200) << reply.body;
    simdjson::dom::parser parser;
    const simdjson::dom::element nodes = parser.parse(reply.body)["nodes"];
    std::vector<double> found;
    for (const std::string& name : {std::string(field), std::string(field) + "_b"})
      for (const simdjson::dom::element one : nodes[name]) found.push_back(one.get_double());
    return found;
  };
  const std::vector<double> recorded = {2000, 2000, 100, 100, 100, 100, 2000, 2000, 100, 100, 100, 100};
  // A call costs 10, of which 4 lie inside; all of a thread is without its calls' insides.
  const std::vector<double> without = {1956, 1956, 96, 96, 96, 96, 1956, 1956, 96, 96, 96, 96};
  EXPECT_EQ(times({{"b.trace", "1"}}, "duration"), recorded);
  EXPECT_EQ(times({{"b.trace", "1"}}, "took"), without);
  EXPECT_EQ(times({{"b.trace", "1"}, {"raw", "1"}}, "took"), recorded);
  // One call beside another of the same trace: each without what its process measured.
  const engine::Parameters two = {{"thread", "0"}, {"index", "1"}, {"b.thread", "0"}, {"b.index", "2"}};
  EXPECT_EQ(times(two, "took"), (std::vector<double>{98, 98}));
  EXPECT_EQ(times({{"thread", "0"}, {"index", "0"}, {"b.trace", "1"}, {"b.thread", "0"}, {"b.index", "1"}}, "took"),
            (std::vector<double>{1956, 96, 96, 96, 96, 96, 0, 0, 0, 0}));
}

TEST(ViewCompare, EachHasItsOwnByAnotherClockAndNoneWithoutAnEstimate) {
  const auto a = trace_with(8, 2, 1'000'000'000), other = trace_with(12, 6, 2'000'000'000),
             unknown = trace_with(0, 0, 1'000'000'000);
  engine::Api api({a.get(), other.get(), unknown.get()}, "1");
  EXPECT_EQ(number(api, "flame", {{"b.trace", "1"}}, "total"), 2000 - 2 - 4 * 8);
  EXPECT_EQ(number(api, "flame", {{"b.trace", "1"}}, "total_b"), (2000 - 6 - 4 * 12) / 2);
  EXPECT_EQ(number(api, "flame", {{"b.trace", "2"}}, "total"), 2000);
  EXPECT_EQ(number(api, "functions", {{"b.trace", "2"}}, "busy"), 2000);
}

}  // namespace
}  // namespace karst
