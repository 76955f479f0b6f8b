// The pieces of the formats that everything else builds upon.
#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "format/checksum.h"
#include "format/event.h"
#include "format/sled_note.h"

namespace karst::format {
namespace {

TEST(Crc32c, GivesThePublishedValues) {
  // RFC 3720, B.4, and the usual check value.
  constexpr std::string_view kCheck = "123456789";
  EXPECT_EQ(crc32c(kCheck.data(), kCheck.size()), 0xE3069283U);
  std::vector<unsigned char> bytes(32, 0);
  EXPECT_EQ(crc32c(bytes.data(), bytes.size()), 0x8A9136AAU);
  bytes.assign(32, 0xff);
  EXPECT_EQ(crc32c(bytes.data(), bytes.size()), 0x62A8AB43U);
  for (unsigned char i = 0; i < 32; ++i) bytes[i] = i;
  EXPECT_EQ(crc32c(bytes.data(), bytes.size()), 0x46DD794EU);
}

TEST(Crc32c, OfPiecesIsThatOfTheWhole) {
  std::vector<unsigned char> bytes(1000);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<unsigned char>(i * 7 + i / 31);
  const auto whole = crc32c(bytes.data(), bytes.size());
  for (const std::size_t cut : {0U, 1U, 7U, 8U, 500U, 999U, 1000U}) {
    EXPECT_EQ(crc32c(bytes.data() + cut, bytes.size() - cut, crc32c(bytes.data(), cut)), whole) << cut;
  }
}

TEST(Crc32c, IsTheSameWithAndWithoutTheInstruction) {
  std::vector<unsigned char> bytes(257);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<unsigned char>(i ^ 0x5a);
  for (std::size_t n = 0; n <= bytes.size(); ++n) {
    EXPECT_EQ(crc32c(bytes.data(), n), ~detail::crc32c_portable(~0U, bytes.data(), n)) << n;
  }
}

TEST(Event, KeepsItsPartsAtTheirLimits) {
  for (const std::uint32_t id : {1U, 2U, kMaxFunctionId}) {
    for (const std::uint64_t ticks : {std::uint64_t{0}, kEventTickMask, kEventTickMask + 1, ~std::uint64_t{0}}) {
      for (const bool exit : {false, true}) {
        const Event event = make_event(ticks, exit, id);
        EXPECT_EQ(event_function(event), id);
        EXPECT_EQ(event_is_exit(event), exit);
        EXPECT_EQ(event_ticks(event, ticks & ~kEventTickMask), ticks);
      }
    }
  }
}

TEST(Event, IsNeverZeroForARealFunction) { EXPECT_NE(make_event(0, false, 1), 0U); }

TEST(SledTable, RecordsAreOneToFourUnits) {
  constexpr std::uint64_t kAt = 0x1000;
  const std::uint16_t entry[] = {0x0010, 0x0000};
  EXPECT_EQ(decode_sled(entry, 2, kAt, 0).units, 2U);
  EXPECT_EQ(decode_sled(entry, 2, kAt, 0).kind, std::uint32_t{KARST_SLED_ENTRY});
  EXPECT_EQ(decode_sled(entry, 2, kAt, 0).address, kAt + 0x10);
  const std::uint16_t before[] = {0xfff0, 0xffff};
  EXPECT_EQ(decode_sled(before, 2, kAt, 0).address, kAt - 0x10);
  const std::uint16_t leaves[] = {0x0021, 0xfffe | 1};
  EXPECT_EQ(decode_sled(leaves, 1, kAt, 0x2000).units, 1U);
  EXPECT_EQ(decode_sled(leaves, 1, kAt, 0x2000).kind, std::uint32_t{KARST_SLED_RETURN});
  EXPECT_EQ(decode_sled(leaves, 1, kAt, 0x2000).address, 0x2020U);
  EXPECT_EQ(decode_sled(leaves + 1, 1, kAt, 0x2000).kind, std::uint32_t{KARST_SLED_TAIL_CALL});
  EXPECT_EQ(decode_sled(leaves + 1, 1, kAt, 0x2000).address, 0x2000U + 0x7ffe);
  const std::uint16_t far_away[] = {1, KARST_SLED_COLD, 0x0000, 0x4000};
  EXPECT_EQ(decode_sled(far_away, 4, kAt, 0).units, 4U);
  EXPECT_EQ(decode_sled(far_away, 4, kAt, 0).kind, std::uint32_t{KARST_SLED_COLD});
  EXPECT_EQ(decode_sled(far_away, 4, kAt, 0).address, kAt + 4 + 0x40000000);
}

TEST(SledTable, WhatIsNoWholeRecordIsNone) {
  const std::uint16_t units[] = {0x0010, 0x0000, 1, 0, 0, 0, 0x0021};
  EXPECT_EQ(decode_sled(units, 0, 0, 0).units, 0U);
  EXPECT_EQ(decode_sled(units, 1, 0, 0).units, 0U);
  EXPECT_EQ(decode_sled(units + 2, 3, 0, 0).units, 0U);
  EXPECT_EQ(decode_sled(units + 6, 1, 0, 0).units, 0U) << "an exit of no function";
}

}  // namespace
}  // namespace karst::format
