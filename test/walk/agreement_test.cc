// Random events, sensible and not, through all that read them; the traces of the ways-out corpus go the same way
// (test/e2e/ways_out.py).
#include "test/walk/agreement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "test/reader/small_trace.h"
#include "write/trace_writer.h"

namespace karst::test {
namespace {

using format::Event;
using format::Mark;

class RandomThread {
 public:
  explicit RandomThread(std::uint64_t seed) : random_(seed) {}

  std::vector<Event> events(std::size_t count) {
    std::vector<Event> words;
    const std::uint64_t leaving = 2 + random_() % 3;
    const bool stacks = random_() % 2 != 0;
    const bool sensible = random_() % 2 != 0;
    while (words.size() < count) {
      ticks_ += random_() % 5;
      const auto id = static_cast<std::uint32_t>(random_() % 9 + 1);
      const auto mark = [&](Mark m) { words.push_back(format::make_mark(ticks_, m)); };
      const auto place = [&] { return format::make_place((random_() % 6 + 1) << 4); };
      const std::uint64_t what = random_() % 60;
      if (what == 0 && stacks) {
        mark(Mark::kSwitched);
        words.insert(words.end(), {place(), place()});
      } else if (what == 1) {
        words.push_back(format::make_place((random_() % 6 + 1) << 4, Mark::kSetPlace));
      } else if (what == 2) {
        mark(Mark::kJumped);
        words.push_back(place());
      } else if (what == 3) {
        words.push_back(random_() % 2 != 0 ? Event{0} : format::make_mark(ticks_, Mark::kPad));
      } else if (what % leaving != 0) {
        open_.push_back(id);
        words.push_back(enter(ticks_, id));
      } else {
        std::uint32_t ends = id;
        if ((sensible || random_() % 8 != 0) && !open_.empty()) {
          ends = open_.back();
          open_.pop_back();
        }
        if (what % 7 == 0) mark(Mark::kUnwound);
        words.push_back(leave(ticks_, ends + (what % 5 == 0 ? 10 : 0)));
      }
    }
    return words;
  }
  std::uint64_t now() const { return ticks_; }
  std::uint64_t any(std::uint64_t below) { return random_() % below; }

 private:
  std::mt19937_64 random_;
  std::vector<std::uint32_t> open_;
  std::uint64_t ticks_ = 1000;
};

TEST(Agreement, RandomEventsMeanTheSameToAll) {
  std::size_t of_budget = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Bytes bytes;
    auto writer = writing::TraceWriter::to_memory(bytes);
    writer.add_functions(0, paired_functions());
    RandomThread thread(seed);
    std::uint64_t sequence = thread.any(2);
    for (int block = 0; block < 6; ++block) {
      const std::uint64_t begin = thread.now();
      writer.add_block(0, 0, sequence, begin, thread.events(100 + thread.any(200)));
      sequence += seed % 3 == 0 && thread.any(4) == 0 ? 2 : 1;
    }
    ASSERT_TRUE(writer.finish().ok());
    const auto trace = reader::Trace::open_memory(bytes, "t");
    ASSERT_TRUE(trace.ok());
    const Agreement agreement = agreement_on(*trace);
    ASSERT_THAT(agreement.wrong, testing::IsEmpty()) << "seed " << seed;
    of_budget += agreement.threads_of_budget;
  }
  EXPECT_GT(of_budget, 200U);
}

}  // namespace
}  // namespace karst::test
