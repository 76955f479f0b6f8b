#include "base/descriptor.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <utility>

#include "base/hex.h"

namespace karst {
namespace {

bool is_open(int number) { return fcntl(number, F_GETFD) >= 0; }

TEST(Descriptor, ClosesWhatItOwnsOnce) {
  int number = -1;
  {
    Descriptor made(open("/dev/null", O_RDONLY | O_CLOEXEC));
    ASSERT_TRUE(made);
    number = made.get();
    const Descriptor moved = std::move(made);
    EXPECT_EQ(moved.get(), number);
    EXPECT_TRUE(is_open(number));
  }
  EXPECT_FALSE(is_open(number));
}

TEST(Descriptor, GivesWhatItOwnsAway) {
  Descriptor made(open("/dev/null", O_RDONLY | O_CLOEXEC));
  const int number = made.release();
  EXPECT_FALSE(made);
  made = Descriptor();
  EXPECT_TRUE(is_open(number));
  Descriptor again(number);
  EXPECT_TRUE(again.close());
  EXPECT_FALSE(is_open(number));
}

TEST(Descriptor, AnotherTakesItsPlace) {
  Descriptor one(open("/dev/null", O_RDONLY | O_CLOEXEC));
  const int first = one.get();
  one = Descriptor(open("/dev/null", O_RDONLY | O_CLOEXEC));
  EXPECT_FALSE(is_open(first));
  EXPECT_TRUE(one);
}

// As the numbers that open_regular() returns.
TEST(Descriptor, ANegativeNumberIsNone) { EXPECT_FALSE(Descriptor(-2)); }

TEST(Hex, HasTwoDigitsAByte) {
  EXPECT_EQ(hex({"\x00\x7f\xff", 3}), "007fff");
  EXPECT_EQ(hex({}), "");
}

}  // namespace
}  // namespace karst
