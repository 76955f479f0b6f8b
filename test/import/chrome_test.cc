// Chrome's JSON as a trace of ours: what our own export said, and what others may say.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "analysis/notes.h"
#include "base/utf8.h"
#include "import/foreign_bytes.h"
#include "import/import.h"
#include "import/nesting.h"
#include "test/export/exported.h"

namespace karst::importing {
namespace {

/// A trace, imported and read again.
class Imported {
 public:
  explicit Imported(const std::string& json) {
    auto foreign = import_chrome(json);
    if (!foreign) {
      error = foreign.error().message;
      return;
    }
    auto writer = writing::TraceWriter::to_memory(bytes_);
    const auto written = write_trace(std::move(*foreign), writer);
    if (!written) {
      error = written.error().message;
      return;
    }
    summary = *written;
    if (!writer.finish()) throw std::runtime_error("writing to memory failed");
    auto opened = reader::Trace::open_memory(bytes_, "imported");
    if (!opened) throw std::runtime_error(opened.error().message);
    trace_.emplace(std::move(*opened));
    EXPECT_TRUE(trace_->problems().empty());
  }

  const reader::Trace& trace() const { return *trace_; }

  /// Each thread as a tree: `10/11: a(b c) d`.
  std::vector<std::string> trees() const {
    std::vector<std::string> all;
    for (const reader::Process& process : trace_->processes())
      for (const reader::Thread& thread : process.threads) all.push_back(tree(process, thread));
    return all;
  }

  std::string error;
  Summary summary;

 private:
  std::string tree(const reader::Process& process, const reader::Thread& thread) const {
    const reader::Calls calls = reader::rebuild_calls(*trace_, thread);
    std::string text = std::to_string(process.pid) + "/" + std::to_string(thread.tid) + ":";
    std::uint32_t depth = 0;
    for (std::uint32_t row = 0; row < calls.size(); ++row) {
      for (; depth > calls.depth[row]; --depth) text += ')';
      if (depth < calls.depth[row])
        text += '(';
      else
        text += ' ';
      depth = calls.depth[row];
      text += trace_->function(process, calls.function[row]).name;
      if ((calls.marks[row] & reader::kCallOpenEnd) != 0)
        text += '~';
      else
        text += std::to_string(calls.duration[row]);
    }
    return text + std::string(depth, ')');
  }

  std::vector<std::byte> bytes_;
  std::optional<reader::Trace> trace_;
};

/// Names, files, lines, begins since the first one, and durations, in nanoseconds.
using Row = std::tuple<std::string, std::string, std::uint32_t, std::uint64_t, std::uint64_t>;
std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<Row>> rows_of(const reader::Trace& trace) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<Row>> rows;
  std::uint64_t first = UINT64_MAX;
  for (const reader::Process& process : trace.processes())
    for (const reader::Thread& thread : process.threads) {
      const reader::Calls calls = reader::rebuild_calls(trace, thread);
      if (calls.size() != 0) first = std::min(first, calls.begin[0]);
    }
  for (const reader::Process& process : trace.processes())
    for (const reader::Thread& thread : process.threads) {
      const reader::Calls calls = reader::rebuild_calls(trace, thread);
      for (std::uint32_t row = 0; row < calls.size(); ++row) {
        const reader::Function& f = trace.function(process, calls.function[row]);
        const std::uint64_t begin = trace.clock().to_ns(calls.begin[row] - first);
        const std::uint64_t end = trace.clock().to_ns(calls.begin[row] + calls.duration[row] - first);
        rows[{process.pid, thread.tid}].emplace_back(valid_utf8(f.name), f.file, f.file.empty() ? 0 : f.line, begin,
                                                     end - begin);
      }
    }
  return rows;
}

TEST(ImportChrome, HasWhatOurOwnExportHad) {
  test::SampleTrace sample;
  const reader::Trace trace = test::rich_trace(sample);
  const Imported imported(test::exported(trace, exporting::export_chrome, test::all_threads(trace)));
  ASSERT_EQ(imported.error, "");
  EXPECT_EQ(rows_of(imported.trace()), rows_of(trace));
  EXPECT_EQ(imported.trace().processes()[0].name, trace.processes()[0].name);
  EXPECT_EQ(imported.trace().processes()[0].threads[1].name, "worker");
  ASSERT_EQ(imported.trace().sources().size(), 1U);
  EXPECT_EQ(imported.trace().sources()[0].text, trace.sources()[0].text);
  EXPECT_EQ(imported.summary.aside, 0U);
}

TEST(ImportChrome, PutsEventsInOrderAndMatchesBeginsWithEnds) {
  const Imported imported(R"([
    {"ph":"E","pid":1,"tid":2,"ts":9},
    {"ph":"B","pid":1,"tid":2,"ts":1.5,"name":"outer"},
    {"ph":"B","pid":1,"tid":2,"ts":2,"name":"none"}, {"ph":"E","pid":1,"tid":2,"ts":2},
    {"ph":"B","pid":1,"tid":2,"ts":2,"name":"next"}, {"ph":"E","pid":1,"tid":2,"ts":2.001},
    {"ph":"X","pid":1,"tid":2,"ts":3,"dur":1,"name":"inner"},
    {"ph":"X","pid":1,"tid":2,"ts":3,"dur":5,"name":"middle"}])");
  EXPECT_EQ(imported.trees(), std::vector<std::string>{"1/2: outer7500(none0 next1 middle5000(inner1000))"});
}

TEST(ImportChrome, SaysWhatHasNoBeginAndWhatHasNoEnd) {
  const Imported imported(R"([{"ph":"E","pid":1,"tid":1,"ts":1}, {"ph":"B","pid":1,"tid":1,"ts":2,"name":"a"},
    {"ph":"X","pid":1,"tid":1,"ts":3,"dur":1,"name":"b"})");
  EXPECT_EQ(imported.trees(), std::vector<std::string>{"1/1: a~(b1000)"});
  EXPECT_EQ(imported.summary.open, 1U);
  EXPECT_EQ(imported.summary.left_out, (std::map<std::string, std::uint64_t>{{"ends of calls that have no begin", 1}}));
}

TEST(ImportChrome, CallsThatOverlapAreWholeAndAside) {
  const Imported imported(R"([{"ph":"X","pid":1,"tid":1,"ts":0,"dur":10,"name":"a"},
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
  const Imported imported(json + "]");
  EXPECT_EQ(imported.summary.threads, Lanes::kMost);
  EXPECT_EQ(imported.summary.calls, Lanes::kMost);
  EXPECT_EQ(imported.summary.left_out.at("calls that overlap too many others"), 70 - Lanes::kMost);
}

TEST(ImportChrome, InstantsAndCountersAreNotes) {
  const Imported imported(R"([{"ph":"X","pid":1,"tid":1,"ts":0,"dur":9,"name":"a","args":{"detail":"x.cc","n":[1]}},
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
  const Imported imported(R"([{"ph":"X","pid":"Main","tid":140234567890123,"ts":0,"dur":1,"name":"a"},
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
  const Imported imported(R"([{"ph":"X","pid":1,"tid":1,"ts":-4600000000000000,"dur":1,"name":"a"},
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
  const Imported imported(json);
  EXPECT_EQ(imported.trees(), std::vector<std::string>{"1/1: a1000"});
  EXPECT_EQ(imported.summary.left_out,
            (std::map<std::string, std::uint64_t>{{"calls without a duration that can be", 10},
                                                  {"events of kinds that have no place in a trace", 2},
                                                  {"events that are no object", 1},
                                                  {"events without a time that can be", 7}}));
}

TEST(ImportChrome, WhatIsNoTraceIsAnError) {
  for (const char* text : {"", "{", "[}", "{\"traceEvents\":[{]}", "\xff\xfe", "[\"\xff\"]", "[[[[[[[["})
    EXPECT_NE(Imported(text).error.find("it is no JSON: "), std::string::npos) << text;
  for (const char* text : {"7", "{}", "{\"traceEvents\":7}", "\"x\""})
    EXPECT_NE(Imported(text).error.find("without a list of events"), std::string::npos) << text;
  for (const char* text : {"[]", "["}) EXPECT_EQ(Imported(text).error, "there are no calls in it");
  EXPECT_EQ(Imported(R"([{"ph":"s"},{"ph":"f"}])").error, "there are no calls in it; left out: 2 flow arrows");
  EXPECT_NE(Imported(std::string(2000, '[')).error, "");
}

TEST(ImportChrome, AListThatBreaksOffBehindAnEventIsWhole) {
  for (const char* end : {"", ",", ",\n", "]"})
    EXPECT_EQ(Imported(std::string(R"([{"ph":"X","pid":1,"tid":1,"ts":0,"dur":1,"name":"a"})") + end).summary.calls,
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
