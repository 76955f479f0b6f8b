#include "symbols/perf_map.h"

#include <gtest/gtest.h>

#include "fixture.h"

namespace karst::symbols {
namespace {

using namespace test;

std::string name_at(const PerfMap& map, std::uint64_t address) {
  const auto piece = map.lookup(address);
  return piece ? std::string(piece->name) : "";
}

PerfMap parsed(std::string_view text) {
  PerfMap map;
  map.append(text);
  return map;
}

TEST(PerfMap, FindsPiecesFromTheirFirstToTheirLastByte) {
  const auto map = parsed("7f0010 20 LazyCompile:~run /app/main.js:3\n0x7f0100 0x8 second\n7f0030 1 third");
  EXPECT_EQ(map.size(), 3U);
  EXPECT_EQ(name_at(map, 0x7f0010), "LazyCompile:~run /app/main.js:3");
  EXPECT_EQ(name_at(map, 0x7f002f), "LazyCompile:~run /app/main.js:3");
  EXPECT_EQ(name_at(map, 0x7f0030), "third");
  EXPECT_EQ(name_at(map, 0x7f0031), "");
  EXPECT_EQ(name_at(map, 0x7f000f), "");
  EXPECT_EQ(name_at(map, 0x7f0107), "second");
  EXPECT_EQ(name_at(map, 0), "");
  EXPECT_EQ(name_at(map, ~std::uint64_t{0}), "");
}

TEST(PerfMap, TheLaterLineIsRightWhereCodeWasReplaced) {
  const auto map = parsed("100 100 old\n140 20 new\n0f0 20 before\n1f0 20 behind\n300 10 a\n2f0 40 over\n");
  EXPECT_EQ(name_at(map, 0x100), "before");
  EXPECT_EQ(name_at(map, 0x110), "old");
  EXPECT_EQ(name_at(map, 0x13f), "old");
  EXPECT_EQ(name_at(map, 0x140), "new");
  EXPECT_EQ(name_at(map, 0x160), "old");
  EXPECT_EQ(name_at(map, 0x1f0), "behind");
  EXPECT_EQ(name_at(map, 0x305), "over");
}

TEST(PerfMap, LeavesOutLinesThatAreNone) {
  const auto map = parsed(
      "\n10\n10 \n10 5\n10 5 \nzz 5 x\n10 0 empty\nffffffffffffffff 10 wraps\n"
      "11111111111111111 5 too long\n20 5 good\r\n30 5");
  EXPECT_EQ(map.size(), 1U);
  EXPECT_EQ(name_at(map, 0x22), "good");
}

TEST(PerfMap, ReadsARegularFileAlone) {
  TemporaryDirectory directory;
  const auto path = directory.path() / "perf-12.map";
  EXPECT_EQ(PerfMap::path_of(12), "/tmp/perf-12.map");
  PerfMap map;
  EXPECT_FALSE(map.read(path).ok());
  write_file(path, "10 5 piece\n");
  const auto read = map.read(path);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(name_at(map, 0x14), "piece");
  std::filesystem::create_symlink(path, directory.path() / "link");
  const auto link = map.read(directory.path() / "link");
  ASSERT_FALSE(link.ok()) << "/tmp is everybody's: a link may lead anywhere";
  EXPECT_NE(link.error().message.find("link"), std::string::npos);
  EXPECT_FALSE(map.read(directory.path()).ok());
  EXPECT_EQ(name_at(map, 0x14), "piece");
}

TEST(PerfMap, ReadsOnAsTheFileGrows) {
  TemporaryDirectory directory;
  const auto path = directory.path() / "perf-12.map";
  PerfMap map;
  write_file(path, "10 5 first\n20 5 sec");
  ASSERT_TRUE(map.read(path).ok());
  EXPECT_EQ(name_at(map, 0x20), "sec");
  write_file(path, "10 5 first\n20 5 second\n10 2 later\n");
  ASSERT_TRUE(map.read(path).ok());
  EXPECT_EQ(name_at(map, 0x20), "second");
  EXPECT_EQ(name_at(map, 0x10), "later");
  EXPECT_EQ(name_at(map, 0x12), "first");
  // Another process with the same number has begun its own.
  write_file(path, "30 5 other\n");
  ASSERT_TRUE(map.read(path).ok());
  EXPECT_EQ(name_at(map, 0x30), "other");
  EXPECT_EQ(name_at(map, 0x20), "");
}

}  // namespace
}  // namespace karst::symbols
