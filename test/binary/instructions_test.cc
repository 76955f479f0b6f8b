#include "binary/instructions.h"

#include <gtest/gtest.h>

#include <fstream>
#include <vector>

namespace karst::binary {
namespace {

std::optional<CodeShape> shape(const std::vector<unsigned>& bytes) {
  std::vector<std::byte> code;
  for (const unsigned b : bytes) code.push_back(static_cast<std::byte>(b));
  return shape_of(code);
}

void expect(const std::vector<unsigned>& bytes, std::uint32_t instructions, bool loops) {
  const auto s = shape(bytes);
  ASSERT_TRUE(s.has_value());
  EXPECT_EQ(s->instructions, instructions);
  EXPECT_EQ(s->loops, loops);
}

TEST(Instructions, CountsNoSledsAndPadding) {
  // endbr64; gcc's sled; lea (%rdi,%rdi),%eax; gcc's sled; ret; nop
  expect({0xf3, 0x0f, 0x1e, 0xfa, 0x0f, 0x1f, 0x44, 0, 0, 0x8d, 0x04, 0x3f, 0x0f, 0x1f, 0x44, 0, 0, 0xc3, 0x90}, 2,
         false);
  // clang's entry sled; ret and its NOP
  expect({0xeb, 0x09, 0x66, 0x0f, 0x1f, 0x84, 0, 0, 2, 0, 0, 0xc3, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 2, 0, 0}, 1,
         false);
}

TEST(Instructions, SeesLoops) {
  expect({0xff, 0xcf, 0x75, 0xfc, 0xc3}, 3, true);                          // dec %edi; jne back; ret
  expect({0xeb, 0xfe}, 1, true);                                            // jmp to itself
  expect({0x75, 0x01, 0x90, 0xc3}, 2, false);                               // jne ahead
  expect({0xe8, 0xfb, 0xff, 0xff, 0xff, 0xc3}, 2, false);                   // call of itself: recursion is no loop
  expect({0x90, 0xe9, 0xf0, 0xff, 0xff, 0xff}, 1, false);                   // a tail call to what lies in front
  expect({0xff, 0xcf, 0x0f, 0x85, 0xf8, 0xff, 0xff, 0xff, 0xc3}, 3, true);  // the same with a long jump
}

TEST(Instructions, KnowsWhenBytesAreNone) {
  EXPECT_FALSE(shape({0x06}).has_value());
  EXPECT_FALSE(shape({0x90, 0xe8, 0x00}).has_value());  // cut
  expect({}, 0, false);
}

TEST(CodeFile, ReadsCodeAloneAndOnlyWithinIt) {
  const auto self = CodeFile::open("/proc/self/exe");
  ASSERT_TRUE(self.ok());
  EXPECT_TRUE(self->code(0, 16).empty());  // headers are no code
  EXPECT_TRUE(self->code(~std::uint64_t{0} - 16, ~std::uint64_t{0}).empty());
  EXPECT_TRUE(self->code(16, 8).empty());
  const std::string text = testing::TempDir() + "not-elf";
  std::ofstream(text) << std::string(200, 'x');
  EXPECT_FALSE(CodeFile::open(text).ok());
  EXPECT_FALSE(CodeFile::open("/nowhere/x").ok());
  EXPECT_FALSE(CodeFile::open("/").ok());
}

TEST(CodeFile, RefusesDamagedHeaders) {
  std::ifstream in("/proc/self/exe", std::ios::binary);
  std::string head(4096, '\0');
  in.read(head.data(), 4096);
  for (const std::size_t at : {0U, 4U, 18U, 32U, 39U, 54U, 56U, 57U}) {
    std::string bad = head;
    bad[at] = static_cast<char>(bad[at] ^ 0x5a);
    const std::string path = testing::TempDir() + "damaged-elf";
    std::ofstream(path, std::ios::binary) << bad;
    const auto file = CodeFile::open(path);
    EXPECT_TRUE(!file || file->code(0x1000, 0x10000000).empty());
  }
}

}  // namespace
}  // namespace karst::binary
