#include "symbols/cache.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <thread>

#include "fixture.h"
#include "format/checksum.h"
#include "symbols/symbol_image.h"

namespace karst::symbols {
namespace {

using namespace test;

class CacheTest : public testing::Test {
 protected:
  CacheTest() : cache_(directory_.path() / "a" / "karst") {}

  static std::string id_of(const char* name) { return std::string(load_fixture(name).build_id()); }
  static std::string bytes_of(const SymbolTable& table) {
    return {reinterpret_cast<const char*>(table.image().data()), table.image().size()};
  }
  static unsigned mode_of(const std::filesystem::path& path) {
    struct stat status {};
    return ::stat(path.c_str(), &status) == 0 ? status.st_mode & 07777U : 0;
  }

  TemporaryDirectory directory_;
  Cache cache_;
  std::string id_ = id_of("optimised");
};

TEST_F(CacheTest, GivesBackWhatItSavedEvenWhenTheModuleIsGone) {
  EXPECT_FALSE(cache_.find(id_).has_value());
  auto fresh = cache_.load(fixture("optimised"), id_);
  ASSERT_TRUE(fresh.ok());
  auto cached = cache_.load(directory_.path() / "not-there", id_);
  ASSERT_TRUE(cached.ok()) << cached.error().message;
  EXPECT_EQ(bytes_of(*cached), bytes_of(*fresh));
}

TEST_F(CacheTest, IsPrivateToTheUser) {
  ASSERT_TRUE(cache_.load(fixture("optimised"), id_).ok());
  EXPECT_EQ(mode_of(directory_.path() / "a" / "karst"), 0700U);
  EXPECT_EQ(mode_of(cache_.file_of(id_)), 0600U);
}

TEST_F(CacheTest, NamesFilesByBuildIdInHexSoThatAHostileIdIsNoPath) {
  EXPECT_EQ(cache_.file_of("../x").filename(), "2e2e2f78.symbols");
  EXPECT_EQ(cache_.file_of(""), "");
  EXPECT_EQ(cache_.file_of(std::string(65, 'x')), "");
}

TEST_F(CacheTest, KeepsNothingWithoutBuildIdOrDebugInformation) {
  ASSERT_TRUE(cache_.load(fixture("no_build_id"), "").ok());
  ASSERT_TRUE(cache_.load(fixture("no_debug"), id_of("no_debug")).ok());
  EXPECT_FALSE(std::filesystem::exists(directory_.path() / "a"));
}

TEST_F(CacheTest, DoesNotAnswerForAModuleThatChanged) {
  ASSERT_TRUE(cache_.load(fixture("optimised"), id_).ok());
  std::string other = id_;
  other[3] = static_cast<char>(other[3] ^ 1);
  EXPECT_FALSE(cache_.load(fixture("optimised"), other).ok());
}

TEST_F(CacheTest, RebuildsAndReplacesADamagedForeignOrOldFile) {
  auto fresh = cache_.load(fixture("optimised"), id_);
  ASSERT_TRUE(fresh.ok());
  const std::string whole = bytes_of(*fresh);
  std::vector<std::string> bad = {"", "x", std::string(1000, '\0'), whole + "x", whole.substr(0, whole.size() - 1)};
  for (std::size_t size = 1; size < whole.size(); size += 211) bad.push_back(whole.substr(0, size));
  for (std::size_t at = 0; at < whole.size(); at += at < 120 ? 1 : 173) {
    bad.push_back(whole);
    bad.back()[at] = static_cast<char>(bad.back()[at] ^ 0x10);
  }
  for (const std::string& bytes : bad) {
    write_file(cache_.file_of(id_), bytes);
    EXPECT_FALSE(cache_.find(id_).has_value());
  }
  auto rebuilt = cache_.load(fixture("optimised"), id_);
  ASSERT_TRUE(rebuilt.ok());
  EXPECT_EQ(bytes_of(*rebuilt), whole);
  EXPECT_EQ(read_file(cache_.file_of(id_)), whole);
}

/// Checksums are no defence against who can compute them.
TEST_F(CacheTest, RefusesWrongRowsUnderRightChecksums) {
  auto fresh = cache_.load(fixture("optimised"), id_);
  ASSERT_TRUE(fresh.ok());
  const std::string whole = bytes_of(*fresh);
  auto forged = [&](auto change) {
    std::string bytes = whole;
    ImageHeader header;
    std::memcpy(&header, bytes.data(), sizeof header);
    change(bytes, header);
    header.payload_crc = format::crc32c(bytes.data() + sizeof header, bytes.size() - sizeof header);
    header.header_crc = format::crc32c(&header, offsetof(ImageHeader, header_crc));
    std::memcpy(bytes.data(), &header, sizeof header);
    write_file(cache_.file_of(id_), bytes);
    return cache_.find(id_).has_value();
  };
  auto row = [](std::string& bytes, std::size_t i, std::size_t field) {
    return bytes.data() + sizeof(ImageHeader) + i * sizeof(ImageRow) + field;
  };
  EXPECT_TRUE(forged([](std::string&, ImageHeader&) {}));
  EXPECT_FALSE(
      forged([&](std::string& b, ImageHeader&) { std::memset(row(b, 2, offsetof(ImageRow, name)), 0x7f, 4); }));
  EXPECT_FALSE(
      forged([&](std::string& b, ImageHeader&) { std::memset(row(b, 2, offsetof(ImageRow, file)), 0xff, 4); }));
  EXPECT_FALSE(forged([&](std::string& b, ImageHeader&) { std::memset(row(b, 1, offsetof(ImageRow, begin)), 0, 8); }));
  EXPECT_FALSE(forged([&](std::string& b, ImageHeader&) { std::memset(row(b, 1, offsetof(ImageRow, end)), 0, 8); }));
  EXPECT_FALSE(forged([](std::string& b, ImageHeader&) { b.back() = 'x'; }));
  EXPECT_FALSE(forged([](std::string&, ImageHeader& h) { h.row_count = ~std::uint64_t{0} / 32; }));
  EXPECT_FALSE(forged([](std::string&, ImageHeader& h) { h.build_id_size = 65; }));
  EXPECT_FALSE(forged([](std::string&, ImageHeader& h) { h.build_id[0] ^= 1; }));
  EXPECT_FALSE(forged([](std::string&, ImageHeader& h) { h.version += 1; }));
}

TEST_F(CacheTest, FollowsNoSymbolicLinkAndReadsNoFifo) {
  ASSERT_TRUE(cache_.load(fixture("optimised"), id_).ok());
  std::filesystem::path file = cache_.file_of(id_);
  std::filesystem::rename(file, directory_.path() / "elsewhere");
  std::filesystem::create_symlink(directory_.path() / "elsewhere", file);
  EXPECT_FALSE(cache_.find(id_).has_value());
  std::filesystem::remove(file);
  ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);
  EXPECT_FALSE(cache_.find(id_).has_value());
}

TEST_F(CacheTest, WorksWithoutADirectoryThatCanBeMade) {
  write_file(directory_.path() / "file", "in the way");
  Cache blocked(directory_.path() / "file" / "karst");
  EXPECT_TRUE(blocked.load(fixture("optimised"), id_).ok());
  EXPECT_FALSE(blocked.save(load_fixture("optimised")));
  Cache nowhere("/proc/no-such/karst");
  EXPECT_TRUE(nowhere.load(fixture("optimised"), id_).ok());
  EXPECT_TRUE(Cache().load(fixture("optimised"), id_).ok());
  EXPECT_FALSE(Cache().on());
}

TEST_F(CacheTest, LeavesNoPartOfAFileThatDoesNotFit) {
  Cache small(directory_.path() / "small", 100);
  EXPECT_FALSE(small.save(load_fixture("optimised")));
  auto child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {  // a full disk, as a limit on the size of files
    signal(SIGXFSZ, SIG_IGN);
    rlimit limit{4096, 4096};
    setrlimit(RLIMIT_FSIZE, &limit);
    _exit(cache_.load(fixture("optimised"), id_).ok() && !cache_.find(id_) ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(std::filesystem::is_empty(directory_.path() / "a" / "karst"));
}

TEST_F(CacheTest, DropsTheTablesUnusedForLongestWhenItGrowsTooLarge) {
  std::size_t size = load_fixture("optimised").image().size() + load_fixture("dwarf5").image().size() +
                     load_fixture("dwarf4").image().size();
  Cache limited(directory_.path() / "limited", size - 1);
  auto save = [&](const char* name, int age) {
    ASSERT_TRUE(limited.save(load_fixture(name)));
    timespec old{time(nullptr) - age, 0};
    timespec times[2] = {old, old};
    ASSERT_EQ(utimensat(AT_FDCWD, limited.file_of(id_of(name)).c_str(), times, 0), 0);
  };
  save("optimised", 300);
  save("dwarf5", 200);
  EXPECT_TRUE(limited.find(id_).has_value());  // used: now the youngest
  ASSERT_TRUE(limited.save(load_fixture("dwarf4")));
  EXPECT_TRUE(limited.find(id_).has_value());
  EXPECT_FALSE(limited.find(id_of("dwarf5")).has_value());
  EXPECT_TRUE(limited.find(id_of("dwarf4")).has_value());
}

TEST_F(CacheTest, TakesManyWritersAndReadersAtOnce) {
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  const std::string whole = bytes_of(load_fixture("optimised"));
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      auto table = load_fixture("optimised");
      for (int i = 0; i < 50; ++i) {
        if (!cache_.save(table)) ++wrong;
        auto found = cache_.find(id_);
        if (!found || bytes_of(*found) != whole) ++wrong;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  auto entries = std::filesystem::directory_iterator(directory_.path() / "a" / "karst");
  EXPECT_EQ(std::distance(begin(entries), end(entries)), 1) << "temporary files are left";
}

struct Environment {
  explicit Environment(const char* n) : name(n) {
    if (const char* v = std::getenv(n)) value = v;
  }
  ~Environment() { value ? setenv(name, value->c_str(), 1) : unsetenv(name); }
  const char* name;
  std::optional<std::string> value;
};

// sudo keeps HOME where it is told to: root's directories there would lock the user out of ~/.cache.
TEST_F(CacheTest, MakesNothingInAnotherUsersHome) {
  const auto home_path = directory_.path() / "home";
  std::filesystem::create_directory(home_path);
  if (::chown(home_path.c_str(), 65534, 65534) != 0) GTEST_SKIP() << "needs root, to make a directory of another user";
  Environment xdg("XDG_CACHE_HOME"), home("HOME");
  unsetenv("XDG_CACHE_HOME");
  setenv("HOME", home_path.c_str(), 1);
  EXPECT_FALSE(Cache::of_user().on());
  Cache asked_for(home_path / ".cache" / "karst");
  EXPECT_TRUE(asked_for.load(fixture("optimised"), id_).ok());
  EXPECT_TRUE(std::filesystem::is_empty(home_path));
  // The user's link leads root to a directory of root's.
  std::filesystem::create_directory(directory_.path() / "roots");
  std::filesystem::create_directory_symlink(directory_.path() / "roots", home_path / ".cache");
  ASSERT_EQ(::lchown((home_path / ".cache").c_str(), 65534, 65534), 0);
  EXPECT_FALSE(Cache::of_user().on());
  setenv("XDG_CACHE_HOME", (home_path / "elsewhere").c_str(), 1);
  EXPECT_FALSE(Cache::of_user().on());
  setenv("XDG_CACHE_HOME", (directory_.path() / "elsewhere").c_str(), 1);
  EXPECT_TRUE(Cache::of_user().on());
}

TEST_F(CacheTest, IsWhereTheEnvironmentSays) {
  Environment xdg("XDG_CACHE_HOME"), home("HOME");
  setenv("HOME", "/home/someone", 1);
  setenv("XDG_CACHE_HOME", "/caches", 1);
  EXPECT_EQ(Cache::of_user().file_of("a").parent_path(), "/caches/karst");
  setenv("XDG_CACHE_HOME", "relative", 1);
  EXPECT_EQ(Cache::of_user().file_of("a").parent_path(), "/home/someone/.cache/karst");
  unsetenv("XDG_CACHE_HOME");
  EXPECT_EQ(Cache::of_user().file_of("a").parent_path(), "/home/someone/.cache/karst");
  unsetenv("HOME");
  EXPECT_FALSE(Cache::of_user().on());
}

}  // namespace
}  // namespace karst::symbols
