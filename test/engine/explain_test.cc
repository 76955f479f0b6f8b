// The page's explanations against those that `karst explain` makes of calls that it rebuilds: field by field the same.
#include <gtest/gtest.h>
#include <simdjson.h>

#include <memory>
#include <string>

#include "analysis/tracing_cost.h"
#include "answers/explanation.h"
#include "engine/api/api.h"
#include "engine/api/rows.h"
#include "format/trace.h"
#include "test/analysis/sample_states.h"
#include "test/engine/random_trace.h"
#include "words/explanation.h"

namespace karst {
namespace {

using simdjson::dom::element;

/// As cli/commands/explain.cc does it, in the page's form.
std::string command(const engine::TraceIndex& index, const reader::Thread& thread, std::uint32_t row, bool raw) {
  const reader::Trace& trace = index.trace();
  const auto calls_of = [&](const reader::Thread& of) {
    reader::Calls calls = reader::rebuild_calls(trace, of);
    if (!raw) analysis::take_cost_out(calls, trace.processes()[of.process].cost, std::nullopt);
    return calls;
  };
  const reader::Calls calls = calls_of(thread);
  const columns::CallColumns columns(calls);
  const analysis::CallRef call{&thread, row, columns.time(row), calls.begin[row], columns.end(row)};
  analysis::Explainer explainer(trace, call, calls.function[row]);
  std::unique_ptr<analysis::Waits> waits;
  if (!trace.states().empty()) waits = std::make_unique<analysis::Waits>(trace, 0);
  for (const bool learn : {true, false}) {
    for (const reader::Process& process : trace.processes()) {
      for (const reader::Thread& of : process.threads) {
        const reader::Calls its = calls_of(of);
        if (learn) explainer.learn(of, columns::CallColumns(its));
        if (!learn) explainer.compare(of, columns::CallColumns(its), waits.get());
      }
    }
  }
  reader::Calls others;
  const auto all_of = [&](const reader::Thread& of) {
    others = reader::rebuild_calls(trace, of);
    return columns::CallColumns(others);
  };
  const words::ExplainedCall explained(
      {trace, call, calls.function[row], analysis::first_ticks(trace), waits.get(), all_of}, explainer,
      explainer.take());
  const answers::Explained rows(explained);
  const answers::ExplanationRow row_of{rows};
  Json json;
  json.open('{');
  engine::write_row(json, index, answers::explanations(), &row_of);
  json.close('}');
  return json.take();
}

/// All that `want` has but locks, which the page tells elsewhere, is in `have`, too, and is the same. `have` may say
/// more.
void says(element want, element have, const std::string& where) {
  if (want.is_object()) {
    for (const auto [key, value] : simdjson::dom::object(want)) {
      if (key == "lock_waits") continue;
      element other;
      ASSERT_EQ(have[key].get(other), simdjson::SUCCESS) << where << "." << key;
      says(value, other, where + "." + std::string(key));
    }
  } else if (want.is_array()) {
    ASSERT_EQ(simdjson::dom::array(want).size(), simdjson::dom::array(have).size()) << where;
    for (std::size_t i = 0; i < simdjson::dom::array(want).size(); ++i)
      says(want.at(i), have.at(i), where + "[" + std::to_string(i) + "]");
  } else {
    EXPECT_EQ(simdjson::minify(want), simdjson::minify(have)) << where;
  }
}

struct Shape {
  std::uint32_t seed;
  bool states, costs;
  std::uint32_t processes;
};

class ExplainTest : public testing::TestWithParam<Shape> {
 protected:
  ExplainTest() {
    const Shape& shape = GetParam();
    test::fill_random(sample_, {.seed = shape.seed,
                                .threads = 3,
                                .calls = 1500,
                                .open_ends = shape.seed % 2 == 1,
                                .processes = shape.processes});
    if (shape.states) sample_.states(test::random_states(shape.seed, 100, {100, 101, 102}, 2'000, 900'000, 2'000));
    if (shape.costs) sample_.costs(2 * format::kCallCostUnit, format::kCallCostUnit / 2);
    index_ = test::index_of(sample_);
    api_ = std::make_unique<engine::Api>(std::vector<const engine::TraceIndex*>{index_.get()}, "1");
  }
  engine::Reply ask(std::size_t thread, std::size_t row, bool raw = false) {
    engine::Parameters parameters{{"thread", std::to_string(thread)}, {"index", std::to_string(row)}};
    if (raw) parameters.emplace("raw", "1");
    return api_->answer("explain", parameters);
  }

  test::SampleTrace sample_;
  std::unique_ptr<engine::TraceIndex> index_;
  std::unique_ptr<engine::Api> api_;
};

TEST_P(ExplainTest, SaysWhatTheCommandSays) {
  std::mt19937 random(GetParam().seed);
  simdjson::dom::parser parser, other;
  int told = 0, causes = 0, waits = 0;
  for (int i = 0; i < 60; ++i) {
    const std::size_t number = random() % index_->threads().size();
    const engine::ThreadIndex& thread = index_->threads()[number];
    const auto row = static_cast<std::uint32_t>(random() % thread.calls.size());
    const engine::Reply reply = ask(number, row, i % 5 == 0);
    if (!columns::is_complete(thread.calls.marks[row])) {
      EXPECT_EQ(reply.status, 404);
      continue;
    }
    ASSERT_EQ(reply.status, 200) << reply.body;
    const std::string want = command(*index_, *thread.thread, row, i % 5 == 0);
    const element here = other.parse(reply.body);
    says(parser.parse(want), here, "");
    ++told;
    const element all = here["causes"];
    for (const element cause : all.get_array()) {
      ++causes;
      const auto of = [&](const char* key) { return cause[key].value(); };
      if (std::string_view(of("kind")) == "missing") {
        EXPECT_TRUE(of("at").is_null());
        continue;
      }
      // It is a call within the explained one, and the path to it is the cause's.
      ASSERT_FALSE(of("at").is_null()) << reply.body;
      auto below = static_cast<std::uint32_t>(std::uint64_t(of("at")));
      if (!of("wait_begin").is_null()) {
        ++waits;
        const double begin = of("wait_begin");
        EXPECT_LE(double(of("at_begin")), begin + 1);
        EXPECT_GT(double(of("at_begin")) + double(of("at_duration")) + 1, begin);
      } else {
        const auto functions = of("path")["function"].get_array();
        for (std::size_t level = functions.size(); level-- > 0; below = thread.calls.parent[below])
          EXPECT_EQ(std::uint64_t(functions.at(level)), index_->function_of(thread, below));
        EXPECT_EQ(below, row);
      }
    }
  }
  EXPECT_GT(told, 20);
  EXPECT_GT(causes, 20);
  EXPECT_EQ(waits > 0, GetParam().states);
}

INSTANTIATE_TEST_SUITE_P(Traces, ExplainTest,
                         testing::Values(Shape{1, false, false, 1}, Shape{2, true, false, 1}, Shape{3, false, true, 1},
                                         Shape{5, true, true, 1}, Shape{6, false, true, 2}));

TEST(ViewExplain, TellsTheOnlyCallAndWhatIsNone) {
  test::SampleTrace sample;
  sample.process(10, "app", {"main", "work"}).thread(10, "app").enter(1, 1000).call(2, 1100, 1200).exit(1, 2000);
  const auto index = test::index_of(sample);
  engine::Api api({index.get()}, "1");
  const auto ask = [&](const engine::Parameters& parameters) { return api.answer("explain", parameters); };
  EXPECT_NE(ask({{"thread", "0"}, {"index", "1"}}).body.find("it is the only complete call"), std::string::npos);
  EXPECT_EQ(ask({}).status, 400);
  EXPECT_EQ(ask({{"thread", "0"}, {"index", "7"}}).status, 400);
  engine::Work stopped;
  stopped.stop = true;
  EXPECT_EQ(api.answer("explain", {{"thread", "0"}, {"index", "0"}}, &stopped).status, 499);
}

TEST(ViewExplain, ShowsTheLongestCallOfAPath) {
  test::SampleTrace sample;
  sample.process(10, "app", {"serve", "step"}).thread(10, "app");
  std::uint64_t now = 1000;
  for (int i = 0; i < 20; ++i) {
    const bool slow = i == 7;
    sample.enter(1, now).call(2, now + 10, now + 20);
    if (slow) sample.call(2, now + 30, now + 530).call(2, now + 540, now + 550);
    now += slow ? 600 : 100;
    sample.exit(1, now);
    now += 10;
  }
  const auto index = test::index_of(sample);
  engine::Api api({index.get()}, "1");
  const engine::Reply reply = api.answer("explain", {{"thread", "0"}, {"index", "14"}});  // two rows before each
  ASSERT_EQ(reply.status, 200) << reply.body;
  simdjson::dom::parser parser;
  const element answer = parser.parse(reply.body);
  EXPECT_TRUE(bool(answer["stands_out"]));
  EXPECT_EQ(std::uint64_t(answer["causes"].at(0)["at"]), 16U);
  EXPECT_EQ(double(answer["causes"].at(0)["at_duration"]), 500);
}

}  // namespace
}  // namespace karst
