// An index from the cache answers as one that was built.
#include "engine/index/index_cache.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "engine/api/api.h"
#include "format/checksum.h"
#include "test/engine/random_trace.h"

namespace karst {
namespace {

namespace fs = std::filesystem;

class IndexCacheTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = fs::path(testing::TempDir()) / ("karst-index-" + std::to_string(::getpid()));
    fs::create_directories(directory_);
    trace_ = directory_ / "app.karst";
    write_trace(1);
  }
  void TearDown() override { fs::remove_all(directory_); }

  void write_trace(std::uint32_t seed) {
    test::SampleTrace sample;
    test::fill_random(sample, {.seed = seed, .threads = 3, .calls = 3000, .open_ends = true, .processes = 2});
    auto writer = writing::TraceWriter::create(trace_);
    ASSERT_TRUE(writer.ok());
    sample.write(*writer);
  }
  engine::IndexCache cache(std::uint64_t limit = engine::IndexCache::kDefaultLimit) const {
    return engine::IndexCache(directory_ / "cache", limit, 0);
  }
  std::unique_ptr<engine::TraceIndex> open(const engine::IndexCache* from) {
    engine::IndexProgress progress;
    auto index = engine::TraceIndex::build(trace_, progress, from);
    if (!index) throw std::runtime_error(index.error().message);
    EXPECT_EQ(progress.done, progress.total);
    return std::move(*index);
  }

  static std::string bytes_of(const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  fs::path directory_;
  fs::path trace_;
  std::atomic<bool> stop_ = false;
};

TEST_F(IndexCacheTest, AnswersTheSame) {
  const auto kept = cache();
  const auto built = open(&kept);
  EXPECT_FALSE(built->from_cache());
  ASSERT_TRUE(kept.save(*built, stop_));
  const auto loaded = open(&kept);
  ASSERT_TRUE(loaded->from_cache());
  engine::Api of_built({built.get()}, "1");
  engine::Api of_loaded({loaded.get()}, "1");
  for (const char* path : {"trace", "functions", "flame", "minimap"}) {
    EXPECT_EQ(of_built.answer(path, {}).body, of_loaded.answer(path, {}).body) << path;
  }
  for (const char* end : {"1000", "100000", "5000000"}) {
    const engine::Parameters where = {{"width", "300"}, {"begin", "10"}, {"end", end}};
    EXPECT_EQ(of_built.answer("tiles", where).body, of_loaded.answer("tiles", where).body) << end;
  }
  EXPECT_FALSE(kept.save(*loaded, stop_));  // it is there
}

TEST_F(IndexCacheTest, OneThatOthersMayWriteIsNotUsed) {
  const auto kept = cache();
  ASSERT_TRUE(kept.save(*open(&kept), stop_));
  ASSERT_TRUE(open(&kept)->from_cache());
  const fs::path file = kept.file_of(kept.look_at(trace_));
  for (const fs::perms others : {fs::perms::group_write, fs::perms::others_write}) {
    fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write | others);
    EXPECT_FALSE(open(&kept)->from_cache());
  }
}

TEST_F(IndexCacheTest, ATraceIsKnownWhereverItIs) {
  const auto kept = cache();
  const auto built = open(&kept);
  ASSERT_TRUE(kept.save(*built, stop_));
  fs::create_directories(directory_ / "elsewhere");
  const fs::path moved = directory_ / "elsewhere" / "b.karst";
  fs::rename(trace_, moved);
  trace_ = moved;
  EXPECT_TRUE(open(&kept)->from_cache());
  const fs::path copy = directory_ / "copy.karst";
  fs::copy_file(moved, copy);
  trace_ = copy;
  EXPECT_TRUE(open(&kept)->from_cache());
  trace_ = directory_ / "link.karst";
  fs::create_symlink(copy, trace_);
  const auto linked = open(&kept);
  EXPECT_TRUE(linked->from_cache());
  EXPECT_EQ(linked->calls(), built->calls());
  EXPECT_EQ(std::distance(fs::directory_iterator(directory_ / "cache"), fs::directory_iterator()), 1);
}

TEST_F(IndexCacheTest, AnotherTraceOfTheSameSizeAndTimeIsAnotherOne) {
  const auto kept = cache();
  ASSERT_TRUE(kept.save(*open(&kept), stop_));
  const fs::file_time_type time = fs::last_write_time(trace_);
  const auto size = fs::file_size(trace_);
  // Two that differ in the time of one event.
  const fs::path other = directory_ / "other.karst";
  for (const std::uint64_t at : {90'000'000U, 90'000'001U}) {
    test::SampleTrace one;
    test::fill_random(one, {.seed = 1, .threads = 3, .calls = 3000, .open_ends = true, .processes = 2});
    one.call(1, at, 90'000'100);
    auto writer = writing::TraceWriter::create(at == 90'000'000U ? trace_ : other);
    ASSERT_TRUE(writer.ok());
    one.write(*writer);
  }
  ASSERT_NE(fs::file_size(trace_), size);
  ASSERT_TRUE(kept.save(*open(&kept), stop_));
  ASSERT_TRUE(open(&kept)->from_cache());
  ASSERT_EQ(fs::file_size(trace_), fs::file_size(other));
  {
    // Into the same file, so that its inode stays, too.
    std::ifstream in(other, std::ios::binary);
    std::ofstream out(trace_, std::ios::binary | std::ios::trunc);
    out << in.rdbuf();
  }
  fs::last_write_time(trace_, time);
  EXPECT_FALSE(open(&kept)->from_cache());
}

TEST_F(IndexCacheTest, ATraceThatWasDamagedSinceIsNotTakenForTheSoundOne) {
  const auto kept = cache();
  ASSERT_TRUE(kept.save(*open(&kept), stop_));
  const fs::file_time_type time = fs::last_write_time(trace_);
  ASSERT_TRUE(open(&kept)->from_cache());
  {
    std::fstream file(trace_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(0, std::ios::end);
    const auto middle = file.tellg() / 2;  // among events: no header changes
    file.seekg(middle);
    const char was = static_cast<char>(file.get());
    file.seekp(middle);
    file.put(static_cast<char>(was ^ 1));
  }
  fs::last_write_time(trace_, time);
  ASSERT_TRUE(kept.look_at(trace_).contents.has_value());
  EXPECT_FALSE(kept.look_at(trace_).sound);
  const auto damaged = open(&kept);
  EXPECT_FALSE(damaged->from_cache());
  EXPECT_FALSE(damaged->trace().problems().empty());
}

TEST_F(IndexCacheTest, AnIndexThatSomebodyMadeUpIsNoneHoweverRightItsChecksumsAre) {
  const auto kept = cache();
  const auto built = open(&kept);
  ASSERT_TRUE(kept.save(*built, stop_));
  const fs::path file = kept.file_of(kept.look_at(trace_));
  std::string sound = bytes_of(file);
  // Where engine/index/index_cache.cc has it: the list of numbers at the end starts with the number of threads, then of
  // the first one's rows, then the place, size and checksum of each of its eight parts.
  const auto number = [&](std::string& bytes, std::size_t at) {
    std::uint64_t value = 0;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    return value;
  };
  const auto put = [](std::string& bytes, std::size_t at, const auto& value) {
    std::memcpy(bytes.data() + at, &value, sizeof value);
  };
  constexpr std::size_t kMetaOffset = 40, kMetaCount = 48, kBoot = 56, kMetaCrc = 80, kCrc = 84;
  const std::size_t meta = number(sound, kMetaOffset);
  ASSERT_EQ(number(sound, meta), built->threads().size());
  ASSERT_EQ(number(sound, meta + 8), built->threads()[0].calls.size());
  std::mt19937 random(3);
  for (std::size_t part : {0U, 3U, 6U, 7U}) {  // functions, parents, rows of lanes, nodes
    for (int i = 0; i < 8; ++i) {
      std::string made_up = sound;
      const std::size_t entry = meta + 16 + part * 24;
      const std::size_t offset = number(sound, entry);
      const std::size_t size = number(sound, entry + 8);
      const std::size_t step = part == 7 ? sizeof(engine::LaneNode) : sizeof(std::uint32_t);
      const std::size_t at = offset + random() % (size / step) * step + (part == 7 ? 24 : 0);
      put(made_up, at, std::uint32_t{0xfffffff0});
      put(made_up, entry + 16, std::uint64_t{format::crc32c(made_up.data() + offset, size)});
      put(made_up, kBoot, std::uint64_t{0});  // its checksums are to be looked at, and are right
      put(made_up, kMetaCrc, format::crc32c(made_up.data() + meta, number(sound, kMetaCount) * 8));
      put(made_up, kCrc, format::crc32c(made_up.data(), kCrc));
      std::ofstream(file, std::ios::binary | std::ios::trunc) << made_up;
      const auto index = open(&kept);
      EXPECT_FALSE(index->from_cache()) << part;
      EXPECT_EQ(index->calls(), built->calls());
    }
  }
  // The same way, with nothing made up: it would be taken.
  put(sound, kBoot, std::uint64_t{0});
  put(sound, kCrc, format::crc32c(sound.data(), kCrc));
  std::ofstream(file, std::ios::binary | std::ios::trunc) << sound;
  EXPECT_TRUE(open(&kept)->from_cache());
}

TEST_F(IndexCacheTest, AChangedTraceIsAnotherOne) {
  const auto kept = cache();
  ASSERT_TRUE(kept.save(*open(&kept), stop_));
  const fs::path before = kept.file_of(kept.look_at(trace_));
  write_trace(2);
  EXPECT_NE(kept.file_of(kept.look_at(trace_)), before);
  EXPECT_FALSE(open(&kept)->from_cache());
}

TEST_F(IndexCacheTest, DamageIsNoticedWhereverItIs) {
  const auto kept = cache();
  const auto built = open(&kept);
  ASSERT_TRUE(kept.save(*built, stop_));
  const fs::path file = kept.file_of(kept.look_at(trace_));
  const std::string sound = bytes_of(file);
  const auto try_with = [&](const std::string& bytes) {
    std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
    return open(&kept);
  };
  ASSERT_TRUE(try_with(sound)->from_cache());
  std::mt19937 random(7);
  std::size_t noticed = 0;
  for (int i = 0; i < 150; ++i) {
    std::string damaged = sound;
    // Half of them where the tables are: at the ends.
    const std::size_t at =
        i % 2 == 0 ? random() % sound.size() : (i % 4 == 1 ? random() % 48 : sound.size() - 1 - random() % 400);
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << random() % 8));
    const auto index = try_with(damaged);
    EXPECT_EQ(index->calls(), built->calls());
    noticed += index->from_cache() ? 0 : 1;
  }
  EXPECT_GE(noticed, 145U);  // what is left are zeros between parts
  EXPECT_FALSE(try_with(sound.substr(0, sound.size() / 2))->from_cache());
  EXPECT_FALSE(try_with("")->from_cache());
}

TEST_F(IndexCacheTest, ChecksumsAreLookedAtOnceWhileNobodyWritesToTheFile) {
  const auto kept = cache();
  EXPECT_FALSE(kept.look_at(trace_).sound);
  ASSERT_TRUE(kept.save(*open(&kept), stop_));
  const fs::path file = kept.file_of(kept.look_at(trace_));
  // Where the machine does not tell its starts apart there are no stamps.
  if (!fs::exists("/proc/sys/kernel/random/boot_id")) GTEST_SKIP() << "there is no boot_id";
  EXPECT_TRUE(kept.look_at(trace_).sound);
  EXPECT_TRUE(open(&kept)->from_cache());
  EXPECT_TRUE(kept.look_at(trace_).sound);  // to be read changes nothing
  const auto stamped_at = fs::last_write_time(file);
  fs::last_write_time(file, stamped_at - std::chrono::seconds(3));
  EXPECT_FALSE(kept.look_at(trace_).sound);
  EXPECT_TRUE(open(&kept)->from_cache());  // they are right
  EXPECT_TRUE(kept.look_at(trace_).sound);
  // Another trace at the same place has none.
  write_trace(2);
  EXPECT_FALSE(kept.look_at(trace_).sound);
}

TEST_F(IndexCacheTest, ADamagedTraceIsLookedAtAnewEachTime) {
  {
    std::fstream file(trace_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-100, std::ios::end);
    file.put('!');
  }
  const auto kept = cache();
  const auto built = open(&kept);
  ASSERT_FALSE(built->trace().problems().empty());
  EXPECT_FALSE(kept.save(*built, stop_));
}

TEST_F(IndexCacheTest, TheOldestGoWhenTheLimitIsReached) {
  const auto kept = cache();
  ASSERT_TRUE(kept.save(*open(&kept), stop_));
  const fs::path first = kept.file_of(kept.look_at(trace_));
  const auto size = fs::file_size(first);
  fs::last_write_time(first, fs::file_time_type::clock::now() - std::chrono::hours(5));
  write_trace(3);
  const auto small = cache(size + size / 2);
  ASSERT_TRUE(small.save(*open(&small), stop_));
  EXPECT_FALSE(fs::exists(first));
  EXPECT_TRUE(fs::exists(small.file_of(small.look_at(trace_))));
}

TEST_F(IndexCacheTest, IsLeftAloneWhenItDoesNotPayOrMayNot) {
  const auto some = cache();
  const auto built = open(&some);
  EXPECT_FALSE(engine::IndexCache(directory_ / "cache").save(*built, stop_));  // too few calls
  EXPECT_FALSE(cache(1000).save(*built, stop_));                               // over the limit
  EXPECT_FALSE(engine::IndexCache({}, 1 << 30, 0).save(*built, stop_));        // off
  stop_ = true;
  EXPECT_FALSE(cache().save(*built, stop_));
  if (fs::exists(directory_ / "cache")) {
    EXPECT_TRUE(fs::is_empty(directory_ / "cache"));
  }
}

}  // namespace
}  // namespace karst
