// What is open after some events, and what a hostile arena may say in them.
#include "collect/record/open_calls.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "format/event.h"

namespace karst::collect {
namespace {

using namespace format;

constexpr std::uint64_t kBlockTicks = std::uint64_t{7} << 40;
constexpr std::uint64_t kEver = ~std::uint64_t{0};

// Function 9 is the tail call's id of function 3.
std::uint32_t tail_owner(std::uint32_t id) { return id == 9 ? 3 : 0; }

class OpenCallsTest : public testing::Test {
 protected:
  void enter(std::uint32_t id) { events.push_back(make_event(++ticks, false, id)); }
  void exit(std::uint32_t id) { events.push_back(make_event(++ticks, true, id)); }
  void mark(Mark m) { events.push_back(make_mark(++ticks, m)); }
  void place(std::uint64_t at) { events.push_back(make_place(at << 4)); }
  void set_place(std::uint64_t at) { events.push_back(make_place(at << 4, Mark::kSetPlace)); }

  /// Functions that are open, outermost first; places are left out.
  std::vector<std::uint32_t> open(std::uint64_t until = kEver) {
    calls = OpenCalls();
    calls.consume(events, kBlockTicks, until, tail_owner);
    std::vector<std::uint32_t> ids;
    for (const OpenItem& item : calls.items())
      if (item.function != 0) ids.push_back(item.function);
    return ids;
  }

  std::uint64_t ticks = 100;
  std::vector<Event> events;
  OpenCalls calls;
};

using Ids = std::vector<std::uint32_t>;

TEST_F(OpenCallsTest, EntersWithoutExitsWithTheirTimes) {
  enter(1), enter(2), exit(2), enter(3), enter(4), exit(4);
  EXPECT_EQ(open(), (Ids{1, 3}));
  EXPECT_TRUE(calls.complete());
  EXPECT_EQ(calls.items()[0].ticks, kBlockTicks + 101);
  EXPECT_EQ(calls.items()[1].ticks, kBlockTicks + 104);
  EXPECT_EQ(count_calls(calls.items()), 2U);
}

TEST_F(OpenCallsTest, NothingAfterTheMoment) {
  enter(1), enter(2), exit(2), exit(1);
  EXPECT_EQ(open(kBlockTicks + 102), (Ids{1, 2}));
  EXPECT_EQ(open(kBlockTicks + 103), (Ids{1}));
  EXPECT_EQ(open(kBlockTicks + 100), (Ids{}));
}

TEST_F(OpenCallsTest, ExitOfAnOuterCallEndsTheInnerOnes) {
  enter(1), enter(2), enter(3), exit(1), enter(4);
  EXPECT_EQ(open(), (Ids{4}));
}

TEST_F(OpenCallsTest, TailCallsExitEndsItsFunction) {
  enter(1), enter(3), exit(9), enter(4);
  EXPECT_EQ(open(), (Ids{1, 4}));
}

TEST_F(OpenCallsTest, ExceptionsEndTheCallsThatTheyLeave) {
  enter(1), enter(2), enter(3), mark(Mark::kUnwound), exit(3), mark(Mark::kUnwound), exit(2), enter(4);
  EXPECT_EQ(open(), (Ids{1, 4}));
}

TEST_F(OpenCallsTest, JumpsEndWhatBeganSinceThePlaceWasSet) {
  enter(1), set_place(77), enter(2), enter(3), mark(Mark::kJumped), place(77), enter(4);
  EXPECT_EQ(open(), (Ids{1, 4}));
  // The child may jump there too: the place stays, behind the call that it lies in.
  ASSERT_EQ(calls.items().size(), 3U);
  EXPECT_EQ(calls.items()[1].place, 77U);
  exit(1);
  EXPECT_EQ(open(), (Ids{}));
}

TEST_F(OpenCallsTest, JumpToAPlaceThatIsNotKnownLeavesNothingKnown) {
  enter(1), enter(2), mark(Mark::kJumped), place(78), enter(3);
  EXPECT_EQ(open(), (Ids{3}));
  EXPECT_FALSE(calls.complete());
}

TEST_F(OpenCallsTest, StacksAreSwitchedAndComeBack) {
  enter(1), enter(2), mark(Mark::kSwitched), place(50), place(60), enter(5);
  EXPECT_EQ(open(), (Ids{1, 2, 5}));
  mark(Mark::kSwitched), place(61), place(50), exit(2), enter(3);
  EXPECT_EQ(open(), (Ids{1, 3}));
  mark(Mark::kSwitched), place(51), place(61);  // which is above the one that switched to it, as before
  EXPECT_EQ(open(), (Ids{1, 3, 5}));
}

TEST_F(OpenCallsTest, ExitWithoutAnEnterMeansThatSomethingIsMissing) {
  exit(4), enter(1);
  EXPECT_EQ(open(), (Ids{1}));
  EXPECT_FALSE(calls.complete());
}

TEST_F(OpenCallsTest, SurvivesAnyEvents) {
  std::mt19937_64 random(20261121);
  for (int round = 0; round < 300; ++round) {
    events.clear();
    for (int i = 0; i < 504; ++i) {
      const auto id = static_cast<std::uint32_t>(random() % 12);
      switch (random() % 4) {
        case 0:
          events.push_back(random());
          break;
        case 1:
          events.push_back(make_mark(random() % 64, static_cast<Mark>(kMaxFunctionId + 1 + random() % 8)));
          break;
        default:
          events.push_back(make_event(random() % 1000, random() % 2 != 0, id));
      }
    }
    open();
    EXPECT_LE(calls.items().size(), events.size());
  }
}

// Such an exit ends nothing, and what is open stays known. That it takes no search, the walker's tests show.
TEST_F(OpenCallsTest, ExitsOfNoCallOnADeepStackCostNoSearchEach) {
  constexpr std::uint64_t kDeep = 100'000;
  for (std::uint64_t i = 0; i < kDeep; ++i) enter(1 + i % 5);
  for (std::uint64_t i = 0; i < kDeep; ++i) exit(10 + i % 5);
  std::uint64_t asked = 0;
  const auto counted = [&asked](std::uint32_t id) {
    ++asked;
    return tail_owner(id);
  };
  calls.consume(events, kBlockTicks, kEver, counted);
  EXPECT_TRUE(calls.complete());
  EXPECT_EQ(count_calls(calls.items()), kDeep);
  EXPECT_LE(asked, kDeep);
}

TEST_F(OpenCallsTest, AStackDeeperThanAnyForgetsInsteadOfGrowing) {
  for (int i = 0; i < 2'200'000; ++i) enter(1);
  const auto ids = open();
  EXPECT_FALSE(calls.complete());
  EXPECT_LT(ids.size(), 1U << 20);
  EXPECT_FALSE(ids.empty());
}

}  // namespace
}  // namespace karst::collect
