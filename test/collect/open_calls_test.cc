// What is open after some events, and what a hostile arena may say in them.
#include "collect/open_calls.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "format/event.h"

namespace karst::collect {
namespace {

using namespace format;

constexpr std::uint64_t kBlockTicks = std::uint64_t{7} << 40;
constexpr std::uint64_t kEver = ~std::uint64_t{0};

// Function 9 is the tail call's id of function 3.
std::uint64_t address_of(std::uint32_t id) { return id == 9 ? 0x3000 : std::uint64_t{id} * 0x1000; }

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
    calls.consume(events, kBlockTicks, until, address_of);
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
  mark(Mark::kSwitched), place(51), place(61);
  EXPECT_EQ(open(), (Ids{5}));
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

/// The rules said plainly, at any cost.
struct Plain {
  std::vector<OpenItem> items;
  std::size_t base = 0;
  std::map<std::uint64_t, std::vector<OpenItem>> aside;
  bool complete = true;

  void forget() { *this = {{}, 0, {}, false}; }
  void cut(std::size_t size) {
    items.resize(size);
    base = std::min(base, size);
  }
  void leave(std::uint32_t id) {
    bool any = false;
    for (std::size_t at = items.size(); at-- != 0;) {
      if (items[at].function == 0) continue;
      if (address_of(items[at].function) == address_of(id)) return cut(at);
      any = true;
    }
    complete = complete && any;
  }
  void set_place(std::uint64_t ticks, std::uint64_t place) {
    std::erase_if(items, [=](const OpenItem& i) { return i.function == 0 && i.place == place; });
    cut(items.size());
    items.push_back({ticks, 0, place});
  }
  void jump(std::uint64_t place) {
    for (std::size_t at = items.size(); at-- != 0;)
      if (items[at].function == 0 && items[at].place == place) return cut(at + 1);
    forget();
  }
  void switch_stack(std::uint64_t from, std::uint64_t to) {
    aside[from] = {items.begin() + static_cast<std::ptrdiff_t>(base), items.end()};
    const auto known = aside.find(to);
    if (known == aside.end()) {
      base = items.size();
      return;
    }
    items = known->second;
    base = 0;
    aside.erase(known);
  }
};

TEST_F(OpenCallsTest, IsWhatThePlainRulesSay) {
  std::mt19937_64 random(15);
  for (int round = 0; round < 400; ++round) {
    const bool switches = round % 2 != 0;  // a place belongs to one stack
    const std::uint64_t leaving = random() % 4 + 2;
    Plain plain;
    calls = OpenCalls();
    std::uint64_t last = 0;
    for (int i = 0; i < 3000; ++i) {
      events.clear();
      const auto id = static_cast<std::uint32_t>(random() % 9 + 1);
      const std::uint64_t one = random() % 6 + 1;
      const std::uint64_t other = random() % 6 + 1;
      const std::uint64_t what = random() % 40;
      if (what == 0 && switches) {
        mark(Mark::kSwitched), place(one), place(other);
        plain.switch_stack(one, other);
      } else if (what < 4 && !switches) {
        set_place(one);
        plain.set_place(last, one);
      } else if (what == 4 && !switches) {
        mark(Mark::kJumped), place(one);
        plain.jump(one);
      } else if (what % leaving == 0) {
        exit(id);
        last = kBlockTicks + ticks;
        plain.leave(id);
      } else {
        enter(id);
        last = kBlockTicks + ticks;
        plain.items.push_back({last, id, 0});
      }
      calls.consume(events, kBlockTicks, kEver, address_of);
      ASSERT_EQ(calls.complete(), plain.complete) << round << " " << i;
      if (i % 10 != 0) continue;
      const auto same = [](const OpenItem& a, const OpenItem& b) {
        return a.ticks == b.ticks && a.function == b.function && a.place == b.place;
      };
      const std::vector<OpenItem> items = calls.items();
      ASSERT_TRUE(std::equal(items.begin(), items.end(), plain.items.begin(), plain.items.end(), same))
          << round << " " << i;
    }
  }
}

// What a hostile process can make it do is counted in questions for addresses.
TEST_F(OpenCallsTest, ExitsOfNoCallOnADeepStackCostNoSearchEach) {
  constexpr std::uint64_t kDeep = 100'000;
  for (std::uint64_t i = 0; i < kDeep; ++i) enter(1 + i % 5);
  for (std::uint64_t i = 0; i < kDeep; ++i) exit(10 + i % 5);
  std::uint64_t asked = 0;
  const auto counted = [&asked](std::uint32_t id) {
    if (++asked > 100 * kDeep) throw std::runtime_error("asked too often");
    return address_of(id);
  };
  calls.consume(events, kBlockTicks, kEver, counted);
  EXPECT_FALSE(calls.complete());
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
