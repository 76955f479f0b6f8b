// The page's sums are without what tracing took, and the same whether the index was made now or comes from a cache.
#include <gtest/gtest.h>
#include <simdjson.h>

#include <map>
#include <memory>
#include <string>

#include "engine/api/api.h"
#include "format/note.h"
#include "test/analysis/sample_trace.h"
#include "test/engine/cached_index.h"

namespace karst {
namespace {

using engine::Parameters;
using test::SampleTrace;

constexpr std::uint32_t kUnit = format::kCallCostUnit;

/// main [1000, 9000) calls 40 times work, of 100 ticks, in which are two leaves of `leaf` ticks. In the first work
/// tracing took 50 ticks besides.
void fill(SampleTrace& sample, std::uint32_t cost, std::uint32_t inside, std::uint64_t leaf) {
  sample.process(1, "app", {"main", "work", "leaf"})
      .costs(cost * kUnit, inside * kUnit)
      .thread(1, "app")
      .enter(1, 1000);
  for (std::uint64_t at = 1100; at < 9000 - 190; at += 190) {
    sample.enter(2, at).call(3, at + 10, at + 10 + leaf);
    if (at == 1100) {
      const std::uint64_t note = format::overhead_note(format::Overhead::kMemory, 50);
      const std::string bytes(reinterpret_cast<const char*>(&note), format::note_bytes_of(note));
      sample.values(format::NoteKind::kOverhead, 0, bytes, at + 75);
    }
    sample.call(3, at + 80, at + 80 + leaf).exit(2, at + 100);
  }
  sample.exit(1, 9000);
}

class Answers {
 public:
  explicit Answers(const engine::TraceIndex& index) : api_({&index}, "1") {}
  std::string operator()(const std::string& path, const Parameters& parameters = {}) {
    const engine::Reply reply = api_.answer(path, parameters);
    EXPECT_EQ(reply.status, 200) << reply.body;
    return reply.body;
  }

 private:
  engine::Api api_;
};

const std::map<std::string, Parameters> kSums = {
    {"functions", {}},
    {"flame", {}},
    {"histogram", {{"function", "2"}}},
    {"occurrences", {{"function", "2"}, {"order", "duration"}, {"limit", "9"}}},
    {"outliers", {}}};

TEST(Times, OfThePageAreWithoutWhatTracingTook) {
  SampleTrace sample;
  fill(sample, 12, 3, 20);
  const test::CachedIndex cached(sample, "times");
  engine::IndexProgress progress;
  const auto fresh = engine::TraceIndex::build(sample.open(), progress);
  ASSERT_TRUE(fresh.ok());
  Answers now(**fresh);
  Answers later(*cached);
  simdjson::dom::parser parser;
  const auto of = [&parser](const std::string& text, const char* column) {
    std::map<std::uint64_t, std::uint64_t> found;
    const simdjson::dom::element rows = parser.parse(text)["rows"];
    for (std::size_t i = 0; i < simdjson::dom::array(rows["function"]).size(); ++i)
      found[std::uint64_t(rows["function"].at(i))] = std::uint64_t(rows[column].at(i));
    return found;
  };
  const auto ns = [&](std::uint64_t ticks) { return (*fresh)->trace().clock().to_ns(ticks); };
  constexpr std::uint64_t kWorks = 41;
  const std::string table = now("functions");
  // A leaf is without its inside part, a work also without all of its leaves'; main without all, and the 50 ticks.
  EXPECT_EQ(of(table, "total"), (std::map<std::uint64_t, std::uint64_t>{{0, ns(8000 - 3 - kWorks * 36 - 50)},
                                                                        {1, ns(kWorks * (100 - 3 - 24) - 50)},
                                                                        {2, ns(kWorks * 2 * 17)}}));
  EXPECT_EQ(of(table, "max")[1], ns(73));
  EXPECT_EQ(of(table, "min")[1], ns(73 - 50));
  EXPECT_EQ(of(now("functions", {{"raw", "1"}}), "total"),
            (std::map<std::uint64_t, std::uint64_t>{{0, ns(8000)}, {1, ns(kWorks * 100)}, {2, ns(kWorks * 40)}}));
  for (const auto& [path, parameters] : kSums) {
    EXPECT_EQ(now(path, parameters), later(path, parameters)) << path;
    Parameters raw = parameters;
    raw["raw"] = "1";
    EXPECT_EQ(now(path, raw), later(path, raw)) << path;
    EXPECT_EQ(now(path, raw) != now(path, parameters), path != "outliers") << path;
  }
  // Of a few calls in time it is as of all by duration.
  const auto took = [&](const char* order) {
    const Parameters wanted = {{"function", "1"}, {"order", order}, {"limit", "50"}};
    std::map<std::uint64_t, std::uint64_t> by_row;
    const std::string text = now("occurrences", wanted);
    const simdjson::dom::element calls = parser.parse(text)["calls"];
    for (std::size_t i = 0; i < calls["index"].get_array().size(); ++i)
      by_row[std::uint64_t(calls["index"].at(i))] = std::uint64_t(calls["took"].at(i));
    return by_row;
  };
  EXPECT_EQ(took("time").size(), kWorks);
  EXPECT_EQ(took("time"), took("duration"));
  const std::string call = now("call", {{"thread", "0"}, {"index", "1"}});
  const simdjson::dom::element first = parser.parse(call);
  EXPECT_EQ(std::uint64_t(first["duration"]) - std::uint64_t(first["took"]), ns(27 + 50));
  // Its own: without the leaves' parts outside and its own inside. There was not as much as the 50 ticks.
  EXPECT_EQ(std::uint64_t(first["self"]), 0U);
  const std::string another = now("call", {{"thread", "0"}, {"index", "4"}});
  const simdjson::dom::element second = parser.parse(another);
  EXPECT_EQ(std::uint64_t(second["self"]), ns(100 - 40 - 3 - 2 * 9));
  EXPECT_EQ(std::uint64_t(second["callees"]["total"].at(0)), ns(40 - 2 * 3));
  const std::string recorded = now("call", {{"thread", "0"}, {"index", "4"}, {"raw", "1"}});
  const simdjson::dom::element raw = parser.parse(recorded);
  EXPECT_EQ(std::uint64_t(raw["took"]), std::uint64_t(raw["duration"]));
  EXPECT_EQ(std::uint64_t(raw["self"]), ns(100 - 40));
  EXPECT_EQ(std::uint64_t(raw["callees"]["total"].at(0)), ns(40));
  const std::string of_main = now("call", {{"thread", "0"}, {"index", "0"}});
  EXPECT_EQ(std::uint64_t(parser.parse(of_main)["callees"]["total"].at(0)), ns(kWorks * (100 - 27) - 50));
  EXPECT_EQ(call, later("call", {{"thread", "0"}, {"index", "1"}}));
}

TEST(Times, AddUpToOneTotalWhereMoreWasTakenThanThereWas) {
  SampleTrace sample;
  fill(sample, 70, 3, 20);  // of each work more than its 100 ticks
  engine::IndexProgress progress;
  const auto index = engine::TraceIndex::build(sample.open(), progress);
  ASSERT_TRUE(index.ok());
  Answers answers(**index);
  simdjson::dom::parser parser;
  const std::string table = answers("functions");
  const simdjson::dom::element functions = parser.parse(table);
  const std::uint64_t busy(functions["busy"]);
  std::uint64_t sum = 0;
  for (const simdjson::dom::element self : functions["rows"]["self"]) sum += std::uint64_t(self);
  EXPECT_EQ(sum, busy);
  EXPECT_EQ(std::uint64_t(functions["rows"]["self"].at(1)), 0U);
  for (const char* inverted : {"0", "1"}) {
    const std::string flame = answers("flame", {{"inverted", inverted}});
    simdjson::dom::parser another;
    EXPECT_EQ(std::uint64_t(another.parse(flame)["total"]), busy);
  }
}

void is_below(const simdjson::dom::element& answer, double most, const std::string& where) {
  if (answer.is_object()) {
    for (const auto [key, value] : simdjson::dom::object(answer)) is_below(value, most, where + "." + std::string(key));
  } else if (answer.is_array()) {
    for (const simdjson::dom::element value : simdjson::dom::array(answer)) is_below(value, most, where);
  } else if (answer.is_number()) {
    EXPECT_LE(double(answer), most) << where;
    EXPECT_GE(double(answer), -2) << where;
  }
}

// A cost is a mean: it may be more than a call took, and all that a function took.
TEST(Times, AreNeverLessThanNothing) {
  SampleTrace sample;
  fill(sample, 60, 40, 1);
  engine::IndexProgress progress;
  const auto index = engine::TraceIndex::build(sample.open(), progress);
  ASSERT_TRUE(index.ok());
  Answers answers(**index);
  const double most = (*index)->since_origin((*index)->last_ticks());
  simdjson::dom::parser parser;
  for (auto [path, parameters] : kSums) {
    is_below(parser.parse(answers(path, parameters)), most, path);
    if (path == "flame") {
      parameters["inverted"] = "1";
      is_below(parser.parse(answers(path, parameters)), most, "inverted");
    }
  }
}

}  // namespace
}  // namespace karst
