// Questions and answers, decoded by hand from docs/viewer-protocol.md.
#include "engine/api/api.h"

#include <gtest/gtest.h>
#include <simdjson.h>

#include <cstring>

#include "engine/api/source.h"
#include "engine/cut/cut.h"
#include "engine/protocol.h"
#include "test/engine/random_trace.h"

namespace karst {
namespace {

using engine::Parameters;

class ApiTest : public testing::Test {
 protected:
  ApiTest() : made_(test::random_index({.seed = 31, .threads = 3, .calls = 2000})), api_({made_.index.get()}, "1.2.3") {
    api_.set_server({.cut = engine::cut_trace});
  }

  simdjson::dom::element ask(const std::string& path, const Parameters& parameters = {}, int status = 200) {
    const engine::Reply reply = api_.answer(path, parameters);
    EXPECT_EQ(reply.status, status) << reply.body;
    EXPECT_EQ(reply.type, "application/json; charset=utf-8");
    text_ = reply.body;
    return parser_.parse(text_);
  }

  test::Indexed made_;
  engine::Api api_;
  simdjson::dom::parser parser_;
  std::string text_;
};

struct Tiles {
  engine::TileHeader header{};
  std::vector<engine::TileRow> rows;
  std::vector<double> begin, duration;
  std::vector<std::uint32_t> function, index, count;
  std::vector<std::uint8_t> flags, density;
};

Tiles decode(const std::string& bytes) {
  Tiles tiles;
  std::size_t at = 0;
  const auto read = [&](auto& column, std::size_t count) {
    column.resize(count);
    const std::size_t size = count * sizeof(column[0]);
    EXPECT_LE(at + size, bytes.size());
    std::memcpy(column.data(), bytes.data() + at, size);
    at += (size + 7) / 8 * 8;
  };
  std::memcpy(&tiles.header, bytes.data(), sizeof tiles.header);
  at = sizeof tiles.header;
  read(tiles.rows, tiles.header.rows);
  const std::size_t slices = tiles.header.slices;
  read(tiles.begin, slices);
  read(tiles.duration, slices);
  read(tiles.function, slices);
  read(tiles.index, slices);
  read(tiles.count, slices);
  read(tiles.flags, slices);
  read(tiles.density, slices);
  EXPECT_EQ(at, bytes.size());
  return tiles;
}

TEST_F(ApiTest, TraceHasFactsAboutThreadsAndFunctions) {
  const auto trace = ask("trace");
  EXPECT_EQ(std::string_view(trace["version"]), "1.2.3");
  EXPECT_EQ(std::uint64_t(trace["calls"]), 6000U);
  EXPECT_EQ(trace["threads"].get_array().size(), 3U);
  EXPECT_EQ(trace["functions"]["name"].get_array().size(), 7U);
  EXPECT_EQ(std::string_view(trace["clock"]["start_realtime_ns"]).size(), 19U);
  EXPECT_EQ(std::string_view(trace["features"].at(0)), "cut");
}

TEST_F(ApiTest, TilesHoldEveryCallOnce) {
  const double span = ask("trace")["span"];
  const engine::Reply reply =
      api_.answer("tiles", {{"begin", "0"}, {"end", std::to_string(span + 1)}, {"width", "300"}});
  ASSERT_EQ(reply.status, 200);
  EXPECT_EQ(reply.type, "application/octet-stream");
  const Tiles tiles = decode(reply.body);
  EXPECT_EQ(tiles.header.magic, engine::kTilesMagic);
  std::uint64_t calls = 0;
  for (const engine::TileRow& row : tiles.rows) {
    const engine::ThreadIndex& thread = made_.index->threads()[row.track];
    for (std::uint32_t i = row.first; i < row.first + row.count; ++i) {
      calls += tiles.count[i];
      EXPECT_EQ(thread.calls.depth[tiles.index[i]], row.depth);
      EXPECT_EQ(tiles.function[i], made_.index->function_of(thread, tiles.index[i]));
      EXPECT_DOUBLE_EQ(tiles.duration[i], static_cast<double>(thread.calls.duration[tiles.index[i]]));
      EXPECT_EQ((tiles.flags[i] & engine::kSliceSummed) != 0, tiles.count[i] > 1);
      EXPECT_EQ(tiles.flags[i] & ~engine::kSliceSummed, thread.calls.marks[tiles.index[i]]);
      if (tiles.count[i] == 1) {
        EXPECT_EQ(tiles.density[i], 255);
      }
    }
  }
  EXPECT_EQ(calls, 6000U);
}

TEST_F(ApiTest, TilesOfSomeDepthsAndOfOneFunction) {
  const Parameters some = {{"width", "100"}, {"tracks", "2:1-2,0:0"}};
  for (const engine::TileRow& row : decode(api_.answer("tiles", some).body).rows) {
    EXPECT_TRUE((row.track == 2 && (row.depth == 1 || row.depth == 2)) || (row.track == 0 && row.depth == 0));
  }
  const Tiles one = decode(api_.answer("tiles", {{"width", "100"}, {"function", "4"}}).body);
  std::uint64_t calls = 0;
  for (std::size_t i = 0; i < one.function.size(); ++i) {
    EXPECT_EQ(one.function[i], 4U);
    calls += one.count[i];
  }
  // The last moment is not in a range that ends with it.
  EXPECT_NEAR(static_cast<double>(calls), static_cast<double>(made_.index->functions().functions()[4].calls), 1);
}

TEST_F(ApiTest, MinimapHasARowForEachThread) {
  const std::string bytes = api_.answer("minimap", {{"width", "50"}, {"threads", "1,2"}}).body;
  engine::MinimapHeader header;
  std::memcpy(&header, bytes.data(), sizeof header);
  EXPECT_EQ(header.magic, engine::kMinimapMagic);
  EXPECT_EQ(header.threads, 2U);
  EXPECT_EQ(bytes.size(), sizeof header + 100);
}

TEST_F(ApiTest, CallHasItsParentsAndChildren) {
  const engine::CallColumns& calls = made_.index->threads()[1].calls;
  std::uint32_t row = 0;
  while (calls.depth[row] < 3) ++row;
  const auto call = ask("call", {{"thread", "1"}, {"index", std::to_string(row)}});
  EXPECT_EQ(std::uint64_t(call["duration"]), calls.duration[row]);
  EXPECT_EQ(call["parents"]["index"].get_array().size(), 3U);
  EXPECT_EQ(std::uint64_t(call["parents"]["index"].at(2)), calls.parent[row]);
}

TEST_F(ApiTest, FunctionsOfOneCallAreItsSubtree) {
  const auto call = ask("functions", {{"thread", "0"}, {"index", "0"}});
  EXPECT_EQ(std::uint64_t(call["busy"]), made_.index->threads()[0].calls.duration[0]);
}

TEST_F(ApiTest, AnswersAreTheSameWhenAskedAgain) {
  for (const char* path : {"functions", "flame", "minimap"}) {
    const engine::Reply first = api_.answer(path, {{"threads", "0,2"}});
    const engine::Reply second = api_.answer(path, {{"threads", "0,2"}});
    EXPECT_EQ(first.body, second.body);
    EXPECT_EQ(first.type, second.type);
  }
}

TEST_F(ApiTest, FlameOfAPathIsThatSubtree) {
  const auto whole = ask("flame", {{"share", "0"}});
  const std::uint64_t child = whole["nodes"]["function"].at(1);
  const std::uint64_t total = whole["nodes"]["total"].at(1);
  const auto zoomed = ask("flame", {{"share", "0"}, {"path", std::to_string(child)}});
  EXPECT_EQ(std::uint64_t(zoomed["total"]), total);
  EXPECT_EQ(std::uint64_t(zoomed["nodes"]["function"].at(0)), child);
}

TEST_F(ApiTest, FlameComparesTwoSets) {
  const auto both = ask("flame", {{"threads", "0"}, {"b.threads", "1"}});
  EXPECT_GT(std::uint64_t(both["total_b"]), 0U);
  EXPECT_EQ(both["nodes"]["total_b"].get_array().size(), both["nodes"]["total"].get_array().size());
}

TEST_F(ApiTest, SearchCountsAndOrders) {
  const auto found = ask("search", {{"q", "^f[12]$"}});
  EXPECT_EQ(found["functions"].get_array().size(), 2U);
  const auto text = ask("search", {{"q", "("}});
  EXPECT_EQ(text["functions"].get_array().size(), 0U);  // no expression, and in no name
}

TEST_F(ApiTest, SourceNeedsText) { ask("source", {{"function", "0"}}, 404); }

TEST_F(ApiTest, CutIsAFile) {
  const engine::Reply reply = api_.answer("cut", {{"begin", "100"}, {"end", "2000"}});
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.file_name, "sample-cut.karst");
  EXPECT_TRUE(reply.body.starts_with("\x89KARST"));
}

TEST_F(ApiTest, NonsenseIsAnsweredWithWords) {
  const std::pair<const char*, Parameters> questions[] = {
      {"tiles", {}},
      {"tiles", {{"width", "0"}}},
      {"tiles", {{"width", "9999999999999999999999"}}},
      {"tiles", {{"width", "10"}, {"begin", "nan"}}},
      {"tiles", {{"width", "10"}, {"begin", "1e999"}}},
      {"tiles", {{"width", "10"}, {"begin", "5"}, {"end", "5"}}},
      {"tiles", {{"width", "10"}, {"tracks", "3"}}},
      {"tiles", {{"width", "10"}, {"tracks", "0:5-2"}}},
      {"tiles", {{"width", "10"}, {"tracks", "0:-"}}},
      {"tiles", {{"width", "10"}, {"function", "7"}}},
      {"minimap", {{"width", "8193"}}},
      {"call", {}},
      {"call", {{"thread", "0"}, {"index", "2000"}}},
      {"call", {{"thread", "-1"}}},
      {"occurrences", {}},
      {"occurrences", {{"function", "0"}, {"order", "size"}}},
      {"occurrences", {{"function", "0"}, {"limit", "1001"}}},
      {"functions", {{"begin", "9"}, {"end", "8"}}},
      {"functions", {{"trace", "1"}}},
      {"functions", {{"raw", "yes"}}},
      {"call", {{"thread", "0"}, {"index", "0"}, {"raw", "2"}}},
      {"outliers", {{"each", ""}}},
      {"flame", {{"inverted", "-1"}}},
      {"flame", {{"share", "2"}}},
      {"flame", {{"b.trace", "5"}}},
      {"functions", {{"b.trace", "5"}}},
      {"flame", {{"path", "1,,2"}}},
      {"histogram", {{"function", ""}}},
  };
  for (const auto& [path, parameters] : questions) {
    const auto answer = ask(path, parameters, 400);
    EXPECT_GT(std::string_view(answer["error"]).size(), 5U);
  }
  ask("nothing", {}, 404);
  ask("flame", {{"path", "0,1,2,3,4,5,6,0,1,2"}}, 404);
}

TEST_F(ApiTest, ExtremeRangesAreHarmless) {
  for (const char* begin : {"-1e300", "0", "1e300", "1e18"}) {
    for (const char* end : {"1e-300", "1", "1e17", "1e301"}) {
      for (const char* path : {"tiles", "functions", "flame", "cut", "occurrences", "histogram"}) {
        const engine::Reply reply =
            api_.answer(path, {{"begin", begin}, {"end", end}, {"width", "8192"}, {"function", "0"}});
        EXPECT_TRUE(reply.status == 200 || reply.status == 400) << path << ' ' << begin << ' ' << end;
      }
    }
  }
}

TEST(ApiSource, HasTheFunctionsLines) {
  test::SampleTrace sample;
  sample.process(1, "app", {"f(int)"}).thread(1, "t").call(1, 1000, 2000);
  sample.function(1).line = 3;
  sample.source("/src/sample.cc", "// }\n\nint f(int a) {\n  const char* s = \"}\";\n  return a;\n}\nint g();\n");
  const auto index = test::index_of(sample);
  engine::Api api({index.get()}, "1");
  simdjson::dom::parser parser;
  const std::string body = api.answer("source", {{"function", "0"}}).body;
  const simdjson::dom::element source = parser.parse(body);
  EXPECT_EQ(std::uint64_t(source["line"]), 3U);
  EXPECT_EQ(std::uint64_t(source["end_line"]), 6U);
  EXPECT_EQ(std::uint64_t(source["first_line"]), 1U);
}

TEST(ApiSource, EndOfAFunction) {
  EXPECT_EQ(engine::function_end_line("f() {}\n", 1), 1U);
  EXPECT_EQ(engine::function_end_line("f()\n{\n  // {\n  '{';\n  /* { */\n}\n", 1), 6U);
  EXPECT_EQ(engine::function_end_line("A::A(B b = {})\n  : x{1},\n    y{2} {\n  z();\n}\nint k;\n", 1), 5U);
  EXPECT_EQ(engine::function_end_line("f() {\n  auto s = R\"x(}\n)\" )x\";\n  int n = 1'000;\n}\n", 1), 5U);
  EXPECT_EQ(engine::function_end_line("int f();\nint g() {\n}\n", 1), 1U);
  EXPECT_EQ(engine::function_end_line("f() {\n", 1), 1U);
  EXPECT_EQ(engine::function_end_line("", 5), 5U);
  EXPECT_EQ(engine::function_end_line("}", 1), 1U);
}

}  // namespace
}  // namespace karst
