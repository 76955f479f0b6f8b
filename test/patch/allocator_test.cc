// Which code of a program is its allocator's: of a program whose functions' names say so.
#include "patch/allocator.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/descriptor.h"
#include "base/sealed_memory.h"

namespace karst::patch {
namespace {

struct Looked {
  Result<AllocatorCode> found;
  std::vector<std::pair<std::string, std::uint64_t>> functions;
};

Looked look_at(const char* program) {
  const Descriptor file(open(program, O_RDONLY | O_CLOEXEC));
  const auto image = ElfImage::read(file.get());
  Looked looked{allocator_code(file.get(), std::nullopt), {}};
  if (image)
    for (const ElfImage::NamedCode& function : image->functions())
      looked.functions.emplace_back(function.name, function.address);
  return looked;
}

bool has(const AllocatorCode& found, std::uint64_t address) {
  return std::any_of(found.code.begin(), found.code.end(), [&](const Range& r) { return r.contains(address); });
}

void expect_by_names(const Looked& looked) {
  ASSERT_TRUE(looked.found) << looked.found.error().message;
  int its = 0;
  int users = 0;
  for (const auto& [name, address] : looked.functions) {
    const bool is_entry = name == "malloc" || name == "free" || name == "malloc_usable_size";
    if (name.starts_with("its_") || is_entry) {
      ++its;
      EXPECT_TRUE(has(*looked.found, address)) << name;
    }
    if (name.starts_with("user_") || name == "main") {
      ++users;
      EXPECT_FALSE(has(*looked.found, address)) << name;
    }
  }
  EXPECT_GE(its, 10);
  EXPECT_GE(users, 3);
}

TEST(Allocator, IsToldFromTheProgram) {
  const Looked looked = look_at(KARST_ALLOCATOR);
  expect_by_names(looked);
  EXPECT_TRUE(looked.found->pointers.empty());
  EXPECT_TRUE(looked.found->slots.empty());
}

TEST(Allocator, EndsInAnotherModule) {
  const Looked looked = look_at(KARST_ALLOCATOR_BY_NAME);
  ASSERT_TRUE(looked.found) << looked.found.error().message;
  EXPECT_TRUE(looked.found->pointers.empty());
  EXPECT_EQ(looked.found->slots.size(), 1U);
}

TEST(Allocator, GoesOnWhereAPointerLeads) {
  const Looked looked = look_at(KARST_ALLOCATOR_POINTER);
  ASSERT_TRUE(looked.found) << looked.found.error().message;
  EXPECT_EQ(looked.found->pointers.size(), 1U);
}

TEST(Allocator, GoesOnWhereNobodyCanTell) {
  const Looked looked = look_at(KARST_ALLOCATOR_REGISTER);
  ASSERT_FALSE(looked.found);
  EXPECT_EQ(looked.found.error().message, "its code leads to places that are not known");
}

/// Under a sanitizer this program has one; the shell has libc's.
TEST(Allocator, IsNotThere) {
  const Looked looked = look_at("/bin/sh");
  ASSERT_TRUE(looked.found) << looked.found.error().message;
  EXPECT_TRUE(looked.found->code.empty());
}

/// A file that is damaged anywhere gives an answer.
TEST(Allocator, OfDamagedFiles) {
  const Descriptor file(open(KARST_ALLOCATOR, O_RDONLY | O_CLOEXEC));
  const auto image = ElfImage::read(file.get());
  ASSERT_TRUE(image);
  std::vector<std::byte> bytes(image->whole().begin(), image->whole().end());
  unsigned random = 21;
  for (int round = 0; round < 40; ++round) {
    std::vector<std::byte> damaged = bytes;
    for (int i = 0; i < 30; ++i) {
      random = random * 1664525U + 1013904223U;
      damaged[random % damaged.size()] = static_cast<std::byte>(random >> 24);
    }
    const Descriptor memory = sealed_memory("damaged", damaged);
    const auto found = allocator_code(memory.get(), std::nullopt);
    if (!found) {
      EXPECT_FALSE(found.error().message.empty());
      continue;
    }
    for (const Range& r : found->code) EXPECT_LT(r.begin, r.end);
  }
}

}  // namespace
}  // namespace karst::patch
