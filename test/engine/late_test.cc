// What is made late: once for all who ask, and again by the next one if its maker gave up.
#include "engine/index/late.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace karst {
namespace {

TEST(LateParts, AreMadeOnceForAllThatAskAtOnce) {
  engine::LateParts parts;
  std::atomic<int> made = 0;
  std::vector<std::shared_ptr<const int>> found(8);
  std::vector<std::thread> askers;
  askers.reserve(found.size());
  for (auto& of : found)
    askers.emplace_back([&] { of = parts.find_or_make<int>([&] { return std::make_shared<const int>(++made); }); });
  for (std::thread& asker : askers) asker.join();
  EXPECT_EQ(made, 1);
  for (const auto& of : found) EXPECT_EQ(of, parts.find<int>());
}

TEST(LateParts, AreOneOfEachType) {
  engine::LateParts parts;
  EXPECT_EQ(parts.find<int>(), nullptr);
  parts.find_or_make<int>([] { return std::make_shared<const int>(1); });
  EXPECT_EQ(parts.find<long>(), nullptr);
  // One may be made of another.
  const auto of = parts.find_or_make<long>([&] { return std::make_shared<const long>(*parts.find<int>() + 1L); });
  EXPECT_EQ(*of, 2);
  EXPECT_EQ(*parts.find<int>(), 1);
}

TEST(LateParts, AreMadeByTheNextWhoAsksWhenTheFirstGaveUp) {
  engine::LateParts parts;
  EXPECT_EQ(parts.find_or_make<int>([] { return std::shared_ptr<const int>(); }), nullptr);
  EXPECT_EQ(parts.find<int>(), nullptr);
  EXPECT_EQ(*parts.find_or_make<int>([] { return std::make_shared<const int>(3); }), 3);
}

}  // namespace
}  // namespace karst
