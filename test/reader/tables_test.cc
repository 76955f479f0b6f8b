#include "reader/tables.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace karst::reader {
namespace {

/// A table of one record of so many bytes: 1, 2, 3 and so on, in words.
std::vector<std::byte> table_of(std::uint32_t record_size) {
  const format::TableHeader header{7, record_size, 1, 0};
  std::vector<std::byte> bytes(sizeof header + record_size);
  std::memcpy(bytes.data(), &header, sizeof header);
  for (std::uint32_t i = 0; i < record_size / 4; ++i) {
    const std::uint32_t word = i + 1;
    std::memcpy(bytes.data() + sizeof header + i * sizeof word, &word, sizeof word);
  }
  return bytes;
}

TEST(Tables, ReadRecordsOfOlderAndLaterFiles) {
  for (const std::uint32_t size : {8U, 12U, 20U}) {
    const auto bytes = table_of(size);
    const auto costs = Table<format::CostRecord>::parse(bytes);
    ASSERT_TRUE(costs) << size;
    EXPECT_EQ((*costs)[0].call, 1U);
    EXPECT_EQ((*costs)[0].inside, 2U);
    EXPECT_EQ((*costs)[0].off_by, size == 8 ? 0U : 3U);
  }
  for (const std::uint32_t size : {32U, 40U}) {
    const auto bytes = table_of(size);
    const auto symbols = Table<format::SymbolRecord>::parse(bytes);
    ASSERT_TRUE(symbols) << size;
    EXPECT_EQ((*symbols)[0].file.size, 8U);
    EXPECT_EQ((*symbols)[0].values.size, size == 32 ? 0U : 10U);
  }
}

TEST(Tables, RefuseRecordsThatNoFileHas) {
  EXPECT_FALSE(Table<format::CostRecord>::parse(table_of(4)));
  EXPECT_FALSE(Table<format::SymbolRecord>::parse(table_of(28)));
  EXPECT_FALSE(Table<format::ModeRecord>::parse(table_of(16)));
}

}  // namespace
}  // namespace karst::reader
