#include "runtime/system/mappings.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "arch/page.h"

namespace karst::runtime {
namespace {

using arch::kPage;
using Parts = std::vector<std::pair<std::uintptr_t, std::uintptr_t>>;

constexpr int kCode = PROT_READ | PROT_EXEC;
constexpr int kOwnCode = PROT_READ | PROT_WRITE | PROT_EXEC;

class MappingsTest : public testing::Test {
 protected:
  static constexpr std::size_t kPages = 64;

  void SetUp() override {
    // Nothing is mapped before and behind it.
    void* const room = mmap(nullptr, (kPages + 2) * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(room, MAP_FAILED);
    begin_ = reinterpret_cast<std::uintptr_t>(room) + kPage;
    ASSERT_EQ(munmap(room, kPage), 0);
    ASSERT_EQ(munmap(at(kPages), kPage), 0);
    protect(0, kPages, kCode);
  }
  void TearDown() override { munmap(at(0), kPages * kPage); }

  void* at(std::size_t page) const { return reinterpret_cast<void*>(begin_ + page * kPage); }
  void protect(std::size_t page, std::size_t count, int protection) const {
    ASSERT_EQ(mprotect(at(page), count * kPage, protection), 0);
  }
  /// In pages, those that lie side by side joined.
  Parts writable() const {
    Parts parts;
    for_each_writable_part(begin_, begin_ + kPages * kPage, &parts,
                           [](void* to, std::uintptr_t begin, std::uintptr_t end) {
                             auto& found = *static_cast<Parts*>(to);
                             if (!found.empty() && found.back().second == begin)
                               found.back().second = end;
                             else
                               found.emplace_back(begin, end);
                           });
    for (auto& [begin, end] : parts) begin = (begin - begin_) / kPage, end = (end - begin_) / kPage;
    return parts;
  }
  bool all_protected() const { return is_all_protected(begin_, begin_ + kPages * kPage); }
  bool nothing_lies_behind() const {
    unsigned char residency = 0;
    return mincore(at(kPages), kPage, &residency) != 0;
  }

  std::uintptr_t begin_ = 0;
};

TEST_F(MappingsTest, CodeAsItWasLoadedHasNone) {
  EXPECT_TRUE(all_protected());
  EXPECT_EQ(writable(), Parts());
  EXPECT_TRUE(is_all_protected(begin_, begin_ + kPage));
}

TEST_F(MappingsTest, AllOfItCanBeWritable) {
  protect(0, kPages, kOwnCode);
  EXPECT_FALSE(all_protected());
  EXPECT_EQ(writable(), (Parts{{0, kPages}}));
}

TEST_F(MappingsTest, AnyPartsCanBe) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    protect(0, kPages, kCode);
    Parts expected;
    for (std::size_t page = random() % 8; page < kPages;) {
      const std::size_t count = std::min<std::size_t>(1 + random() % 9, kPages - page);
      protect(page, count, kOwnCode);
      if (random() % 2 != 0) *static_cast<char*>(at(page)) = 1;
      expected.emplace_back(page, page + count);
      page += count + 1 + random() % 20;
    }
    if (random() % 4 == 0 && expected.back().second < kPages - 1) protect(kPages - 1, 1, PROT_NONE);
    EXPECT_EQ(writable(), expected) << round;
    EXPECT_FALSE(all_protected());
  }
  EXPECT_TRUE(nothing_lies_behind());
}

TEST_F(MappingsTest, WhatIsBeingUnloadedHasNone) {
  protect(3, 2, kOwnCode);
  munmap(at(kPages / 2), kPage);
  EXPECT_EQ(writable(), Parts());
  munmap(at(kPages - 1), kPage);
  EXPECT_FALSE(all_protected());
  EXPECT_EQ(writable(), Parts());
  EXPECT_TRUE(nothing_lies_behind());
}

TEST_F(MappingsTest, WhatAThreadWritesMeanwhileStays) {
  protect(5, 1, kOwnCode);
  auto& word = *static_cast<std::uint32_t*>(at(5));
  word = 12345;
  writable();
  EXPECT_EQ(word, 12345U);
}

}  // namespace
}  // namespace karst::runtime
