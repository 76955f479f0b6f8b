// speedscope's JSON as a trace of ours: what our own export said, and what others may say.
#include "export/export.h"
#include "test/export/exported.h"
#include "test/import/imported.h"

namespace karst::importing {
namespace {

constexpr const char* kStart =
    R"({"$schema":"https://www.speedscope.app/file-format-schema.json","shared":{"frames":[
    {"name":"a","file":"/a.c","line":3},{"name":"b"},{"name":""}]},"profiles":[)";

struct ImportedProfile : Imported {
  explicit ImportedProfile(std::string_view text) : Imported(import_speedscope, text) {}
};

/// Of an evented profile of this unit and these events.
ImportedProfile evented(std::string_view unit, std::string_view events) {
  return ImportedProfile(std::string(kStart) + R"({"type":"evented","name":"main 7","unit":")" + std::string(unit) +
                         R"(","startValue":0,"endValue":9,"events":[)" + std::string(events) + "]}]}");
}

/// The format has no processes.
std::map<std::uint32_t, std::vector<Row>> by_thread(const Rows& rows) {
  std::map<std::uint32_t, std::vector<Row>> threads;
  for (const auto& [ids, calls] : rows) threads[ids.second] = calls;
  return threads;
}

TEST(ImportSpeedscope, HasWhatOurOwnExportHad) {
  test::SampleTrace sample;
  const reader::Trace trace = test::rich_trace(sample);
  const std::string text = test::exported(trace, exporting::export_speedscope, test::all_threads(trace));
  EXPECT_TRUE(may_be_speedscope(text));
  const ImportedProfile imported(text);
  ASSERT_EQ(imported.error, "");
  EXPECT_EQ(by_thread(rows_of(imported.trace())), by_thread(rows_of(trace)));
  EXPECT_EQ(imported.trace().processes()[0].threads[1].name, "worker");
  EXPECT_EQ(imported.summary.aside, 0U);
}

TEST(ImportSpeedscope, TakesEachUnitOfTime) {
  const std::string_view events = R"({"type":"O","frame":0,"at":1},{"type":"O","frame":1,"at":1.5},
    {"type":"C","frame":1,"at":2},{"type":"C","frame":0,"at":4})";
  const std::vector<std::pair<const char*, const char*>> expected{
      {"seconds", "a3000000000(b500000000)"}, {"milliseconds", "a3000000(b500000)"}, {"microseconds", "a3000(b500)"}};
  for (const auto& [unit, tree] : expected)
    EXPECT_EQ(evented(unit, events).trees(), std::vector<std::string>{"0/900000000: " + std::string(tree)}) << unit;
  for (const char* unit : {"none", "bytes", ""})
    EXPECT_EQ(evented(unit, events).error,
              "there are no calls and no samples in it; left out: 1 profiles whose unit is no time");
}

TEST(ImportSpeedscope, EndsThatCrossBelongToTheirFrames) {
  const auto imported = evented("nanoseconds", R"({"type":"O","frame":0,"at":1},{"type":"O","frame":1,"at":2},
    {"type":"C","frame":0,"at":5},{"type":"C","frame":1,"at":9},{"type":"C","frame":1,"at":10},
    {"type":"O","frame":2,"at":11})");
  EXPECT_EQ(imported.trees(), (std::vector<std::string>{"0/900000000: a4 (no name)~", "0/900000000: b7"}));
  EXPECT_EQ(imported.summary.aside, 1U);
  EXPECT_EQ(imported.summary.left_out.at("ends of calls that have no begin"), 1U);
}

TEST(ImportSpeedscope, SamplesAreCountedAndNoCalls) {
  const std::string sampled = R"({"type":"sampled","name":"s","unit":"seconds","startValue":0,"endValue":1,
    "samples":[[0,1],[0],[]],"weights":[1,2,3]})";
  EXPECT_EQ(ImportedProfile(kStart + sampled + "]}").error,
            "there are no calls and no samples in it; left out: 3 samples");
}

TEST(ImportSpeedscope, AbsurdValuesAreCounted) {
  const auto imported = evented("nanoseconds", R"({"type":"O","frame":0,"at":1},{"type":"C","frame":0,"at":2},
    {"type":"O","frame":9,"at":1},{"type":"O","frame":-1,"at":1},{"type":"X","frame":0,"at":1},7,null,{},
    {"type":"O","frame":0,"at":1e300},{"type":"O","frame":0,"at":"x"},{"type":"O","frame":0,"at":9223372036854775807})");
  EXPECT_EQ(imported.trees(), std::vector<std::string>{"0/900000000: a1"});
  EXPECT_EQ(imported.summary.left_out,
            (std::map<std::string, std::uint64_t>{{"events of no frame, or that are neither begin nor end", 6},
                                                  {"events without a time that can be", 3}}));
}

TEST(ImportSpeedscope, WhatIsNoProfileIsAnError) {
  for (const char* text : {"", "{", "[]", "7", R"({"shared":{"frames":[]},"profiles":)", R"({"profiles":[]})",
                           R"({"shared":{"frames":{}},"profiles":[]})", R"({"shared":{"frames":[]},"profiles":[7]})"})
    EXPECT_TRUE(ImportedProfile(text).error.starts_with("it is no speedscope profile: ")) << text;
  const std::string whole = std::string(kStart) + "]}";
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_NE(ImportedProfile(whole.substr(0, size)).error, "") << size;
  EXPECT_FALSE(may_be_speedscope(R"({"traceEvents":[]})"));
}

}  // namespace
}  // namespace karst::importing
