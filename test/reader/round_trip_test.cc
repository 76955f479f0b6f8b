// What is written is what is read.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "reader/trace.h"
#include "test/reader/describe.h"
#include "test/reader/small_trace.h"
#include "write/synthetic.h"

namespace karst::test {
namespace {

namespace fs = std::filesystem;

// A directory of the test's own, removed with it.
class WriterTest : public testing::Test {
 protected:
  WriterTest() {
    std::string name = (fs::temp_directory_path() / "karst-writer-XXXXXX").string();
    directory_ = ::mkdtemp(name.data());
  }
  ~WriterTest() override { fs::remove_all(directory_); }
  std::size_t entries() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(directory_), fs::directory_iterator()));
  }
  static std::string contents(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }
  fs::path directory_;
};

TEST(RoundTrip, EveryFieldComesBack) {
  const Bytes bytes = small_trace();
  auto trace = reader::Trace::open_memory(bytes, "small");
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(all_problems(*trace), "");
  EXPECT_TRUE(trace->complete());
  EXPECT_TRUE(trace->resolved());
  EXPECT_EQ(trace->event_count(), 11U);
  EXPECT_EQ(trace->file_size(), bytes.size());
  EXPECT_EQ(describe(*trace), R"TEXT(trace 1.0 resolved complete
clock 2500000000 1
pair 1000 5000 6000 40
pair 9000 8200 9200 41
process 0 pid 4711 parent 42 flags 3 status 256 from 1000 to 9000 overwritten 5 lost 6
name "app" executable "/home/me/app" options "memory=64M"
argument "./app"
argument ""
argument "--two words"
module 0 flags 0 bias 4194304 text 4198400 4202496 loaded 1001 unloaded 0 path "/home/me/app" build-id "\x01\x00\xff"
module 1 flags 1793 bias 8323072 text 8327168 8331264 loaded 1002 unloaded 8000 path "/usr/lib/libfoo.so" build-id ""
function 1 module 0 address 4198416 filtered 0 name "main" link "main" at "/home/me/app.cc" 10
values "n:i4|:i4"
function 2 module 0 address 4198480 filtered 0 name "ns::work(int)" link "_ZN2ns4workEi" at "/home/me/app.cc" 20
function 3 module 1 address 8327184 filtered 1 name "foo\xc3\xa4" link "foo" at "foo.c" 30
inlined 1 depth 1 copies 1 name "ns::work(int)" at "/home/me/app.cc" 20 called "/home/me/app.cc" 11
inlined 2 depth 1 copies 3 name "ns::helper(int)" at "/home/me/app.h" 40 called "/home/me/app.cc" 21
inlined 2 depth 2 copies 1 name "deeper" at "/home/me/app.h" 41 called "/home/me/app.h" 42
inlined 2 depth 1 copies 1 name "other" at "" 0 called "" 0
cost of a call 2500 inside 700 off by 3100
switch off from 2 of 2 begin 8600 end 8700 reason 2
switch on from 2 of 1 begin 8800 end 8800 reason 0
switch off from 0 of 0 begin 8900 end 0 reason 1
thread 0 tid 4711 exited 0 from 1100 to 0 overwritten 3 lost 4 name "app"
block 0 ticks 1100 events 4
enter 1 1100
enter 2 1110
exit 2 1120
enter 2 1130
block 1 ticks 1140 events 5
enter 3 1140
exit 3 1150
exit 2 1160
hole
exit 1 1170
thread 7 tid 4712 exited 1 from 1200 to 8500 overwritten 1 lost 2 name "worker"
block 0 ticks 1200 events 2
enter 2 1200
exit 2 1300
untraced "/usr/bin/su" "is setuid or setgid"
untraced "/busybox" ""
source "/home/me/app.cc" "int main() {\x0a  return 0;\x0a}\x0a"
states by 2 flags 11 error 50 cpus 2 from 1000 to 9000 lost 3 overwritten 4 faults 5 migrations 6 note "nothing better"
task 99 of 98 run 0 tracer 1 name "other"
task 4711 of 4711 run 1 tracer 0 name "app"
task 4712 of 4711 run 1 tracer 0 name "worker"
state 1000 kind 7 tid 4712 other 99 value 1135363 cpu 1
state 1050 kind 1 tid 0 other 4711 value 338 cpu 0
state 1060 kind 1 tid 0 other 4712 value 0 cpu 1
state 1110 kind 5 tid 4711 other 0 value 202 cpu 0
state 1120 kind 1 tid 4711 other 0 value 83 cpu 0
state 1130 kind 2 tid 4711 other 4712 value 0 cpu 1
state 1135 kind 1 tid 0 other 4711 value 0 cpu 0
state 1160 kind 1 tid 4711 other 99 value 338 cpu 0
state 1200 kind 8 tid 0 other 0 value 0 cpu 0
state 1300 kind 9 tid 0 other 0 value 3 cpu 0
series kind 1 of 2 pid 4711 tid 0 flags 0
point 1000 value 0
point 1100 value 30
point 1300 value 50
series kind 21 of 0 pid 0 tid 0 flags 0
point 1000 value -5000
series kind 3 of 3 pid 4711 tid 4712 flags 1
point 1200 value 7
point 8000 value 9
)TEXT");
}

TEST(RoundTrip, ALargeTraceIsSplitCompressedAndWhole) {
  Bytes bytes;
  auto writer = writing::TraceWriter::to_memory(bytes);
  writing::SyntheticTrace wanted;
  wanted.events = 400'000;
  wanted.threads = 3;
  wanted.functions = 20'000;
  wanted.shape = writing::SyntheticShape::kRandom;
  add_synthetic(writer, wanted);
  ASSERT_TRUE(writer.finish().ok());
  auto trace = reader::Trace::open_memory(bytes, "large");
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(all_problems(*trace), "");
  EXPECT_EQ(trace->event_count(), 399'996U);
  ASSERT_EQ(trace->processes()[0].functions.size(), 20'001U);
  EXPECT_EQ(trace->processes()[0].functions[20'000].name, "synthetic::Worker::step_19999(int)");
  EXPECT_LT(bytes.size() - 8 * 400'000, 1'500'000U) << "names and text are compressed";
  for (const auto& thread : trace->processes()[0].threads) {
    const auto calls = rebuild_calls(*trace, thread);
    EXPECT_EQ(calls.size(), 66'666U);
    EXPECT_EQ(calls.unmatched_exits + calls.missing_exits + calls.unknown_ids + calls.out_of_order, 0U);
  }
}

TEST(RoundTrip, SeveralProcessesKeepApart) {
  Bytes bytes;
  auto writer = writing::TraceWriter::to_memory(bytes);
  std::vector<reader::Process> processes(2);
  processes[0].index = 3;
  processes[0].name = "child";
  processes[1].index = 1;
  processes[1].name = "parent";
  writer.add_processes(processes);
  reader::Function function;
  function.id = 1;
  function.address = 0x10;
  writer.add_functions(3, {&function, 1});
  const format::Event one[] = {enter(5, 1)};
  const format::Event two[] = {enter(6, 1), leave(7, 1)};
  writer.add_block(1, 0, 0, 5, one);
  writer.add_block(3, 0, 0, 6, two);
  ASSERT_TRUE(writer.finish().ok());
  auto trace = reader::Trace::open_memory(bytes, "two");
  ASSERT_TRUE(trace.ok());
  ASSERT_EQ(trace->processes().size(), 2U);
  EXPECT_EQ(trace->processes()[0].name, "parent");
  EXPECT_EQ(trace->processes()[1].name, "child");
  EXPECT_EQ(trace->processes()[0].functions.size(), 1U);
  const auto& thread = trace->processes()[1].threads.at(0);
  EXPECT_EQ(thread.process, 1U);
  EXPECT_EQ(trace->blocks(thread)[0].size(), 2U);
}

TEST_F(WriterTest, TheFinalNameAppearsOnlyWithFinish) {
  const auto path = directory_ / "a.karst";
  {
    auto writer = writing::TraceWriter::create(path);
    ASSERT_TRUE(writer.ok()) << writer.error().message;
    add_small(*writer, small_values());
    EXPECT_FALSE(fs::exists(path));
    ASSERT_TRUE(writer->finish().ok());
  }
  EXPECT_EQ(entries(), 1U);
  auto trace = reader::Trace::open(path);
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(trace->name(), path.string());
  EXPECT_EQ(describe(*trace), describe(*reader::Trace::open_memory(small_trace(), "")));
  EXPECT_EQ(fs::status(path).permissions() & fs::perms::mask, fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(WriterTest, EventsAreKeptBeforeNamesAre) {
  const auto path = directory_ / "a.karst";
  std::ofstream(path) << "old";
  auto writer = writing::TraceWriter::create(path);
  ASSERT_TRUE(writer.ok()) << writer.error().message;
  const reader::Process process = small_values().process;
  writer->add_processes({&process, 1});
  writer->add_clock(small_values().clock);
  writer->add_modules(0, process.modules);
  writer->add_functions(0, process.functions);
  ASSERT_TRUE(writer->keep_events().ok());
  EXPECT_EQ(entries(), 1U);
  const std::string raw = contents(path);
  {
    auto trace = reader::Trace::open(path);
    ASSERT_TRUE(trace.ok()) << trace.error().message;
    for (const reader::Problem& p : trace->problems()) ADD_FAILURE() << "a raw trace is a whole one: " << p.message;
    EXPECT_FALSE(trace->resolved());
  }
  writer->add_symbols(0, process.functions);
  EXPECT_EQ(contents(path), raw) << "nothing is half there";
  ASSERT_TRUE(writer->finish().ok());
  EXPECT_EQ(entries(), 1U);
  auto trace = reader::Trace::open(path);
  ASSERT_TRUE(trace.ok());
  EXPECT_TRUE(trace->problems().empty());
  EXPECT_TRUE(trace->resolved());
  EXPECT_EQ(trace->processes()[0].functions.at(1).name, process.functions.at(1).name);
}

TEST_F(WriterTest, NamesThatFindNoRoomLeaveTheRawTrace) {
  const auto path = directory_ / "a.karst";
  auto writer = writing::TraceWriter::create(path);
  ASSERT_TRUE(writer.ok()) << writer.error().message;
  const reader::Process process = small_values().process;
  writer->add_processes({&process, 1});
  writer->add_clock(small_values().clock);
  writer->add_modules(0, process.modules);
  writer->add_functions(0, process.functions);
  ASSERT_TRUE(writer->keep_events().ok());
  const std::string raw = contents(path);
  std::string noise(2U << 20U, ' ');
  std::uint32_t random = 1;
  for (char& c : noise) c = static_cast<char>(' ' + ((random = random * 1664525 + 1013904223) >> 26U));
  writer->add_source("/a.cc", noise);
  rlimit old{};
  ::getrlimit(RLIMIT_FSIZE, &old);
  rlimit small = old;
  small.rlim_cur = 1U << 20U;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto status = writer->finish();
  ::setrlimit(RLIMIT_FSIZE, &old);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find("it has all events, and 'karst resolve'"), std::string::npos)
      << status.error().message;
  EXPECT_EQ(contents(path), raw);
}

// Enters and exits of function 1 in steps of time that no packing makes small.
std::vector<format::Event> noisy_events(std::size_t calls, std::uint64_t& ticks) {
  std::vector<format::Event> events;
  std::uint32_t random = 1;
  for (std::size_t i = 0; i < 2 * calls; ++i) {
    ticks += 1 + ((random = random * 1664525 + 1013904223) >> 12U);
    events.push_back(format::make_event(ticks, i % 2 == 1, 1));
  }
  return events;
}

TEST_F(WriterTest, AFileThatGrowsIsReadAtAnyTime) {
  const auto path = directory_ / "a.karst";
  auto writer = writing::TraceWriter::create(path);
  ASSERT_TRUE(writer.ok()) << writer.error().message;
  writer->pack_events();
  SmallTrace small = small_values();
  add_small(*writer, small);
  EXPECT_EQ(entries(), 0U);
  ASSERT_TRUE(writer->grow().ok());
  writer->flush();
  {
    auto trace = reader::Trace::open(path);
    ASSERT_TRUE(trace.ok()) << trace.error().message;
    EXPECT_TRUE(trace->growing());
    EXPECT_FALSE(trace->complete());
    EXPECT_EQ(trace->event_count(), 11U);
    ASSERT_EQ(trace->problems().size(), 1U);
    EXPECT_NE(trace->problems()[0].message.find("its recording goes on"), std::string::npos);
    // What is added meanwhile changes nothing of what was opened.
    small.process.end_ticks = 1'000'000'000;
    writer->add_processes({&small.process, 1});
    writer->flush();
    EXPECT_TRUE(trace->unchanged().ok());
  }
  ASSERT_TRUE(writer->finish().ok());
  auto trace = reader::Trace::open(path);
  ASSERT_TRUE(trace.ok());
  for (const reader::Problem& p : trace->problems()) ADD_FAILURE() << p.message;
  EXPECT_TRUE(trace->complete());
  EXPECT_FALSE(trace->growing());
  EXPECT_EQ(trace->processes().at(0).end_ticks, 1'000'000'000U);
}

TEST_F(WriterTest, AFileThatGrowsEndsWithTheLastChunkThatFoundRoom) {
  const auto path = directory_ / "a.karst";
  auto writer = writing::TraceWriter::create(path);
  ASSERT_TRUE(writer.ok()) << writer.error().message;
  std::size_t packs = 0;
  std::uint64_t events = 0, last = 0;
  writer->pack_events([&](const format::PackedHeader& header, std::uint64_t offset, std::uint32_t size) {
    ++packs;
    last = offset + size;
    if (last < (2U << 20U)) events += header.event_count;
  });
  add_small(*writer, small_values());
  ASSERT_TRUE(writer->grow().ok());
  rlimit old{};
  ::getrlimit(RLIMIT_FSIZE, &old);
  rlimit least = old;
  least.rlim_cur = 2U << 20U;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &least), 0);
  std::uint64_t ticks = 5'000'000;
  for (std::uint64_t block = 0; block < 60; ++block) {
    const std::uint64_t begin = ticks;
    writer->add_block(0, 77, block, begin, noisy_events(15'000, ticks));
  }
  writer->flush();
  const std::string why = writer->cut_back();
  EXPECT_NE(why.find("too large"), std::string::npos) << why;
  EXPECT_EQ(writer->cut_back(), "");
  EXPECT_GT(last, 2U << 20U);
  ::setrlimit(RLIMIT_FSIZE, &old);
  EXPECT_LT(fs::file_size(path), 2U << 20U);
  EXPECT_GT(fs::file_size(path), 1U << 20U);
  ASSERT_TRUE(writer->finish().ok());
  auto trace = reader::Trace::open(path);
  ASSERT_TRUE(trace.ok());
  for (const reader::Problem& p : trace->problems())
    EXPECT_NE(p.message.find("thread 77"), std::string::npos) << p.message;
  EXPECT_TRUE(trace->complete());
  EXPECT_EQ(trace->event_count(), events);
}

TEST_F(WriterTest, NumberedNamesAreTheFirstThatIsFree) {
  const std::string stem = (directory_ / "app-7").string();
  std::ofstream(stem + "-1.karst") << "there already";
  for (int number = 2; number < 4; ++number) {
    auto writer = writing::TraceWriter::create_numbered(stem);
    ASSERT_TRUE(writer.ok()) << writer.error().message;
    EXPECT_EQ(entries(), static_cast<std::size_t>(number) - 1);
    add_small(*writer, small_values());
    ASSERT_TRUE(writer->finish().ok());
    EXPECT_EQ(writer->path(), stem + "-" + std::to_string(number) + ".karst");
  }
  EXPECT_EQ(contents(stem + "-1.karst"), "there already");
  EXPECT_EQ(entries(), 3U);
}

TEST_F(WriterTest, AnAbandonedTraceLeavesNothingAndTheOldFileAlone) {
  const auto path = directory_ / "a.karst";
  std::ofstream(path) << "old";
  {
    auto writer = writing::TraceWriter::create(path);
    ASSERT_TRUE(writer.ok());
    add_small(*writer, small_values());
  }
  EXPECT_EQ(entries(), 1U);
  EXPECT_EQ(fs::file_size(path), 3U);
}

TEST_F(WriterTest, UnwritablePlacesAreRefusedAtOnce) {
  const auto refused = [](const fs::path& path) {
    auto writer = writing::TraceWriter::create(path);
    return writer.ok() ? std::string("accepted") : writer.error().message;
  };
  EXPECT_NE(refused(directory_).find("is a directory"), std::string::npos);
  EXPECT_NE(refused(directory_ / "missing" / "a.karst").find("No such file or directory"), std::string::npos);
  EXPECT_NE(refused("/dev/null").find("not a regular file"), std::string::npos);
  EXPECT_NE(refused("").find("empty"), std::string::npos);
  EXPECT_NE(refused(directory_ / (std::string(300, 'x'))).find("too long"), std::string::npos);
  if (::geteuid() != 0) {
    fs::permissions(directory_, fs::perms::owner_read | fs::perms::owner_exec);
    EXPECT_NE(refused(directory_ / "a.karst").find("Permission denied"), std::string::npos);
    fs::permissions(directory_, fs::perms::owner_all);
  }
  EXPECT_EQ(entries(), 0U);
}

TEST_F(WriterTest, ALinkIsFollowedNotReplaced) {
  const auto target = directory_ / "target.karst";
  const auto link = directory_ / "link.karst";
  std::ofstream(target) << "old";
  fs::create_symlink("target.karst", link);
  auto writer = writing::TraceWriter::create(link);
  ASSERT_TRUE(writer.ok()) << writer.error().message;
  add_small(*writer, small_values());
  ASSERT_TRUE(writer->finish().ok());
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_TRUE(reader::Trace::open(target).ok());
}

TEST_F(WriterTest, AFullDiskSaysHowMuchWasNeededAndKeepsNothing) {
  const auto path = directory_ / "a.karst";
  rlimit old{};
  ::getrlimit(RLIMIT_FSIZE, &old);
  rlimit small = old;
  small.rlim_cur = 2 << 20;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  std::string message;
  std::uint64_t needed = 0;
  {
    auto writer = writing::TraceWriter::create(path);
    ASSERT_TRUE(writer.ok());
    writing::SyntheticTrace wanted;
    wanted.events = 1'000'000;
    add_synthetic(*writer, wanted);
    EXPECT_TRUE(writer->failed());
    const auto status = writer->finish();
    ASSERT_FALSE(status.ok());
    message = status.error().message;
    needed = writer->size();
  }
  ::setrlimit(RLIMIT_FSIZE, &old);
  EXPECT_GT(needed, 8'000'000U);
  EXPECT_NE(message.find(std::to_string(needed) + " bytes"), std::string::npos) << message;
  EXPECT_NE(message.find("File too large"), std::string::npos) << message;
  EXPECT_EQ(entries(), 0U);
}

TEST(Writer, TextsThatDoNotFitAreRefusedOrCutNotWrittenWrongly) {
  Bytes bytes;
  auto writer = writing::TraceWriter::to_memory(bytes);
  const std::string long_text(format::kMaxChunkSize, 'x');
  EXPECT_FALSE(writer.add_source("huge.cc", long_text));
  EXPECT_TRUE(writer.add_source("small.cc", "x"));
  ASSERT_TRUE(writer.finish().ok());
  auto trace = reader::Trace::open_memory(bytes, "t");
  ASSERT_TRUE(trace.ok());
  ASSERT_EQ(trace->sources().size(), 1U);
  EXPECT_EQ(trace->sources()[0].path, "small.cc");
}

}  // namespace
}  // namespace karst::test
