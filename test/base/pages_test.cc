// Memory that grows and shrinks across the size from which on it is the kernel's keeps what is in it.
#include "base/pages.h"

#include <gtest/gtest.h>

#include <random>
#include <utility>
#include <vector>

namespace karst {
namespace {

std::byte value_at(std::size_t i, unsigned seed) { return static_cast<std::byte>((i * 31 + seed) % 251); }

TEST(Pages, KeepWhatIsInThemWhateverTheirSize) {
  std::mt19937 random(3);
  const std::size_t sizes[] = {1, 100, pages::kLarge - 1, pages::kLarge, pages::kLarge + 1, 3 * pages::kLarge, 5};
  for (unsigned round = 0; round < 200; ++round) {
    std::size_t had = 0;
    std::size_t filled = 0;
    void* memory = nullptr;
    for (int step = 0; step < 6; ++step) {
      const std::size_t bytes = sizes[random() % std::size(sizes)] + random() % 5000;
      void* const fresh = pages::resize(memory, had, bytes);
      ASSERT_NE(fresh, nullptr);
      memory = fresh;
      auto* const content = static_cast<std::byte*>(memory);
      for (std::size_t i = 0; i < std::min(filled, bytes); i += 1 + random() % 5000)
        ASSERT_EQ(content[i], value_at(i, round)) << had << " bytes became " << bytes;
      for (std::size_t i = 0; i < bytes; ++i) content[i] = value_at(i, round);
      had = filled = bytes;
    }
    pages::give_back(memory, had);
  }
}

TEST(Pages, LargeOnesBeginAtOne) {
  for (const std::size_t bytes : {pages::kLarge, 5 * pages::kLarge + 3}) {
    void* const memory = pages::take(bytes);
    ASSERT_NE(memory, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % pages::kLargePage, 0U);
    pages::give_back(memory, bytes);
  }
}

TEST(Pages, WhatCannotBeHadIsNull) {
  EXPECT_EQ(pages::take(SIZE_MAX / 2), nullptr);
  void* const memory = pages::take(pages::kLarge);
  static_cast<char*>(memory)[7] = 'x';
  EXPECT_EQ(pages::resize(memory, pages::kLarge, SIZE_MAX / 2), nullptr);
  EXPECT_EQ(static_cast<char*>(memory)[7], 'x') << "the old one stays";
  pages::give_back(memory, pages::kLarge);
}

TEST(Pages, AreAVectors) {
  std::vector<int, pages::Allocator<int>> numbers;
  for (int i = 0; i < 5'000'000; ++i) numbers.push_back(i);
  const auto moved = std::move(numbers);
  for (int i = 0; i < 5'000'000; i += 1111) ASSERT_EQ(moved[static_cast<std::size_t>(i)], i);
}

}  // namespace
}  // namespace karst
