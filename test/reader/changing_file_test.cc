// Traces that others write to while they are read: large ones are mapped, so every look may see something else.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "reader/rebuilder.h"
#include "test/reader/small_trace.h"

namespace karst {
namespace {

using test::enter;
using test::leave;

constexpr std::uint32_t kBlocks = 5000;
constexpr std::uint32_t kEvents = 504;  // of a block: 20 MB in all

class ChangingFile : public testing::Test {
 protected:
  void SetUp() override {
    path_ = std::filesystem::path(testing::TempDir()) / ("karst-changing-" + std::to_string(::getpid()) + ".karst");
    auto writer = writing::TraceWriter::create(path_);
    ASSERT_TRUE(writer.ok());
    const auto small = test::small_values();
    writer->add_processes({&small.process, 1});
    writer->add_clock(small.clock);
    writer->add_modules(0, small.process.modules);
    writer->add_functions(0, small.process.functions);
    writer->add_threads(0, small.process.threads);
    std::vector<format::Event> events(kEvents);
    for (std::uint32_t block = 0; block < kBlocks; ++block) {
      const std::uint64_t ticks = 2000 + std::uint64_t{block} * kEvents;
      for (std::uint32_t i = 0; i < kEvents; ++i) events[i] = i % 2 == 0 ? enter(ticks + i, 1) : leave(ticks + i, 1);
      writer->add_block(0, 0, block, ticks, events);
    }
    ASSERT_TRUE(writer->finish().ok());
    file_ = ::open(path_.c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_GE(file_, 0);
  }
  void TearDown() override {
    ::close(file_);
    std::filesystem::remove(path_);
  }

  std::filesystem::path path_;
  int file_ = -1;
};

TEST_F(ChangingFile, OneThatIsCutShortWhileItIsReadIsNoEnd) {
  auto trace = reader::Trace::open(path_);
  ASSERT_TRUE(trace.ok());
  EXPECT_TRUE(trace->unchanged().ok());
  ASSERT_EQ(::ftruncate(file_, 4 << 20), 0);
  const auto calls = rebuild_calls(*trace, trace->processes()[0].threads[0]);
  EXPECT_LT(calls.size(), std::size_t{kBlocks} * kEvents / 2);
  const auto status = trace->unchanged();
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find(path_.string()), std::string::npos);
  // As a damaged one it can be read.
  const auto again = reader::Trace::open(path_);
  EXPECT_TRUE(again.ok() && !again->complete());
}

TEST_F(ChangingFile, OneWhoseExitsBecomeEntersIsNoEnd) {
  // What a copy of it that has no exits holds is written over it and back, as fast as it goes.
  std::vector<char> one(std::filesystem::file_size(path_) - 8192);
  ASSERT_EQ(::pread(file_, one.data(), one.size(), 4096), static_cast<ssize_t>(one.size()));
  std::vector<char> other = one;
  for (std::size_t at = 0; at + 8 <= other.size(); at += 8) {
    format::Event event = 0;
    std::memcpy(&event, other.data() + at, sizeof event);
    event &= ~static_cast<format::Event>(KARST_EVENT_EXIT_BIT);
    std::memcpy(other.data() + at, &event, sizeof event);
  }
  std::atomic<bool> stop = false;
  auto trace = reader::Trace::open(path_);
  ASSERT_TRUE(trace.ok());
  std::thread writer([&] {
    for (bool flip = true; !stop; flip = !flip) {
      const auto& bytes = flip ? other : one;
      EXPECT_EQ(::pwrite(file_, bytes.data(), bytes.size(), 4096), static_cast<ssize_t>(bytes.size()));
    }
  });
  for (int round = 0; round < 4; ++round) {
    const auto calls = rebuild_calls(*trace, trace->processes()[0].threads[0]);
    EXPECT_LE(calls.size(), std::size_t{kBlocks} * kEvents);
    (void)reader::Trace::open(path_);
  }
  stop = true;
  writer.join();
  EXPECT_FALSE(trace->unchanged().ok());
}

TEST(ChangingBlocks, MoreEntersThanWereCountedAreLeftOut) {
  std::vector<format::Event> events;
  for (std::uint32_t i = 0; i < 100'000; ++i) events.push_back(enter(1000 + i, 1));
  const reader::StoredBlock block(reader::BlockView{0, 1000, events});
  const auto small = test::small_values();
  reader::Rebuilder rebuilder(small.process, reader::EventReader(nullptr), 3);
  rebuilder.segment({&block, 1}, true, 0);
  const auto calls = rebuilder.finish();
  EXPECT_EQ(calls.size(), 3U);
  EXPECT_EQ(calls.beyond_limit, 100'000U - 3);
}

}  // namespace
}  // namespace karst
