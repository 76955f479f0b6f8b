// XRay's logs, of planted records: both modes, several buffers, what is damaged, lost or absurd.
#include <cstring>
#include <string>

#include "analysis/notes.h"
#include "import/xray_names.h"
#include "test/import/imported.h"

namespace karst::importing {
namespace {

template <typename... Values>
std::string bytes_of(Values... values) {
  std::string bytes;
  const auto add = [&](auto value) { bytes.append(reinterpret_cast<const char*>(&value), sizeof value); };
  (add(values), ...);
  return bytes;
}

std::string header(std::uint16_t version, std::uint16_t type, std::uint64_t cycles_second = 1'000'000'000) {
  return bytes_of(version, type, std::uint32_t{0xff}, cycles_second, std::uint64_t{0}, std::uint64_t{0});
}

enum SledKind : std::uint8_t { kSledEnter, kSledExit, kSledTail, kSledArgument };

std::string basic(std::uint64_t cycles, std::uint8_t kind, std::int32_t function, std::uint32_t tid = 8) {
  return bytes_of(std::uint16_t{0}, std::uint8_t{1}, kind, function, cycles, tid, std::uint32_t{7}, std::uint64_t{0});
}
std::string basic_argument(std::uint64_t value, std::int32_t function, std::uint32_t tid = 8) {
  return bytes_of(std::uint16_t{1}, std::uint16_t{0}, function, tid, std::uint32_t{7}, value, std::uint64_t{0});
}

std::string metadata(std::uint8_t kind, std::string body) {
  body.resize(15);
  return static_cast<char>(kind << 1 | 1) + body;
}
std::string function(std::uint8_t kind, std::uint32_t number, std::uint32_t delta) {
  return bytes_of(std::uint32_t{number << 4 | std::uint32_t{kind} << 1}, delta);
}
std::string new_cpu(std::uint64_t cycles) { return metadata(2, bytes_of(std::uint16_t{3}) + bytes_of(cycles)); }
/// What a buffer of thread 8 in process 7 begins with, and `records`.
std::string buffer(const std::string& records) {
  const std::string all =
      metadata(0, bytes_of(std::int32_t{8})) + metadata(4, "") + metadata(9, bytes_of(std::int32_t{7})) + records;
  return metadata(7, bytes_of(std::uint64_t{all.size()})) + all;
}

struct ImportedLog : Imported {
  explicit ImportedLog(std::string_view bytes) : Imported(import_xray, bytes) {}
};
using Trees = std::vector<std::string>;

TEST(ImportXRay, BasicModeHasCallsOfEachThread) {
  const std::string log = header(3, 0, 2'000'000'000) + basic(100, kSledEnter, 1) + basic(110, kSledArgument, 2) +
                          basic_argument(42, 2) + basic(130, kSledExit, 2) + basic(120, kSledEnter, 2, 9) +
                          basic(140, kSledExit, 1) + basic(150, kSledExit, 2, 9);
  EXPECT_TRUE(may_be_xray(log));
  const ImportedLog imported(log);
  EXPECT_EQ(imported.trees(), (Trees{"7/8: xray #120(xray #210)", "7/9: xray #215"}));
  EXPECT_TRUE(imported.summary.remarks.empty());
  const reader::Trace& trace = imported.trace();
  const reader::Calls calls = reader::rebuild_calls(trace, trace.processes()[0].threads[0]);
  ASSERT_EQ(calls.notes.size(), 1U);
  EXPECT_EQ(calls.notes[0].row, 1U);
}

TEST(ImportXRay, FlightDataGoesOnFromBufferToBuffer) {
  // The second buffer stands before the first, as the ring of buffers has wrapped; its time is set anew.
  const std::string second = buffer(new_cpu(5000) + function(kSledExit, 3, 7) +
                                    metadata(3, bytes_of(std::uint64_t{9000})) + function(kSledExit, 1, 1));
  const std::string first = buffer(new_cpu(1000) + function(kSledEnter, 1, 5) + function(kSledArgument, 3, 10) +
                                   metadata(6, bytes_of(std::uint64_t{1} << 63U)));
  const std::string log = header(5, 1) + second + first;
  EXPECT_TRUE(may_be_xray(log));
  EXPECT_EQ(ImportedLog(log).trees(), Trees{"7/8: xray #17996(xray #33992)"});
}

TEST(ImportXRay, TailCallsLeaveTheirCaller) {
  const ImportedLog imported(header(3, 0) + basic(10, kSledEnter, 1) + basic(12, kSledEnter, 2) +
                             basic(15, kSledTail, 2) + basic(16, kSledEnter, 3) + basic(19, kSledExit, 3) +
                             basic(20, kSledExit, 1));
  EXPECT_EQ(imported.trees(), Trees{"7/8: xray #110(xray #23 xray #33)"});
  const reader::Trace& trace = imported.trace();
  const reader::Calls calls = reader::rebuild_calls(trace, trace.processes()[0].threads[0]);
  EXPECT_TRUE(reader::call_is_left(calls.marks[1]));
  EXPECT_EQ(calls.marks[0] | calls.marks[2], reader::kCallComplete);
}

TEST(ImportXRay, EventsAreNotes) {
  const auto event = [](const std::string& head, std::string_view data) { return head + std::string(data); };
  const std::string log =
      header(5, 1) + buffer(new_cpu(1000) + function(kSledEnter, 1, 0) +
                            event(metadata(5, bytes_of(std::int32_t{3}, std::int32_t{4})), "a\xff\n") +
                            event(metadata(8, bytes_of(std::int32_t{1}, std::int32_t{-2}, std::uint16_t{9})), "b") +
                            function(kSledExit, 1, 8));
  const ImportedLog imported(log);
  EXPECT_EQ(imported.trees(), Trees{"7/8: xray #110"});
  EXPECT_EQ(imported.summary.notes, 2U);
  const ImportedLog older(header(4, 1) + buffer(event(metadata(5, bytes_of(std::int32_t{1}, std::uint64_t{77})), "c")));
  EXPECT_EQ(older.summary.notes, 1U);
}

TEST(ImportXRay, WhatIsLostIsCounted) {
  const std::string whole = buffer(new_cpu(10) + function(kSledEnter, 1, 1) + function(kSledExit, 1, 1));
  const std::string cut_off = buffer(new_cpu(40) + function(kSledEnter, 1, 1) + function(kSledExit, 1, 1));
  const ImportedLog imported(header(5, 1) + buffer(function(kSledEnter, 1, 1)) + "garbage" + whole +
                             buffer(new_cpu(20) + function(kSledExit, 9, 1) + function(5, 9, 1)) +
                             buffer(new_cpu(30) + metadata(12, "") + function(kSledEnter, 1, 1)) +
                             cut_off.substr(0, cut_off.size() - 3));
  EXPECT_EQ(imported.trees(), Trees{"7/8: xray #11 xray #1~"});
  EXPECT_EQ(imported.summary.left_out,
            (std::map<std::string, std::uint64_t>{{"records without a time that can be", 1},
                                                  {"places where no buffer begins", 1},
                                                  {"ends of calls that have no begin", 1},
                                                  {"records of kinds that are not known", 1},
                                                  {"buffers that are damaged from some place on", 1},
                                                  {"buffers that are not whole", 1}}));
}

TEST(ImportXRay, AbsurdNumbersAreTaken) {
  const ImportedLog no_frequency(header(3, 0, 0) + basic(UINT64_MAX - 5, kSledEnter, 1) +
                                 basic(UINT64_MAX, kSledExit, 1));
  EXPECT_EQ(no_frequency.trees(), Trees{"7/8: xray #15"});
  ASSERT_EQ(no_frequency.summary.remarks.size(), 1U);
  EXPECT_NE(no_frequency.summary.remarks[0].find("times are cycles"), std::string::npos);
  const ImportedLog slow(header(3, 0, 1) + basic(5, kSledEnter, 1) + basic(UINT64_MAX, kSledExit, 1));
  EXPECT_EQ(slow.trees(), Trees{"7/8: xray #1~"});
  EXPECT_EQ(slow.summary.left_out.at("records without a time that can be"), 1U);
  EXPECT_EQ(ImportedLog(header(3, 0) + basic(5, kSledEnter, -1) + basic(9, kSledExit, -1)).trees(),
            Trees{"7/8: xray #42949672954"});
  const std::string huge = metadata(5, bytes_of(std::int32_t{INT32_MAX}, std::int32_t{0}));
  EXPECT_EQ(ImportedLog(header(5, 1) + buffer(new_cpu(1) + huge)).error,
            "there are no calls and no samples in it; left out: 1 buffers that are damaged from some place on");
}

TEST(ImportXRay, WhatIsNoLogIsAnError) {
  EXPECT_EQ(ImportedLog("").error, "it is no log of XRay's, or one of a version that is not known");
  EXPECT_EQ(ImportedLog(header(6, 0)).error, "it is no log of XRay's, or one of a version that is not known");
  EXPECT_EQ(ImportedLog(header(2, 1)).error, "it is a log of an older XRay: in FDR mode versions 3 to 5 are read");
  EXPECT_EQ(ImportedLog(header(3, 0)).error, "there are no calls and no samples in it");
  for (const std::string& other : {header(3, 0), header(3, 0) + std::string(32, '\1'), header(3, 1) + basic(1, 0, 1),
                                   header(3, 0) + buffer(""), header(3, 2) + basic(1, 0, 1), std::string(64, '\0')})
    EXPECT_FALSE(may_be_xray(other));
}

TEST(ImportXRay, ALogsNameTellsItsProgram) {
  EXPECT_EQ(program_beside("/d/xray-log.my.app.a1B2c3"), "/d/my.app");
  EXPECT_EQ(program_beside("xray-log.app.a1B2c3"), "app");
  for (const char* other : {"xray-log.app", "xray-log..a1B2c", "xray-log.a1B2c3", "app.a1B2c3", "/", ""})
    EXPECT_EQ(program_beside(other), "") << other;
}

TEST(ImportXRay, AFileThatIsNoProgramNamesNothing) {
  ForeignTrace trace;
  trace.processes.emplace_back().functions.push_back({"xray #1", {}, 0, false, 1});
  EXPECT_TRUE(has_sleds(trace));
  for (const char* path : {"/etc/passwd", "/dev/null", "/no/such", "/"}) {
    EXPECT_FALSE(name_by_program(trace, path)) << path;
    EXPECT_EQ(trace.processes[0].functions[0].name, "xray #1");
  }
}

}  // namespace
}  // namespace karst::importing
