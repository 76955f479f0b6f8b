// Mappings as the kernel tells them, against a map of pages that is filled one by one.
#include "kernel/address_space.h"

#include <gtest/gtest.h>
#include <link.h>
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cstring>
#include <random>
#include <utility>

namespace karst::kernel {
namespace {

constexpr std::uint64_t kPage = 4096;

template <typename T>
void append(std::vector<std::byte>& to, T value) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&value);
  to.insert(to.end(), bytes, bytes + sizeof value);
}

std::vector<std::byte> mapped(std::uint32_t pid, std::uint64_t begin, std::uint64_t size, std::uint64_t offset,
                              std::uint64_t inode, const std::string& path, std::uint32_t protection = PROT_EXEC) {
  std::vector<std::byte> record;
  append(record, pid);
  append(record, pid);
  append(record, begin);
  append(record, size);
  append(record, offset);
  append(record, std::uint32_t{8});  // device
  append(record, std::uint32_t{1});
  append(record, inode);
  append(record, std::uint64_t{0});
  append(record, protection);
  append(record, std::uint32_t{0});
  for (const char c : path) append(record, c);
  append(record, std::uint64_t{0});
  return record;
}

TEST(AddressSpaces, AreThoseOfAMapOfPages) {
  std::mt19937 random(1);
  for (int round = 0; round < 100; ++round) {
    AddressSpaces spaces;
    std::map<std::uint64_t, std::pair<std::string, std::uint64_t>> pages;  // by page: file, offset
    for (int step = 0; step < 60; ++step) {
      const std::uint64_t first = random() % 100, count = 1 + random() % 20, offset = random() % 50;
      const std::string file = "/lib/" + std::to_string(random() % 5);
      const bool runs = random() % 6 != 0;
      spaces.map(0, mapped(7, first * kPage, count * kPage, offset * kPage, file.back(), file,
                           runs ? PROT_EXEC | PROT_READ : PROT_READ));
      for (std::uint64_t i = 0; i < count && runs; ++i) pages[first + i] = {file, offset + i};
    }
    const auto space = spaces.of(7);
    for (std::uint64_t page = 0; page < 130; ++page) {
      const CodeMapping* found = find_mapping(*space, page * kPage + 5);
      const auto at = pages.find(page);
      ASSERT_EQ(found != nullptr, at != pages.end()) << page;
      if (found == nullptr) continue;
      EXPECT_EQ(spaces.files()[found->file].path, at->second.first);
      EXPECT_EQ(page * kPage - found->begin + found->offset, at->second.second * kPage);
    }
  }
}

TEST(AddressSpaces, ForkedChildrenHaveTheirParentsAndGoTheirOwnWay) {
  AddressSpaces spaces;
  spaces.map(0, mapped(1, kPage, kPage, 0, 1, "/a"));
  spaces.fork(2, 1, 2);
  spaces.fork(1, 1, 11);  // a thread
  const auto before = spaces.of(2);
  spaces.map(0, mapped(2, 2 * kPage, kPage, 0, 2, "/b"));
  EXPECT_EQ(spaces.of(1)->size(), 1U);
  EXPECT_EQ(spaces.of(2)->size(), 2U);
  EXPECT_EQ(before->size(), 1U) << "what was given stays as it was";
  spaces.exec(2);
  EXPECT_TRUE(spaces.of(2)->empty());
  // The first process has two threads; what it has mapped goes with the last one.
  spaces.exit(1, 1);
  EXPECT_EQ(spaces.of(1)->size(), 1U);
  spaces.exit(1, 11);
  EXPECT_TRUE(spaces.of(1)->empty());
  EXPECT_TRUE(spaces.of(99)->empty());
}

// Two events of one thread tell each of its records twice.
TEST(AddressSpaces, AThreadThatIsToldTwiceIsOne) {
  AddressSpaces spaces;
  spaces.begin_with(1, parse_maps("1000-2000 r-xp 00000000 08:01 5 /a\n"), {1, 11});
  for (int i = 0; i < 2; ++i) spaces.fork(1, 1, 12);
  for (const std::uint32_t tid : {11U, 11U, 12U, 12U}) spaces.exit(1, tid);
  EXPECT_EQ(spaces.of(1)->size(), 1U);
  spaces.exit(1, 1);
  EXPECT_TRUE(spaces.of(1)->empty());
}

// The oracle is the loader's list of what it has mapped.
TEST(AddressSpaces, OfAProcessThatRunsAreItsMaps) {
  AddressSpaces spaces;
  spaces.begin_with(7, read_maps("/proc/self/maps"), {7});
  int segments = 0;
  const auto see = [&](const dl_phdr_info& info) {
    for (int i = 0; i < info.dlpi_phnum; ++i) {
      const ElfW(Phdr)& segment = info.dlpi_phdr[i];
      if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
      const std::uint64_t at = info.dlpi_addr + segment.p_vaddr + segment.p_memsz / 2;
      const CodeMapping* const found = find_mapping(*spaces.of(7), at);
      ASSERT_NE(found, nullptr) << info.dlpi_name;
      const CodeFile& file = spaces.files()[found->file];
      if (info.dlpi_name[0] != '/') continue;  // the program, and the vDSO
      ++segments;
      struct stat status {};
      ASSERT_EQ(stat(info.dlpi_name, &status), 0);
      EXPECT_EQ(file.inode, status.st_ino) << file.path;
      EXPECT_EQ(at - found->begin + found->offset, segment.p_offset + segment.p_memsz / 2);
    }
  };
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* to) {
        (*static_cast<decltype(see)*>(to))(*info);
        return 0;
      },
      const_cast<void*>(static_cast<const void*>(&see)));
  EXPECT_GT(segments, 1);
}

TEST(AddressSpaces, CodeWithoutAFileIsCalledAsInRecords) {
  AddressSpaces spaces;
  spaces.begin_with(1,
                    parse_maps("0000-1000 r--p 00000000 08:01 5 /data\n"
                               "1000-2000 r-xp 00003000 08:01 5          /with a space (deleted)\n"
                               "3000-4000 rwxp 00000000 00:00 0 \n"
                               "5000-6000 r-xp 00000000 00:00 0 [vdso]"),
                    {1});
  ASSERT_EQ(spaces.of(1)->size(), 3U);
  EXPECT_EQ(spaces.of(1)->at(0).offset, 0x3000U);
  const auto path = [&](std::size_t i) { return spaces.files()[spaces.of(1)->at(i).file].path; };
  EXPECT_EQ(path(0), "/with a space (deleted)");
  EXPECT_EQ(path(1), "//anon");
  EXPECT_EQ(path(2), "[vdso]");
}

TEST(AddressSpaces, TakeABuildIdWhereTheKernelHasOne) {
  AddressSpaces spaces;
  auto record = mapped(1, kPage, kPage, 0, 0, "/a");
  record[32] = std::byte{4};
  std::memcpy(record.data() + 36, "\1\2\3\4\5", 5);
  spaces.map(PERF_RECORD_MISC_MMAP_BUILD_ID, record);
  EXPECT_EQ(spaces.files().at(0).build_id, "\1\2\3\4");
  record[32] = std::byte{255};  // longer than there is room for
  spaces.map(PERF_RECORD_MISC_MMAP_BUILD_ID, record);
  EXPECT_EQ(spaces.files().at(1).build_id.size(), 20U);
}

TEST(AddressSpaces, TornRecordsMapNothing) {
  const auto record = mapped(1, kPage, kPage, 0, 1, "/a");
  for (std::size_t size = 0; size < 64; ++size) {
    AddressSpaces spaces;
    spaces.map(0, std::span(record).first(size));
    EXPECT_TRUE(spaces.of(1)->empty()) << size;
  }
  AddressSpaces spaces;
  spaces.map(0, mapped(1, ~std::uint64_t{0} - 10, 4096, 0, 1, "/a"));
  spaces.map(0, mapped(1, kPage, 0, 0, 1, "/a"));
  EXPECT_TRUE(spaces.of(1)->empty());
}

TEST(AddressSpaces, AProgramThatMapsForEverIsBounded) {
  AddressSpaces spaces;
  for (std::uint64_t i = 0; i < 10'000; ++i)
    spaces.map(0, mapped(1, 2 * i * kPage, kPage, 0, i, "/" + std::to_string(i)));
  EXPECT_LE(spaces.of(1)->size(), 8200U);
}

}  // namespace
}  // namespace karst::kernel
