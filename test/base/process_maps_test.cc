// The one reader of /proc/PID/maps, against the kernel and against lines that it never writes.
#include "base/process_maps.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/descriptor.h"

namespace karst {
namespace {

constexpr std::size_t kPage = 4096;

/// A page of this process's memory that is a file's.
class MappedPage {
 public:
  MappedPage(int file, int flags, std::uintptr_t address = 0)
      : memory_(mmap(reinterpret_cast<void*>(address), kPage, PROT_READ, flags, file, 0)) {}
  ~MappedPage() {
    if (memory_ != MAP_FAILED) munmap(memory_, kPage);
  }
  MappedPage(const MappedPage&) = delete;
  MappedPage& operator=(const MappedPage&) = delete;
  bool is_there() const { return memory_ != MAP_FAILED; }

  /// As the kernel tells it.
  Mapping told() const {
    const auto all = read_maps("/proc/self/maps");
    const auto at = std::find_if(all.begin(), all.end(),
                                 [&](const Mapping& m) { return m.begin == reinterpret_cast<std::uint64_t>(memory_); });
    return at == all.end() ? Mapping() : *at;
  }

 private:
  void* memory_;
};

class Directory {
 public:
  Directory() { made_ = mkdtemp(path_.data()) != nullptr; }
  ~Directory() { std::filesystem::remove_all(path_); }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
  std::string path(const std::string& name) const { return path_ + "/" + name; }
  bool made() const { return made_; }

 private:
  std::string path_ = testing::TempDir() + "karst-maps-XXXXXX";
  bool made_ = false;
};

TEST(ProcessMaps, TellFilesWhateverTheirNames) {
  const Directory directory;
  ASSERT_TRUE(directory.made());
  for (const std::string name : {"plain", "two words", " rw-s ", "x (deleted)", "tab\there", "ends in blanks  ",
                                 "-1000 rw-s 00000000 00:01 77 memfd:karst-arena", "\xff\xfe", "back\\slash"}) {
    const std::string path = directory.path(name);
    std::ofstream(path) << std::string(kPage, 'x');
    const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat status {};
    ASSERT_EQ(fstat(file.get(), &status), 0);
    const MappedPage page(file.get(), MAP_PRIVATE);
    ASSERT_TRUE(page.is_there());
    const Mapping told = page.told();
    EXPECT_EQ(told.path, path);
    EXPECT_EQ(told.file_name(), name);
    EXPECT_EQ(told.rights, "r--p");
    EXPECT_EQ(told.inode, status.st_ino);
    EXPECT_EQ(told.end - told.begin, kPage);
  }
}

TEST(ProcessMaps, TellANewlineInANameAndAFileThatIsGone) {
  const Directory directory;
  const std::string path = directory.path("two\nlines");
  std::ofstream(path) << std::string(kPage, 'x');
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const MappedPage page(file.get(), MAP_SHARED);
  ASSERT_TRUE(page.is_there());
  EXPECT_EQ(page.told().path, directory.path("two\\012lines"));
  EXPECT_EQ(page.told().rights, "r--s");
  unlink(path.c_str());
  EXPECT_EQ(page.told().path, directory.path("two\\012lines (deleted)"));
}

// The kernel writes 00300000 here in maps, and 300000 in map_files.
TEST(ProcessMaps, LinksOfLowMappingsAreThere) {
  const Descriptor file(memfd_create("karst-low", MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(file.get(), kPage), 0);
  const MappedPage page(file.get(), MAP_SHARED | MAP_FIXED_NOREPLACE, 0x300000);
  ASSERT_TRUE(page.is_there());
  EXPECT_EQ(page.told().link(), "map_files/300000-301000");
  char target[100] = {};
  EXPECT_GT(readlink(("/proc/self/" + page.told().link()).c_str(), target, sizeof target - 1), 0);
  EXPECT_STREQ(target, "/memfd:karst-low (deleted)");
}

TEST(ProcessMaps, PartsOfALine) {
  const auto all = parse_maps(
      "00400000-00401000 r-xp 00002000 fe:1f 11116556                  /usr/bin/a b\n"
      "7ffd1000-7ffd3000 rw-p 00000000 00:00 0 \n"
      "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n");
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].begin, 0x400000U);
  EXPECT_EQ(all[0].end, 0x401000U);
  EXPECT_EQ(all[0].offset, 0x2000U);
  EXPECT_EQ(all[0].device_major, 0xfeU);
  EXPECT_EQ(all[0].device_minor, 0x1fU);
  EXPECT_EQ(all[0].inode, 11116556U);
  EXPECT_EQ(all[0].path, "/usr/bin/a b");
  EXPECT_TRUE(all[0].is_code());
  EXPECT_TRUE(all[0].contains(0x400000) && !all[0].contains(0x401000));
  EXPECT_EQ(all[1].path, "");
  EXPECT_FALSE(all[1].is_executable());
  EXPECT_EQ(all[2].path, "[vsyscall]");
  EXPECT_TRUE(all[2].is_executable() && !all[2].is_code());
}

TEST(ProcessMaps, LinesThatAreNoneAreLeftOut) {
  for (const char* line : {"",
                           " ",
                           "-",
                           "x",
                           "1000",
                           "1000-",
                           "1000-2000",
                           "1000-2000 ",
                           "1000-2000 r-xp",
                           "1000-2000 r-xp 0",
                           "1000-2000 r-xp 0 08:01",
                           "1000-2000 r-xp 0 08:01 ",
                           "1000-2000 r-xp 0 0801 5 /a",
                           "1000-2000 r-x 0 08:01 5 /a",
                           "2000-1000 r-xp 0 08:01 5 /a",
                           "1000-1000 r-xp 0 08:01 5 /a",
                           "x000-2000 r-xp 0 08:01 5 /a",
                           "1000-2000 r-xp 0 08:01 5x /a",
                           "1000-2000 r-xp 0 08:01 -5 /a",
                           "1000-2000 r-xp 0x0 08:01 5 /a",
                           "1000-10000000000000000 r-xp 0 08:01 5 /a",
                           "1000-2000 r-xp 0 08:100000000 5 /a",
                           "1000-2000 r-xp 0 08:01 99999999999999999999 /a"}) {
    EXPECT_TRUE(parse_maps(line).empty()) << line;
    EXPECT_EQ(parse_maps(std::string(line) + "\n3000-4000 r-xp 0 08:01 5 /b").size(), 1U) << line;
  }
}

TEST(ProcessMaps, AnEndWithoutANewlineIsALine) {
  const auto all = parse_maps("1000-2000 r-xp 0 08:01 5 /a\n3000-4000 r-xp 0 08:01 5");
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[1].inode, 5U);
  EXPECT_EQ(all[1].path, "");
}

TEST(ProcessMaps, OfNoProcessAreEmpty) { EXPECT_TRUE(read_maps("/proc/0/maps").empty()); }

TEST(ProcessMaps, AreTheSameOfAFileAndOfItsText) {
  const std::string path = "/proc/" + std::to_string(getppid()) + "/maps";  // its own change as they are read
  std::ifstream in(path);
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  const auto all = read_maps(path);
  EXPECT_EQ(parse_maps(text).size(), all.size());
  EXPECT_EQ(all.size(), static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')));
}

TEST(ProcessMaps, TheRuntimeIsToldByItsFilesName) {
  const auto is_runtime = [](const char* path) {
    Mapping m;
    m.path = path;
    return m.is_runtime();
  };
  EXPECT_TRUE(is_runtime("/usr/lib/karst/libkarst.so"));
  EXPECT_TRUE(is_runtime("/usr/lib/karst/libkarst.so (deleted)"));
  EXPECT_FALSE(is_runtime("/usr/lib/karst/libkarst-locks.so"));
  EXPECT_FALSE(is_runtime("/tmp/libkarst.so/other"));
  EXPECT_FALSE(is_runtime("[anon:libkarst.so]"));
}

}  // namespace
}  // namespace karst
