#include "symbols/perf_map.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "fixture.h"

namespace karst::symbols {
namespace {

using namespace test;

/// What the file's text says of one address.
std::string name_in(std::string_view text, std::uint64_t address, const PerfMapLimits& limits = {}) {
  TemporaryDirectory directory;
  const auto path = directory.path() / "perf-1.map";
  write_file(path, std::string(text));
  const std::vector<std::uint64_t> addresses = {address};
  PerfNames names(addresses, limits);
  const auto read = names.read(path);
  EXPECT_TRUE(read.ok()) << read.error().message;
  return std::string(names.of(0));
}

TEST(PerfMap, FindsPiecesFromTheirFirstToTheirLastByte) {
  const char* map = "7f0010 20 LazyCompile:~run /app/main.js:3\n0x7f0100 0x8 second\n7f0030 1 third";
  EXPECT_EQ(name_in(map, 0x7f0010), "LazyCompile:~run /app/main.js:3");
  EXPECT_EQ(name_in(map, 0x7f002f), "LazyCompile:~run /app/main.js:3");
  EXPECT_EQ(name_in(map, 0x7f0030), "third");
  EXPECT_EQ(name_in(map, 0x7f0031), "");
  EXPECT_EQ(name_in(map, 0x7f000f), "");
  EXPECT_EQ(name_in(map, 0x7f0107), "second");
  EXPECT_EQ(name_in(map, 0), "");
  EXPECT_EQ(name_in(map, ~std::uint64_t{0}), "");
}

TEST(PerfMap, TheLaterLineIsRightWhereCodeWasReplaced) {
  const char* map = "100 100 old\n140 20 new\n0f0 20 before\n1f0 20 behind\n300 10 a\n2f0 40 over\n";
  EXPECT_EQ(name_in(map, 0x100), "before");
  EXPECT_EQ(name_in(map, 0x110), "old");
  EXPECT_EQ(name_in(map, 0x13f), "old");
  EXPECT_EQ(name_in(map, 0x140), "new");
  EXPECT_EQ(name_in(map, 0x160), "old");
  EXPECT_EQ(name_in(map, 0x1f0), "behind");
  EXPECT_EQ(name_in(map, 0x305), "over");
}

TEST(PerfMap, LeavesOutLinesThatAreNone) {
  const char* map =
      "\n10\n10 \n10 5\n10 5 \nzz 5 x\n10 0 empty\nffffffffffffffff 10 wraps\n"
      "11111111111111111 5 too long\n20 5 good\r\n30 5";
  EXPECT_EQ(name_in(map, 0x22), "good");
  EXPECT_EQ(name_in(map, 0x10), "");
  EXPECT_EQ(name_in(map, 0x30), "");
}

TEST(PerfMap, ReadsARegularFileAlone) {
  TemporaryDirectory directory;
  const auto path = directory.path() / "perf-12.map";
  EXPECT_EQ(perf_map_of(12), "/tmp/perf-12.map");
  const std::vector<std::uint64_t> addresses = {0x14};
  PerfNames names(addresses);
  EXPECT_FALSE(names.read(path).ok());
  write_file(path, "10 5 piece\n");
  std::filesystem::create_symlink(path, directory.path() / "link");
  const auto link = names.read(directory.path() / "link");
  ASSERT_FALSE(link.ok()) << "/tmp is everybody's: a link may lead anywhere";
  EXPECT_NE(link.error().message.find("link"), std::string::npos);
  EXPECT_FALSE(names.read(directory.path()).ok());
  const auto read = names.read(path);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(names.of(0), "piece");
}

TEST(PerfMap, LinesMayLieAcrossStepsOfReading) {
  std::string map;
  for (int i = 0; i < 100'000; ++i) map += "1000 8 piece " + std::to_string(i) + "\n";  // 2 MB: several steps
  map.insert(0, "2000 8 first\n");
  EXPECT_EQ(name_in(map, 0x1000), "piece 99999");
  EXPECT_EQ(name_in(map, 0x2000), "first");
  const std::string long_line = "3000 8 " + std::string(std::size_t{1} << 20, 'x');
  EXPECT_EQ(name_in("2000 8 a\n" + long_line + "\n4000 8 b\n", 0x2000), "a");
  EXPECT_EQ(name_in("2000 8 a\n" + long_line + "\n4000 8 b\n", 0x3000), "") << "longer than any name";
}

TEST(PerfMap, AHostileFileIsReadInPartAndCostsNoMoreThanTheNamesThatAreWanted) {
  TemporaryDirectory directory;
  const auto path = directory.path() / "perf-1.map";
  std::string text = "1000 8 oldest\n";
  for (int i = 0; i < 20'000; ++i) text += "1 ffffffffffff " + std::string(100, 'x') + "\n";  // each covers all
  write_file(path, text);
  std::vector<std::uint64_t> addresses;
  for (std::uint64_t i = 0; i < 100'000; ++i) addresses.push_back(0x1000 + i);
  PerfNames all(addresses);  // quadratic, if each line looked at each address
  ASSERT_TRUE(all.read(path).ok());
  EXPECT_EQ(all.of(0), std::string(100, 'x'));
  EXPECT_EQ(all.left_out(), "");

  const std::vector<std::uint64_t> one = {0x1000};
  write_file(path, "1000 8 oldest\n" + std::string(4000, '\n'));
  PerfNames newest(one, {.file_bytes = 2000});
  ASSERT_TRUE(newest.read(path).ok());
  EXPECT_EQ(newest.of(0), "");
  EXPECT_NE(newest.left_out().find("2014 bytes were not read"), std::string::npos) << newest.left_out();

  const std::vector<std::uint64_t> two = {0x1000, 0x2000};
  write_file(path, "1000 8 aaaaaaaa\n2000 8 bbbbbbbb\n");
  PerfNames few(two, {.name_bytes = 10});
  ASSERT_TRUE(few.read(path).ok());
  EXPECT_EQ(few.of(0), "");
  EXPECT_EQ(few.of(1), "bbbbbbbb");
  EXPECT_NE(few.left_out(), "");
}

}  // namespace
}  // namespace karst::symbols
