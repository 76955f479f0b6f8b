// The runtime's checksums against the format's own, which is another program.
#include "runtime/snapshots/checksum.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "format/checksum.h"

namespace karst::test {
namespace {

std::vector<unsigned char> some_bytes(std::size_t size) {
  std::mt19937 random(static_cast<unsigned>(size));
  std::vector<unsigned char> bytes(size);
  for (unsigned char& b : bytes) b = static_cast<unsigned char>(random());
  return bytes;
}

TEST(ChecksumTest, EqualsTheFormats) {
  for (const std::size_t size : {0U, 1U, 7U, 8U, 100U, 4031U, 4032U, 4033U, 8064U, 20000U}) {
    const auto bytes = some_bytes(size);
    EXPECT_EQ(runtime::checksum(bytes.data(), size), format::crc32c(bytes.data(), size)) << size;
  }
}

TEST(ChecksumTest, IsCarriedOnAndJoined) {
  const auto bytes = some_bytes(30000);
  const std::uint32_t whole = format::crc32c(bytes.data(), bytes.size());
  for (const std::size_t first : {0U, 1U, 16U, 4032U, 12345U, 29999U, 30000U}) {
    const std::size_t second = bytes.size() - first;
    const std::uint32_t begin = runtime::checksum(bytes.data(), first);
    EXPECT_EQ(runtime::checksum(bytes.data() + first, second, begin), whole) << first;
    EXPECT_EQ(runtime::joined_checksum(begin, runtime::checksum(bytes.data() + first, second), second), whole) << first;
  }
}

TEST(ChecksumTest, OfABlockThatIsCopied) {
  const auto bytes = some_bytes(24 + runtime::kEventsSize);
  std::vector<unsigned char> to(runtime::kEventsSize + 1, 0xee);
  const std::uint32_t before = format::crc32c(bytes.data(), 24);
  EXPECT_EQ(runtime::copy_events(to.data(), bytes.data() + 24, before), format::crc32c(bytes.data(), bytes.size()));
  EXPECT_EQ(std::memcmp(to.data(), bytes.data() + 24, runtime::kEventsSize), 0);
  EXPECT_EQ(to.back(), 0xee);
}

}  // namespace
}  // namespace karst::test
