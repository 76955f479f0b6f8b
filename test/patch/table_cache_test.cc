// Answers of sandboxes that are kept from run to run: used only for the very file and the very wishes, and only if the
// kept file is ours alone and whole.
#include "patch/table_cache.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "patch/find.h"

namespace karst::patch {
namespace {

namespace fs = std::filesystem;

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

Descriptor open_file(const fs::path& path) { return Descriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC)); }

std::string contents(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class TableCacheTest : public testing::Test {
 protected:
  TableCacheTest() {
    std::string name = (fs::temp_directory_path() / "karst-table-cache-XXXXXX").string();
    directory_ = mkdtemp(name.data());
    cache_ = TableCache(directory_ / "patches");
  }
  ~TableCacheTest() override { fs::remove_all(directory_); }

  /// The one that is kept.
  fs::path kept() const {
    fs::path found;
    std::size_t count = 0;
    for (const auto& entry : fs::directory_iterator(directory_ / "patches")) {
      found = entry.path();
      ++count;
    }
    EXPECT_EQ(count, 1U);
    return found;
  }

  fs::path directory_;
  TableCache cache_;
  // Nothing changes it, and it is older than any test.
  Descriptor program_ = open_file("/proc/self/exe");
};

TEST_F(TableCacheTest, GivesBackWhatWasSaved) {
  const auto key = cache_.key_of(program_.get(), "all");
  ASSERT_FALSE(key.empty());
  EXPECT_FALSE(cache_.find(key));
  ASSERT_TRUE(cache_.save(key, bytes_of("answer")));
  EXPECT_EQ(cache_.find(key), bytes_of("answer"));
  EXPECT_EQ(cache_.find(cache_.key_of(program_.get(), "all")), bytes_of("answer"));
  struct stat status {};
  ASSERT_EQ(stat(kept().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
}

TEST_F(TableCacheTest, OtherWishesAreOtherAnswers) {
  ASSERT_TRUE(cache_.save(cache_.key_of(program_.get(), "all"), bytes_of("answer")));
  EXPECT_FALSE(cache_.find(cache_.key_of(program_.get(), "some")));
  EXPECT_FALSE(cache_.find(cache_.key_of(open_file("/bin/sh").get(), "all")));
}

TEST_F(TableCacheTest, WithoutADirectoryThereIsNone) {
  const TableCache off;
  const auto key = off.key_of(program_.get(), "all");
  EXPECT_TRUE(key.empty());
  EXPECT_FALSE(off.find(key));
  EXPECT_FALSE(off.save(key, bytes_of("answer")));
}

TEST_F(TableCacheTest, DamageAnywhereIsAMiss) {
  const auto key = cache_.key_of(program_.get(), "all");
  ASSERT_TRUE(cache_.save(key, bytes_of("an answer")));
  const fs::path file = kept();
  const std::string whole = contents(file);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    std::ofstream(file, std::ios::binary | std::ios::trunc) << damaged;
    EXPECT_FALSE(cache_.find(key)) << "byte " << i;
    std::ofstream(file, std::ios::binary | std::ios::trunc) << whole.substr(0, i);
    EXPECT_FALSE(cache_.find(key)) << i << " bytes";
  }
  std::ofstream(file, std::ios::binary | std::ios::trunc) << whole << '.';
  EXPECT_FALSE(cache_.find(key)) << "longer";
  std::ofstream(file, std::ios::binary | std::ios::trunc) << whole;
  EXPECT_TRUE(cache_.find(key));
}

// A number that says of itself that it is large costs nothing.
TEST_F(TableCacheTest, SizesThatAreNotThereAreAMiss) {
  const auto key = cache_.key_of(program_.get(), "all");
  ASSERT_TRUE(cache_.save(key, bytes_of("an answer")));
  const std::string whole = contents(kept());
  for (const std::size_t field : {std::size_t{16}, std::size_t{24}}) {
    for (const std::uint64_t size : {~std::uint64_t{0}, std::uint64_t{1} << 40, ~std::uint64_t{0} - 200}) {
      std::string changed = whole;
      std::memcpy(&changed[field], &size, sizeof size);
      std::ofstream(kept(), std::ios::binary | std::ios::trunc) << changed;
      EXPECT_FALSE(cache_.find(key));
    }
  }
}

TEST_F(TableCacheTest, WhatOthersMayWriteIsNotUsed) {
  const auto key = cache_.key_of(program_.get(), "all");
  ASSERT_TRUE(cache_.save(key, bytes_of("answer")));
  const fs::path file = kept();
  ASSERT_EQ(chmod(file.c_str(), 0620), 0);
  EXPECT_FALSE(cache_.find(key)) << "by its group";
  ASSERT_EQ(chmod(file.c_str(), 0602), 0);
  EXPECT_FALSE(cache_.find(key)) << "by all";
  ASSERT_EQ(chmod(file.c_str(), 0600), 0);
  ASSERT_TRUE(cache_.find(key));
  ASSERT_EQ(chmod((directory_ / "patches").c_str(), 0777), 0);
  EXPECT_FALSE(cache_.find(key)) << "by who may write to the directory";
  ASSERT_EQ(chmod((directory_ / "patches").c_str(), 0700), 0);
  fs::create_hard_link(file, directory_ / "another name");
  EXPECT_FALSE(cache_.find(key)) << "by another name";
  fs::remove(directory_ / "another name");
  fs::rename(file, directory_ / "elsewhere");
  fs::create_symlink(directory_ / "elsewhere", file);
  EXPECT_FALSE(cache_.find(key)) << "by a link";
}

TEST_F(TableCacheTest, WhatAnotherUserOwnsIsNotUsed) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  const auto key = cache_.key_of(program_.get(), "all");
  ASSERT_TRUE(cache_.save(key, bytes_of("answer")));
  ASSERT_EQ(chown(kept().c_str(), 65534, 65534), 0);
  EXPECT_FALSE(cache_.find(key));
  ASSERT_EQ(chown(kept().c_str(), 0, 0), 0);
  EXPECT_TRUE(cache_.find(key));
  ASSERT_EQ(chown((directory_ / "patches").c_str(), 65534, 65534), 0);
  EXPECT_FALSE(cache_.find(key));
  EXPECT_FALSE(cache_.save(key, bytes_of("answer")));
}

// Two changes within a tick of the file system's clock have the same time.
TEST_F(TableCacheTest, FilesThatChangedJustNowAreNotKept) {
  const fs::path file = directory_ / "program";
  fs::copy_file("/bin/true", file);
  const Descriptor there = open_file(file);
  EXPECT_TRUE(cache_.key_of(there.get(), "all").empty());
  std::this_thread::sleep_for(std::chrono::milliseconds(3200));
  const auto key = cache_.key_of(there.get(), "all");
  ASSERT_FALSE(key.empty());
  ASSERT_TRUE(cache_.save(key, bytes_of("answer")));
  // Times that the file's owner puts back, and a file of the same size in its place: the system's own time tells.
  struct stat before {};
  ASSERT_EQ(stat(file.c_str(), &before), 0);
  std::fstream(file, std::ios::binary | std::ios::in | std::ios::out).seekp(64).put('x');
  const timespec times[] = {before.st_atim, before.st_mtim};
  ASSERT_EQ(utimensat(AT_FDCWD, file.c_str(), times, 0), 0);
  EXPECT_NE(cache_.key_of(there.get(), "all"), key);
  fs::copy_file("/bin/true", directory_ / "other");
  ASSERT_EQ(utimensat(AT_FDCWD, (directory_ / "other").c_str(), times, 0), 0);
  fs::rename(directory_ / "other", file);
  EXPECT_NE(cache_.key_of(open_file(file).get(), "all"), key);
}

void expect_same(const ModulePlaces& a, const ModulePlaces& b) {
  EXPECT_EQ(a.table, b.table);
  EXPECT_EQ(a.counts(), b.counts());
  EXPECT_EQ(a.libraries, b.libraries);
  ASSERT_EQ(a.functions.size(), b.functions.size());
  for (std::size_t i = 0; i < a.functions.size(); ++i) {
    EXPECT_EQ(a.functions[i].begin, b.functions[i].begin);
    EXPECT_EQ(a.functions[i].end, b.functions[i].end);
    EXPECT_EQ(a.functions[i].left_out, b.functions[i].left_out);
  }
}

TEST_F(TableCacheTest, ASecondLookIsTheSame) {
  const Descriptor file = open_file("/bin/sh");
  const auto without = find_in_file(file.get(), {}, std::nullopt);
  ASSERT_TRUE(without) << without.error().message;
  const auto first = find_in_file(file.get(), {}, std::nullopt, cache_);
  ASSERT_TRUE(first);
  ASSERT_TRUE(fs::exists(kept()));
  const auto second = find_in_file(file.get(), {}, std::nullopt, cache_);
  ASSERT_TRUE(second);
  expect_same(*without, *first);
  expect_same(*first, *second);
}

// Proves that it is used: the answer to another question lies in its place, under the right key.
TEST_F(TableCacheTest, ASecondLookTakesWhatIsKept) {
  const Descriptor file = open_file("/bin/sh");
  const WantedPlaces small{true, {1}};
  const WantedPlaces large{true, {50}};
  const auto of_small = find_in_file(file.get(), small, std::nullopt, cache_);
  ASSERT_TRUE(of_small);
  const std::string kept_small = contents(kept());
  fs::remove(kept());
  const auto of_large = find_in_file(file.get(), large, std::nullopt, cache_);
  ASSERT_TRUE(of_large);
  ASSERT_NE(of_small->patched(), of_large->patched());
  const fs::path place = kept();
  const std::string kept_large = contents(place);

  constexpr std::size_t kHead = 32;
  const auto key_size = [](const std::string& text) {
    std::uint64_t size = 0;
    std::memcpy(&size, &text[16], sizeof size);
    return static_cast<std::size_t>(size);
  };
  TableCache::Key key;
  key.text = kept_large.substr(kHead, key_size(kept_large));
  const std::string hex = place.stem().string();
  for (std::size_t i = 0; i < hex.size(); i += 2)
    key.file += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  ASSERT_EQ(cache_.file_of(key), place);
  ASSERT_TRUE(cache_.save(key, bytes_of(std::string_view(kept_small).substr(kHead + key_size(kept_small)))));
  const auto taken = find_in_file(file.get(), large, std::nullopt, cache_);
  ASSERT_TRUE(taken);
  expect_same(*of_small, *taken);

  // What makes no sense behind a right checksum is found anew.
  ASSERT_TRUE(cache_.save(key, bytes_of("no answer of a sandbox")));
  const auto again = find_in_file(file.get(), large, std::nullopt, cache_);
  ASSERT_TRUE(again);
  expect_same(*of_large, *again);
}

TEST_F(TableCacheTest, AnotherUsersModuleNeitherTakesFromTheCacheNorAddsToIt) {
  if (geteuid() != 0) GTEST_SKIP() << "only root's sandbox gets other rights";
  const Descriptor file = open_file("/bin/sh");
  const auto found = find_in_file(file.get(), {}, sandbox::Credentials{65534, 65534}, cache_);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_FALSE(fs::exists(directory_ / "patches"));
}

}  // namespace
}  // namespace karst::patch
