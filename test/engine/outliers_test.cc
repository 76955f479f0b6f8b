// Slow calls and sums by thread: against analysis/outliers on calls rebuilt as `karst slow` does, and naive counts.
#include "analysis/outliers.h"

#include <gtest/gtest.h>
#include <simdjson.h>

#include <algorithm>
#include <cstring>

#include "columns/table.h"
#include "engine/api/api.h"
#include "test/analysis/sample_states.h"
#include "test/engine/random_trace.h"

namespace karst {
namespace {

class OutliersTest : public testing::TestWithParam<std::uint32_t> {
 protected:
  OutliersTest() {
    test::fill_random(sample_, {.seed = GetParam(), .threads = 3, .calls = 1500});
    sample_.states(test::random_states(GetParam(), 100, {100, 101, 102}, 2'000, 900'000, 2'000));
    index_ = test::index_of(sample_);
    api_ = std::make_unique<engine::Api>(std::vector<const engine::TraceIndex*>{index_.get()}, "1");
  }

  simdjson::dom::element ask(const std::string& path, const engine::Parameters& parameters = {}) {
    const engine::Reply reply = api_->answer(path, parameters);
    EXPECT_EQ(reply.status, 200) << reply.body;
    return parser_.parse(reply.body);
  }

  test::SampleTrace sample_;
  std::unique_ptr<engine::TraceIndex> index_;
  std::unique_ptr<engine::Api> api_;
  simdjson::dom::parser parser_;
};

TEST_P(OutliersTest, AreThoseOfKarstSlowInItsOrder) {
  const reader::Trace& trace = index_->trace();
  analysis::OutlierFinder finder(trace, nullptr, 0, 1000);
  for (const auto& thread : trace.processes()[0].threads) finder.learn(thread, reader::rebuild_calls(trace, thread));
  for (const auto& thread : trace.processes()[0].threads) finder.find(thread, reader::rebuild_calls(trace, thread));
  const std::uint64_t found = finder.found();
  const auto wanted = finder.take();
  ASSERT_FALSE(wanted.empty());

  const auto each = ask("outliers", {{"each", "1"}, {"limit", "1000"}});
  EXPECT_EQ(std::uint64_t(each["found"]), found);
  ASSERT_EQ(each["slow"].get_array().size(), wanted.size());
  std::vector<double> greatest(3);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const auto of = [&](const char* key) { return each["slow"].at(i)[key].value(); };
    EXPECT_EQ(std::uint64_t(of("thread")), wanted[i].call.thread->index);
    EXPECT_EQ(std::uint64_t(of("index")), wanted[i].call.row);
    EXPECT_EQ(double(of("usual")), static_cast<double>(trace.clock().to_ns(wanted[i].usual)));
    double& most = greatest[wanted[i].call.thread->index];
    most = std::max(most, static_cast<double>(trace.clock().to_ns(wanted[i].excess())));
  }
  for (std::size_t t = 0; t < 3; ++t) EXPECT_EQ(double(each["excess"]["excess"].at(t)), greatest[t]);

  // A line for each function: its first one, how many there are and how long all of them.
  const auto groups = ask("outliers");
  std::uint64_t calls = 0;
  for (const auto slow : groups["slow"]) calls += std::uint64_t(slow["such_calls"]);
  EXPECT_EQ(calls, found);
  EXPECT_EQ(std::uint64_t(groups["slow"].at(0)["index"]), wanted[0].call.row);
}

TEST_P(OutliersTest, OfARangeOverlapIt) {
  const auto all = ask("outliers", {{"each", "1"}, {"limit", "1000"}});
  const double begin = 100'000;
  const double end = 300'000;
  std::vector<std::uint64_t> wanted;
  for (const auto slow : all["slow"])
    if (double(slow["begin"]) < end && double(slow["begin"]) + double(slow["recorded"]) > begin)
      wanted.push_back(slow["index"]);
  const auto part = ask("outliers", {{"each", "1"}, {"limit", "1000"}, {"begin", "100000"}, {"end", "300000"}});
  std::vector<std::uint64_t> found;
  for (const auto slow : part["slow"]) found.push_back(slow["index"]);
  EXPECT_EQ(found, wanted);
}

TEST_P(OutliersTest, LevelsOfARangeAreThoseOfItsCalls) {
  for (const double begin : {0.0, 50'000.0, 123'456.0}) {
    const double end = begin + 4'000;
    const auto answer = ask("threads", {{"begin", std::to_string(begin)}, {"end", std::to_string(end)}});
    for (std::size_t t = 0; t < index_->threads().size(); ++t) {
      const engine::ThreadIndex& thread = index_->threads()[t];
      std::uint64_t depth = 0;
      for (std::uint32_t row = 0; row < thread.calls.size(); ++row) {
        const double from = index_->since_origin(thread.calls.begin[row]);
        const double to = index_->since_origin(thread.calls.end(row));
        if (from < end && (to > begin || from >= begin))
          depth = std::max(depth, thread.calls.depth[row] + std::uint64_t{1});
      }
      EXPECT_EQ(std::uint64_t(answer["depths"].at(t)), depth) << t;
    }
  }
}

TEST_P(OutliersTest, FlameGraphsByStateHaveTheSumsOfTheTable) {
  const columns::Table table = columns::table_of(test::scope_of(*index_));
  for (const auto& [by, ticks] : {std::pair{"cpu", table.states.running},
                                  {"blocked", table.states.blocked},
                                  {"runnable", table.states.runnable}}) {
    const auto flame = ask("flame", {{"by", by}, {"share", "0"}});
    double self = 0;
    for (const double of : flame["nodes"]["self"]) self += of;
    const auto wanted = static_cast<double>(index_->trace().clock().to_ns(ticks));
    EXPECT_GT(wanted, 0) << by;
    EXPECT_EQ(double(flame["total"]), wanted) << by;
    // Each node's is rounded to whole ns.
    EXPECT_NEAR(self, wanted, static_cast<double>(flame["nodes"]["self"].get_array().size())) << by;
  }
  EXPECT_EQ(api_->answer("flame", {{"by", "luck"}}).status, 400);
}

TEST_P(OutliersTest, MinimapSaysWhatThreadsDid) {
  const auto bytes = [&](const char* of) {
    return api_->answer("minimap", {{"width", "1"}, {"threads", "1"}, {"of", of}}).body.substr(16);
  };
  const engine::ThreadIndex& thread = index_->threads()[1];
  const std::uint64_t end = index_->last_ticks() + 1;
  const reader::StateTimes times = thread.states->between(index_->origin(), end);
  const auto span = static_cast<double>(end - index_->origin());
  EXPECT_NEAR(static_cast<std::uint8_t>(bytes("blocked")[0]), 255 * static_cast<double>(times.blocked) / span, 1);
  EXPECT_NEAR(static_cast<std::uint8_t>(bytes("cpu")[0]), 255 * static_cast<double>(times.running) / span, 1);
  EXPECT_NE(bytes("cpu"), bytes("calls"));
}

TEST_P(OutliersTest, OccurrencesOfADurationAreThose) {
  const auto all = ask("occurrences", {{"function", "1"}, {"order", "duration"}, {"limit", "1000"}});
  const simdjson::dom::array durations = all["calls"]["duration"];
  ASSERT_GT(durations.size(), 20U);
  const std::string most = std::to_string(double(durations.at(5)));
  const std::string least = std::to_string(double(durations.at(9)));
  std::vector<std::uint64_t> wanted;
  for (std::size_t i = 0; i < durations.size(); ++i)
    if (double(durations.at(i)) <= std::stod(most) && double(durations.at(i)) >= std::stod(least))
      wanted.push_back(all["calls"]["index"].at(i));
  const auto some = ask(
      "occurrences", {{"function", "1"}, {"order", "duration"}, {"limit", "1000"}, {"least", least}, {"most", most}});
  std::vector<std::uint64_t> found;
  for (const auto index : some["calls"]["index"]) found.push_back(index);
  EXPECT_EQ(found, wanted);
  EXPECT_EQ(std::uint64_t(some["count"]), wanted.size());
}

INSTANTIATE_TEST_SUITE_P(Seeds, OutliersTest, testing::Values(4, 5));

}  // namespace
}  // namespace karst
