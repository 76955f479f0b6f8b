// Several tables of one source: each thread's calls are rebuilt once, and once or twice more to find what is slow.
#include "sql/gathered.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "answers/notes.h"
#include "sql/tables.h"
#include "write/synthetic.h"

namespace karst::sql {
namespace {

constexpr std::uint32_t kThreads = 7;

class GatheredTest : public testing::Test {
 protected:
  GatheredTest() {
    auto writer = writing::TraceWriter::to_memory(bytes_);
    writing::SyntheticTrace wanted;
    wanted.events = 20'000;
    wanted.threads = kThreads;
    wanted.request_events = 100;
    writing::add_synthetic(writer, wanted);
    if (!writer.finish()) throw std::runtime_error("no trace");
    trace_.emplace(std::move(*reader::Trace::open_memory(bytes_, "made")));
    for (const reader::Thread& thread : trace_->processes()[0].threads) threads_.push_back(&thread);
    source_.emplace(
        Source{*trace_, threads_, [this](const reader::Thread& thread, reader::Calls&) { ++chosen_[thread.index]; }});
  }
  static std::size_t rows(const Table& table, Gathered& gathered) {
    std::size_t count = 0;
    each_row(table, gathered, [&](const void*) {
      ++count;
      return true;
    });
    return count;
  }

  std::vector<std::byte> bytes_;
  std::optional<reader::Trace> trace_;
  std::vector<const reader::Thread*> threads_;
  std::optional<Source> source_;
  std::array<std::atomic<int>, kThreads> chosen_{};
};

TEST_F(GatheredTest, ByTheWayOfCallsIsOneWalk) {
  Gathered alone(*source_), together(*source_);
  std::map<std::string, std::size_t> wanted;
  for (const Table& table : tables()) wanted[table.relation->name] = rows(table, alone);
  EXPECT_GT(wanted["notes"], 100U);
  EXPECT_GT(wanted["requests"], 10U);
  EXPECT_GT(chosen_[0], 3);
  for (auto& times : chosen_) times = 0;
  together.by_the_way(tables());
  for (const Table& table : tables()) EXPECT_EQ(rows(table, together), wanted[table.relation->name]);
  // Slow calls are found when all calls have been seen, and told when all are found.
  for (const auto& times : chosen_) EXPECT_TRUE(times == 2 || times == 3) << times;
}

TEST_F(GatheredTest, ThreadsComeInOrderFromWhoeverRebuildsThem) {
  for (int round = 0; round < 20; ++round) {
    Gathered gathered(*source_);
    gathered.by_the_way(tables());
    std::atomic<std::size_t> next{0};
    {
      std::vector<std::jthread> workers;
      for (int i = 0; i < 3; ++i)
        workers.emplace_back([&] {
          for (std::size_t at = next++; at < kThreads; at = next++) gathered.calls_of(at);
        });
    }
    const auto notes = std::find_if(tables().begin(), tables().end(),
                                    [](const Table& table) { return table.relation->name == "notes"; });
    std::uint32_t before = 0;
    each_row(*notes, gathered, [&](const void* row) {
      const std::uint32_t thread = static_cast<const answers::NoteRow*>(row)->thread.index;
      EXPECT_GE(thread, before);
      before = thread;
      return true;
    });
    EXPECT_EQ(before, kThreads - 1);
  }
}

TEST_F(GatheredTest, ThreadsThatNobodyAskedForAreGoneThroughInTheEnd) {
  Gathered gathered(*source_);
  gathered.by_the_way(tables());
  gathered.calls_of(0);
  Gathered alone(*source_);
  for (const Table& table : tables()) {
    if (table.gatherer == nullptr) continue;
    EXPECT_EQ(rows(table, gathered), rows(table, alone)) << table.relation->name;
  }
}

TEST(Turnstile, WhoFailsLetsTheNextOneIn) {
  Turnstile turnstile;
  EXPECT_THROW(turnstile.pass(0, [] { throw std::runtime_error("no memory"); }), std::runtime_error);
  bool passed = false;
  turnstile.pass(1, [&] { passed = true; });
  EXPECT_TRUE(passed);
  turnstile.pass(0, [] { FAIL() << "it has had its turn"; });
}

}  // namespace
}  // namespace karst::sql
