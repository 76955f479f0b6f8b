#include "analysis/standing.h"

#include <gtest/gtest.h>

#include <vector>

namespace karst::analysis {
namespace {

using reader::kCallOpenBegin;
using reader::kCallOpenEnd;
using reader::kNoParent;

/// Rows as a thread's history has them: function, parent, marks. Row i begins at tick 100 + i.
struct Row {
  std::uint32_t function;
  std::uint32_t parent;
  std::uint8_t marks = 0;
};

std::vector<std::uint32_t> standing_functions(const std::vector<Row>& rows) {
  reader::Calls calls;
  for (std::uint32_t i = 0; i < rows.size(); ++i) {
    calls.function.push_back(rows[i].function);
    calls.begin.push_back(100 + i);
    calls.duration.push_back(1);
    calls.parent.push_back(rows[i].parent);
    calls.depth.push_back(0);
    calls.marks.push_back(rows[i].marks);
  }
  calls.last_ticks = 999;
  const reader::Thread thread;
  const Standing standing = standing_of(thread, calls);
  EXPECT_EQ(standing.last_ticks, 999U);
  std::vector<std::uint32_t> functions;
  for (const StandingCall& call : standing.calls) functions.push_back(call.function);
  return functions;
}

using Functions = std::vector<std::uint32_t>;

TEST(Standing, IsTheOpenCallsInnermostFirst) {
  EXPECT_EQ(standing_functions({}), Functions());
  EXPECT_EQ(standing_functions({{1, kNoParent}, {2, 0}}), Functions());
  // 1 calls 2, which returns after calling 3 and 4; then 5, which calls 6 and 7 and is in 7.
  EXPECT_EQ(
      standing_functions(
          {{1, kNoParent, kCallOpenEnd}, {2, 0}, {3, 1}, {4, 1}, {5, 0, kCallOpenEnd}, {6, 4}, {7, 4, kCallOpenEnd}}),
      (Functions{7, 5, 1}));
}

TEST(Standing, LeavesOutWhatOnlyLacksItsExit) {
  // 2's exit is missing: its caller went on to 3, which returned.
  EXPECT_EQ(standing_functions({{1, kNoParent, kCallOpenEnd}, {2, 0, kCallOpenEnd}, {3, 0}}), Functions{1});
  // The same at the outermost level: another call came after it.
  EXPECT_EQ(standing_functions({{1, kNoParent, kCallOpenEnd}, {2, kNoParent}}), Functions());
  // Below a call that has ended nothing is open.
  EXPECT_EQ(standing_functions({{1, kNoParent, kCallOpenEnd}, {2, 0}, {3, 1, kCallOpenEnd}}), Functions{1});
}

TEST(Standing, LeavesOutOtherStacksAndWhatWasSwitchedOff) {
  constexpr std::uint8_t kSwitched = kCallOpenEnd | reader::kCallSwitched;
  EXPECT_EQ(standing_functions({{1, kNoParent, kSwitched}, {2, kNoParent, kCallOpenEnd}}), Functions{2});
  EXPECT_EQ(standing_functions({{1, kNoParent, kCallOpenEnd}, {2, 0, reader::kCallCut}}), Functions{1});
}

TEST(Standing, SaysWhatBeganEarlier) {
  reader::Calls calls;
  calls.function.push_back(1);
  calls.begin.push_back(5);
  calls.duration.push_back(1);
  calls.parent.push_back(kNoParent);
  calls.depth.push_back(0);
  calls.marks.push_back(kCallOpenBegin | kCallOpenEnd);
  const reader::Thread thread;
  const Standing standing = standing_of(thread, calls);
  ASSERT_EQ(standing.calls.size(), 1U);
  EXPECT_TRUE(standing.calls[0].since_earlier);
  EXPECT_EQ(standing.calls[0].begin, 5U);
}

}  // namespace
}  // namespace karst::analysis
