#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

#include "base/uncertain.h"
#include "cli/text/text.h"

namespace karst::cli {
namespace {

TEST(Text, DurationsHaveFourDigitsAndTheirUnit) {
  EXPECT_EQ(duration_text(0), "0 ns");
  EXPECT_EQ(duration_text(999), "999 ns");
  EXPECT_EQ(duration_text(1000), "1.000 us");
  EXPECT_EQ(duration_text(12'345), "12.35 us");
  EXPECT_EQ(duration_text(999'949), "999.9 us");
  EXPECT_EQ(duration_text(999'950), "1.000 ms");
  EXPECT_EQ(duration_text(9'999'600), "10.00 ms");
  EXPECT_EQ(duration_text(999'960'000), "1.000 s");
  EXPECT_EQ(duration_text(123'456'789'000), "123.5 s");
  EXPECT_EQ(duration_text(86'400'000'000'000), "86400.0 s");
  EXPECT_EQ(duration_text(1'234'500), "1.235 ms");
  EXPECT_EQ(duration_text(std::numeric_limits<std::uint64_t>::max()), "18446744073.7 s");
}

TEST(Text, WhatIsNotKnownWellIsARange) {
  EXPECT_EQ(uncertain_duration_text(29, 11), "10-40 ns");
  EXPECT_EQ(uncertain_duration_text(9, 26), "0-40 ns");
  EXPECT_EQ(uncertain_duration_text(0, 26), "0-30 ns");
  EXPECT_EQ(uncertain_duration_text(109, 30), "70-200 ns");
  EXPECT_EQ(uncertain_duration_text(990, 200), "0.7-2 us");
  EXPECT_EQ(uncertain_duration_text(1'500, 600), "0.9-3 us");
  EXPECT_EQ(uncertain_duration_text(200, 30), "200 ns");  // to 15%
  EXPECT_EQ(uncertain_duration_text(200, 31), "100-300 ns");
  EXPECT_EQ(uncertain_duration_text(3, 0), "3 ns");
  EXPECT_EQ(uncertain_duration_text(3'000, 3'000), "~3.000 us");
  EXPECT_EQ(uncertain_duration_text(2'000'000, 500), "2.000 ms");
}

TEST(Text, DurationsAreReadWithAUnitOnly) {
  EXPECT_EQ(parse_duration("10us").value(), 10'000U);
  EXPECT_EQ(parse_duration("1.5ms").value(), 1'500'000U);
  EXPECT_EQ(parse_duration("0ns").value(), 0U);
  EXPECT_EQ(parse_duration("2s").value(), 2'000'000'000U);
  EXPECT_EQ(parse_duration("5m").value(), 300'000'000'000U);
  EXPECT_EQ(parse_duration("1.5h").value(), 5'400'000'000'000U);
  for (const char* bad : {"", "10", "us", "10 us", "-1us", "10d", "nans", "infs", "1e300s", "1us2"}) {
    EXPECT_FALSE(parse_duration(bad)) << bad;
  }
}

TEST(Text, AmountsAreGrouped) {
  EXPECT_EQ(count_text(0), "0");
  EXPECT_EQ(count_text(999), "999");
  EXPECT_EQ(count_text(1'000), "1,000");
  EXPECT_EQ(count_text(12'345'678), "12,345,678");
  EXPECT_EQ(size_text(512), "512 bytes");
  EXPECT_EQ(size_text(1536), "1.5 KiB");
  EXPECT_EQ(size_text(std::uint64_t{3} << 30), "3.0 GiB");
}

TEST(Text, WallClockTimesAreUtc) { EXPECT_EQ(time_text(1'700'000'000'123'000'000), "2023-11-14 22:13:20.123 UTC"); }

TEST(Text, PrintableKeepsTextAndShowsControls) {
  EXPECT_EQ(printable("std::vector<int>::~vector() gr\xc3\xbc\xc3\x9f"),
            "std::vector<int>::~vector() gr\xc3\xbc\xc3\x9f");
  EXPECT_EQ(printable("\x1b[31m\r\n\t\x7f"), "\\x1b[31m\\x0d\\n\\t\\x7f");
  EXPECT_EQ(printable("\xc2\x9b"), "\\u{009b}");        // CSI, as one C1 character
  EXPECT_EQ(printable("\xe2\x81\xa6x"), "\\u{2066}x");  // changes the direction of what follows
  EXPECT_EQ(printable("\x80\xff"), "\\x80\\xff");
  EXPECT_EQ(printable_lines("a\nb\x1b"), "a\nb\\x1b");
}

}  // namespace
}  // namespace karst::cli
