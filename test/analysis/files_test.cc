#include "analysis/files.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <string>
#include <vector>

#include "analysis/errno_names.h"
#include "analysis/values.h"
#include "format/file.h"
#include "format/note.h"
#include "format/values.h"
#include "reader/trace.h"
#include "test/analysis/sample_trace.h"

namespace karst::analysis {
namespace {

using format::NoteKind;
using test::SampleTrace;

constexpr std::uint32_t kOpen = 2, kRead = 3, kClose = 4, kDup2 = 5, kCloseRange = 6, kDescriptorIs = 7;
constexpr const char* kEnd = "\xff";

std::string number_value(std::int64_t value) {
  std::string bytes(1, '\x08');
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xff);
  return bytes;
}
std::string text_value(const std::string& of) { return static_cast<char>(of.size()) + of; }

/// A process with the names that such calls have.
class FilesSample : public SampleTrace {
 public:
  FilesSample& begin(std::uint32_t pid) {
    process(pid, "app", {"main", "open", "read", "close", "dup2", "close_range", format::kDescriptorIs});
    const char* values[] = {"",          "path:s,flags:x|:r8", "fd:i4,size:u8|:r8",
                            "fd:i4|:r8", "fd:i4,to:i4|:r8",    "first:u4,last:u4,flags:x|:r8"};
    reader::Module notes = module();
    notes.index = 1;
    notes.path = "[notes]";
    for (std::uint32_t id = kOpen; id <= kDescriptorIs; ++id) {
      function(id).module = 1;
      function(id).note = true;
      function(id).values = id == kDescriptorIs ? "%is" : values[id - 1];
    }
    add_module(notes);
    return *this;
  }
  FilesSample& does(std::uint32_t function, const std::string& given, std::int64_t result, std::uint64_t from,
                    std::uint64_t to) {
    values(NoteKind::kArguments, function, given + kEnd, from).enter(function, from);
    values(NoteKind::kReturned, function, number_value(result) + kEnd, to).exit(function, to);
    return *this;
  }
  FilesSample& opens(const std::string& path, std::int64_t fd, std::uint64_t from, std::uint64_t to) {
    return does(kOpen, text_value(path) + number_value(0), fd, from, to);
  }
  FilesSample& reads(std::int64_t fd, std::int64_t got, std::uint64_t at) {
    return does(kRead, number_value(fd) + number_value(100), got, at, at + 1);
  }
  FilesSample& closes(std::int64_t fd, std::uint64_t from, std::uint64_t to) {
    return does(kClose, number_value(fd), 0, from, to);
  }
};

/// "read /a 7" of each call but those of other kinds.
std::vector<std::string> reads_of(const reader::Trace& trace, std::size_t process = 0) {
  Descriptors files(trace);
  std::vector<std::string> found;
  for (const reader::Thread& thread : trace.processes()[process].threads) {
    const reader::Calls calls = reader::rebuild_calls(trace, thread);
    for (const FileCall& call : file_calls(trace, files, thread, calls, nullptr))
      if (call.zone == kRead) found.push_back(files.name(call.file) + " " + std::to_string(call.read) + call.error);
  }
  return found;
}

TEST(Files, ResultsAreNumbersOrWhatErrnoSaid) {
  const auto shown = [](std::int64_t result) {
    return values_in("|:r8", NoteKind::kReturned, number_value(result) + kEnd).at(0).text;
  };
  EXPECT_EQ(shown(0), "0");
  EXPECT_EQ(shown(-1), "-1 EPERM");
  EXPECT_EQ(shown(-11), "-1 EAGAIN");
  EXPECT_EQ(shown(-133), "-1 EHWPOISON");
  EXPECT_EQ(shown(-41), "-41");
  EXPECT_EQ(shown(-134), "-134");
  EXPECT_EQ(shown(1LL << 40), "1099511627776");
  EXPECT_EQ(errno_name(0), "");
  EXPECT_EQ(errno_name(std::numeric_limits<std::int64_t>::min()), "");
}

// close() has let go of the number before it returns, and another thread has it already.
TEST(Files, NumberIsAnotherFileWhileItsCloseGoesOn) {
  FilesSample made;
  made.begin(1).thread(1, "a");
  made.opens("/a", 3, 1000, 1010).reads(3, 5, 1020).closes(3, 1100, 1300).reads(3, 1, 1400);
  made.thread(2, "b");
  made.opens("/b", 3, 1110, 1150).reads(3, 7, 1160);
  EXPECT_EQ(reads_of(made.open()), (std::vector<std::string>{"/a 5", "/b 1", "/b 7"}));
}

TEST(Files, DuplicatesRangesAndChildren) {
  FilesSample made;
  made.begin(1).thread(1, "a");
  made.opens("/a", 3, 1000, 1010).opens("/b", 4, 1020, 1030);
  made.does(kDup2, number_value(3) + number_value(4), 4, 1040, 1050).reads(4, 1, 1060);
  made.does(kCloseRange, number_value(4) + number_value(0xffffffff) + number_value(0), 0, 1070, 1080)
      .reads(4, -9, 1090);
  made.reads(3, 2, 1100);
  made.begin(2).thread(2, "child").inherits(0, 1065);
  made.fork_of(0);
  made.reads(4, 3, 1200).closes(4, 1210, 1211).reads(4, -9, 1220);
  const reader::Trace trace = made.open();
  EXPECT_EQ(reads_of(trace), (std::vector<std::string>{"/a 1", "descriptor 4 of process 1, not known 0EBADF", "/a 2"}));
  EXPECT_EQ(reads_of(trace, 1), (std::vector<std::string>{"/a 3", "descriptor 4 of process 2, not known 0EBADF"}));
}

TEST(Files, NothingIsKnownAfterCallsAreMissing) {
  FilesSample made;
  made.begin(1).thread(1, "a");
  made.opens("/a", 3, 1000, 1010).reads(3, 1, 1020).reads(3, 2, 1220);
  made.switched({1100, 1110, 0, 0, false, 0}).switched({1200, 1210, 0, 0, true, 0});
  EXPECT_EQ(reads_of(made.open()), (std::vector<std::string>{"/a 1", "descriptor 3 of process 1, not known 2"}));
}

TEST(Files, WhatAProcessSaysAtItsStart) {
  FilesSample made;
  made.begin(1).thread(1, "a");
  made.values(NoteKind::kLog, kDescriptorIs, std::string("\2\0\0\0\0\x0b\0pipe:[1234]", 18), 1000);
  made.reads(0, 4, 1010);
  EXPECT_EQ(reads_of(made.open()), (std::vector<std::string>{"pipe:[1234] 4"}));
}

/// A log of the process's: a descriptor is open.
void says(FilesSample& made, std::uint32_t fd, const std::string& path, std::uint64_t at) {
  std::string bytes = "\2";
  for (int i = 0; i < 4; ++i) bytes += static_cast<char>(fd >> 8 * i);
  bytes += static_cast<char>(path.size());
  bytes += '\0';
  made.values(NoteKind::kLog, kDescriptorIs, bytes + path, at);
}

// Memory has wrapped: what opened it is overwritten.
TEST(Files, WhatIsSaidLaterHoldsBeforeAsFarAsNothingChanged) {
  FilesSample made;
  made.begin(1).thread(1, "a");
  made.reads(3, 1, 1000).reads(4, 2, 1010).closes(4, 1020, 1030).opens("/new", 4, 1040, 1050).reads(5, 3, 1060);
  made.does(kDup2, number_value(3) + number_value(5), 5, 1070, 1080);
  says(made, 3, "/a", 1100);
  says(made, 4, "/new", 1101);
  says(made, 5, "/a", 1102);
  made.reads(3, 4, 1200).reads(4, 5, 1210).reads(5, 6, 1220);
  EXPECT_EQ(reads_of(made.open()),
            (std::vector<std::string>{"/a 1", "descriptor 4 of process 1, not known 2",
                                      "descriptor 5 of process 1, not known 3", "/a 4", "/new 5", "/a 6"}));
}

// What the process saw may have been what a call was about to return.
TEST(Files, WhatIsSaidAmidAChangeDoesNotHoldBeforeIt) {
  FilesSample made;
  made.begin(1).thread(1, "a");
  made.reads(3, 1, 1000);
  made.does(kDup2, number_value(9) + number_value(3), 3, 1050, 1200);
  made.reads(3, 2, 1300);
  made.thread(2, "b");
  says(made, 3, "/b", 1100);
  const auto found = reads_of(made.open());
  EXPECT_EQ(found.at(0), "descriptor 3 of process 1, not known 1");
}

TEST(Files, WhatIsSaidLaterDoesNotHoldBeforeCallsThatAreMissing) {
  FilesSample made;
  made.begin(1).thread(1, "a");
  made.reads(3, 1, 1000).reads(3, 2, 1220);
  says(made, 3, "/a", 1300);
  made.switched({1100, 1110, 0, 0, false, 0}).switched({1200, 1210, 0, 0, true, 0});
  EXPECT_EQ(reads_of(made.open()), (std::vector<std::string>{"descriptor 3 of process 1, not known 1", "/a 2"}));
}

// Values of a program's, or of a torn file, may be anything.
TEST(Files, StrangeValuesAreNoFault) {
  std::mt19937_64 random(7);
  const auto any = [&] {
    const std::int64_t some[] = {0,
                                 -1,
                                 -100,
                                 3,
                                 std::numeric_limits<std::int64_t>::min(),
                                 std::numeric_limits<std::int64_t>::max(),
                                 static_cast<std::int64_t>(random())};
    return number_value(some[random() % 7]);
  };
  FilesSample made;
  made.begin(1).thread(1, "a");
  for (std::uint64_t at = 1000; at < 9000; at += 10) {
    const auto function = static_cast<std::uint32_t>(kOpen + random() % 5);
    std::string given = random() % 4 == 0 ? text_value(std::string(random() % 90, 'x')) : any() + any() + any();
    given.resize(random() % (given.size() + 1));
    made.does(function, given, static_cast<std::int64_t>(random() % 9) - 4, at, at + 5);
    if (random() % 8 == 0) made.values(NoteKind::kLog, kDescriptorIs, given, at + 6);
  }
  const reader::Trace trace = made.open();
  EXPECT_FALSE(reads_of(trace).empty());
}

}  // namespace
}  // namespace karst::analysis
