// Chrome's JSON as a trace of ours: what our own export said, and what others may say.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "analysis/notes.h"
#include "import/foreign_bytes.h"
#include "import/import.h"
#include "import/nesting.h"
#include "test/export/exported.h"
#include "test/import/imported.h"

namespace karst::importing {
namespace {

struct ImportedJson : Imported {
  explicit ImportedJson(std::string_view json) : Imported(import_chrome, json) {}
};

TEST(ImportChrome, HasWhatOurOwnExportHad) {
  test::SampleTrace sample;
  const reader::Trace trace = test::rich_trace(sample);
  const ImportedJson imported(test::exported(trace, exporting::export_chrome, test::all_threads(trace)));
  ASSERT_EQ(imported.error, "");
  EXPECT_EQ(rows_of(imported.trace()), rows_of(trace));
  EXPECT_EQ(imported.trace().processes()[0].name, trace.processes()[0].name);
  EXPECT_EQ(imported.trace().processes()[0].threads[1].name, "worker");
  ASSERT_EQ(imported.trace().sources().size(), 1U);
  EXPECT_EQ(imported.trace().sources()[0].text, trace.sources()[0].text);
  EXPECT_EQ(imported.summary.aside, 0U);
}

TEST(ImportChrome, PutsEventsInOrderAndMatchesBeginsWithEnds) {
  const ImportedJson imported(R"([
    {"ph":"E","pid":1,"tid":2,"ts":9},
    {"ph":"B","pid":1,"tid":2,"ts":1.5,"name":"outer"},
    {"ph":"B","pid":1,"tid":2,"ts":2,"name":"none"}, {"ph":"E","pid":1,"tid":2,"ts":2},
    {"ph":"B","pid":1,"tid":2,"ts":2,"name":"next"}, {"ph":"E","pid":1,"tid":2,"ts":2.001},
    {"ph":"X","pid":1,"tid":2,"ts":3,"dur":1,"name":"inner"},
    {"ph":"X","pid":1,"tid":2,"ts":3,"dur":5,"name":"middle"}])");
  EXPECT_EQ(imported.trees(), std::vector<std::string>{"1/2: outer7500(none0 next1 middle5000(inner1000))"});
}

TEST(ImportChrome, SaysWhatHasNoBeginAndWhatHasNoEnd) {
  const ImportedJson imported(R"([{"ph":"E","pid":1,"tid":1,"ts":1}, {"ph":"B","pid":1,"tid":1,"ts":2,"name":"a"},
    {"ph":"X","pid":1,"tid":1,"ts":3,"dur":1,"name":"b"})");
  EXPECT_EQ(imported.trees(), std::vector<std::string>{"1/1: a~(b1000)"});
  EXPECT_EQ(imported.summary.open, 1U);
  EXPECT_EQ(imported.summary.left_out, (std::map<std::string, std::uint64_t>{{"ends of calls that have no begin", 1}}));
}

TEST(ImportChrome, CallsThatOverlapAreWholeAndAside) {
  const ImportedJson imported(R"([{"ph":"X","pid":1,"tid":1,"ts":0,"dur":10,"name":"a"},
    {"ph":"X","pid":1,"tid":1,"ts":5,"dur":10,"name":"b"}, {"ph":"X","pid":1,"tid":1,"ts":6,"dur":1,"name":"c"},
    {"ph":"X","pid":1,"tid":1,"ts":10,"dur":10,"name":"d"}])");
  EXPECT_EQ(imported.trees(), (std::vector<std::string>{"1/1: a10000(c1000) d10000", "1/1: b10000"}));
  EXPECT_EQ(imported.summary.aside, 1U);
}

TEST(ImportChrome, CallsBeyondTheLastLaneAreCounted) {
  std::string json = "[";
  for (int i = 0; i < 70; ++i)
    json += (i == 0 ? "" : ",") + std::string(R"({"ph":"X","pid":1,"tid":1,"ts":)") + std::to_string(i) +
            R"(,"dur":100,"name":"a"})";
  const ImportedJson imported(json + "]");
  EXPECT_EQ(imported.summary.threads, Lanes::kMost);
  EXPECT_EQ(imported.summary.calls, Lanes::kMost);
  EXPECT_EQ(imported.summary.left_out.at("calls that overlap too many others"), 70 - Lanes::kMost);
}

TEST(ImportChrome, InstantsAndCountersAreNotes) {
  const ImportedJson imported(R"([{"ph":"X","pid":1,"tid":1,"ts":0,"dur":9,"name":"a","args":{"detail":"x.cc","n":[1]}},
    {"ph":"i","pid":1,"tid":1,"ts":2,"name":"here","s":"t"}, {"ph":"C","pid":1,"tid":1,"ts":3,"name":"queue","args":{"v":7}},
    {"ph":"C","pid":1,"tid":1,"ts":4,"name":"heap","args":{"used":1.5,"free":2,"bad":"x"}}])");
  const reader::Process& process = imported.trace().processes()[0];
  const reader::Calls calls = reader::rebuild_calls(imported.trace(), process.threads[0]);
  std::vector<std::string> lines;
  for (const reader::Note& note : calls.notes)
    lines.push_back(analysis::note_line(imported.trace(), process.threads[0], calls, note));
  EXPECT_EQ(lines, (std::vector<std::string>{"detail: x.cc, n: [1]", "here", "queue = 7", "heap used = 1.5",
                                             "heap free = 2"}));
  EXPECT_EQ(imported.summary.notes, 4U);
  EXPECT_EQ(imported.summary.left_out.at("values of counters that are no numbers"), 1U);
}

TEST(ImportChrome, IdsThatAreNoNumbersOfTheKernelsGetOthers) {
  const ImportedJson imported(R"([{"ph":"X","pid":"Main","tid":140234567890123,"ts":0,"dur":1,"name":"a"},
    {"ph":"X","pid":"Main","tid":"render","ts":0,"dur":1,"name":"b"},
    {"ph":"X","pid":"Main","tid":140234567890123,"ts":2,"dur":1,"name":"c"}, {"ph":"X","ts":5,"dur":1}])");
  ASSERT_EQ(imported.trace().processes().size(), 2U);
  const reader::Process& process = imported.trace().processes()[0];
  EXPECT_EQ(process.name, "Main");
  ASSERT_EQ(process.threads.size(), 2U);
  EXPECT_EQ(process.threads[0].name, "140234567890123");
  EXPECT_EQ(process.threads[1].name, "render");
  EXPECT_EQ(imported.trees()[2], "0/0: (no name)1000");
}

TEST(ImportChrome, TimesMayLieFarApartAndBeforeZero) {
  const ImportedJson imported(R"([{"ph":"X","pid":1,"tid":1,"ts":-4600000000000000,"dur":1,"name":"a"},
    {"ph":"X","pid":1,"tid":1,"ts":4599999999999999,"dur":1,"name":"b"}])");
  EXPECT_EQ(imported.trees(), std::vector<std::string>{"1/1: a1000 b1000"});
}

TEST(ImportChrome, AbsurdNumbersAreCounted) {
  std::string json = R"([{"ph":"X","pid":1,"tid":1,"ts":0,"dur":1,"name":"a"})";
  for (const char* absurd : {"1e300", "-1e300", "9223372036854775807", "18446744073709551615", "\"x\"", "null", "[]"})
    json += std::string(R"(,{"ph":"X","pid":1,"tid":1,"dur":1,"name":"b","ts":)") + absurd + "}" +
            R"(,{"ph":"X","pid":1,"tid":1,"ts":1,"name":"b","dur":)" + absurd + "}";
  json += R"(,{"ph":"X","pid":1,"tid":1,"ts":1,"dur":-1,"name":"b"},{"ph":"X","pid":1,"tid":1,"ts":1,"name":"b"})";
  json += R"(,{"ph":"X","pid":1,"tid":1,"ts":4600000000000000,"dur":1,"name":"b"},7,{},{"ph":"weird"}])";
  const ImportedJson imported(json);
  EXPECT_EQ(imported.trees(), std::vector<std::string>{"1/1: a1000"});
  EXPECT_EQ(imported.summary.left_out,
            (std::map<std::string, std::uint64_t>{{"calls without a duration that can be", 10},
                                                  {"events of kinds that have no place in a trace", 2},
                                                  {"events that are no object", 1},
                                                  {"events without a time that can be", 7}}));
}

TEST(ImportChrome, WhatIsNoTraceIsAnError) {
  for (const char* text : {"", "{", "[}", "{\"traceEvents\":[{]}", "\xff\xfe", "[\"\xff\"]", "[[[[[[[["})
    EXPECT_NE(ImportedJson(text).error.find("it is no JSON: "), std::string::npos) << text;
  for (const char* text : {"7", "{}", "{\"traceEvents\":7}", "\"x\""})
    EXPECT_NE(ImportedJson(text).error.find("without a list of events"), std::string::npos) << text;
  for (const char* text : {"[]", "["}) EXPECT_EQ(ImportedJson(text).error, "there are no calls and no samples in it");
  EXPECT_EQ(ImportedJson(R"([{"ph":"s"},{"ph":"f"}])").error,
            "there are no calls and no samples in it; left out: 2 flow arrows");
  EXPECT_NE(ImportedJson(std::string(2000, '[')).error, "");
}

TEST(ImportChrome, AListThatBreaksOffBehindAnEventIsWhole) {
  for (const char* end : {"", ",", ",\n", "]"})
    EXPECT_EQ(ImportedJson(std::string(R"([{"ph":"X","pid":1,"tid":1,"ts":0,"dur":1,"name":"a"})") + end).summary.calls,
              1U);
}

/// All of the file of this name, or the error's text.
std::string read_named(const std::filesystem::path& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const auto read = ForeignBytes::read(file.get());
  return read ? std::string(read->view()) : "error: " + read.error().message;
}

TEST(ReadForeign, UnpacksGzipAndRefusesWhatIsDamaged) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("karst-import-" + std::to_string(::getpid()) + ".json.gz");
  const std::string text(100'000, 'x');
  const gzFile file = gzopen(path.c_str(), "wb");
  ASSERT_EQ(gzwrite(file, text.data(), static_cast<unsigned>(text.size())), static_cast<int>(text.size()));
  ASSERT_EQ(gzclose(file), Z_OK);
  EXPECT_EQ(read_named(path), text);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 4);
  EXPECT_TRUE(read_named(path).starts_with("error: it cannot be unpacked"));
  std::ofstream(path, std::ios::trunc) << "plain";
  EXPECT_EQ(read_named(path), "plain");
  std::filesystem::remove(path);
  EXPECT_EQ(read_named("/"), "error: Is a directory");
}

}  // namespace
}  // namespace karst::importing
