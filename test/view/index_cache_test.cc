// An index from the cache answers as one that was built.
#include "view/index_cache.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "test/view/random_trace.h"
#include "view/api.h"

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
    auto writer = collect::TraceWriter::create(trace_);
    ASSERT_TRUE(writer.ok());
    sample.write(*writer);
  }
  view::IndexCache cache(std::uint64_t limit = view::IndexCache::kDefaultLimit) const {
    return view::IndexCache(directory_ / "cache", limit, 0);
  }
  std::unique_ptr<view::TraceIndex> open(const view::IndexCache* from) {
    view::IndexProgress progress;
    auto index = view::TraceIndex::build(trace_, progress, from);
    if (!index) throw std::runtime_error(index.error().message);
    EXPECT_EQ(progress.done, progress.total);
    return std::move(*index);
  }

  fs::path directory_;
  fs::path trace_;
  std::atomic<bool> stop_ = false;
};

TEST_F(IndexCacheTest, AnswersTheSame) {
  const auto kept = cache();
  const auto built = open(&kept);
  EXPECT_FALSE(built->from_cache());
  ASSERT_TRUE(kept.save(trace_, *built, stop_));
  const auto loaded = open(&kept);
  ASSERT_TRUE(loaded->from_cache());
  view::Api of_built({built.get()}, "1");
  view::Api of_loaded({loaded.get()}, "1");
  for (const char* path : {"trace", "functions", "flame", "minimap"}) {
    EXPECT_EQ(of_built.answer(path, {}).body, of_loaded.answer(path, {}).body) << path;
  }
  for (const char* end : {"1000", "100000", "5000000"}) {
    const view::Parameters where = {{"width", "300"}, {"begin", "10"}, {"end", end}};
    EXPECT_EQ(of_built.answer("tiles", where).body, of_loaded.answer("tiles", where).body) << end;
  }
  EXPECT_FALSE(kept.save(trace_, *loaded, stop_));  // it is there
}

TEST_F(IndexCacheTest, AChangedTraceIsAnotherOne) {
  const auto kept = cache();
  ASSERT_TRUE(kept.save(trace_, *open(&kept), stop_));
  const fs::path before = kept.file_of(trace_);
  write_trace(2);
  EXPECT_NE(kept.file_of(trace_), before);
  EXPECT_FALSE(open(&kept)->from_cache());
}

TEST_F(IndexCacheTest, DamageIsNoticedWhereverItIs) {
  const auto kept = cache();
  const auto built = open(&kept);
  ASSERT_TRUE(kept.save(trace_, *built, stop_));
  const fs::path file = kept.file_of(trace_);
  std::string sound;
  {
    std::ifstream in(file, std::ios::binary);
    sound.assign(std::istreambuf_iterator<char>(in), {});
  }
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
  EXPECT_FALSE(kept.stamped(trace_));
  ASSERT_TRUE(kept.save(trace_, *open(&kept), stop_));
  const fs::path file = kept.file_of(trace_);
  // Where the machine does not tell its starts apart there are no stamps.
  if (!fs::exists("/proc/sys/kernel/random/boot_id")) GTEST_SKIP() << "there is no boot_id";
  EXPECT_TRUE(kept.stamped(trace_));
  EXPECT_TRUE(open(&kept)->from_cache());
  EXPECT_TRUE(kept.stamped(trace_));  // to be read changes nothing
  const auto stamped_at = fs::last_write_time(file);
  fs::last_write_time(file, stamped_at - std::chrono::seconds(3));
  EXPECT_FALSE(kept.stamped(trace_));
  EXPECT_TRUE(open(&kept)->from_cache());  // they are right
  EXPECT_TRUE(kept.stamped(trace_));
  // Another trace at the same place has none.
  write_trace(2);
  EXPECT_FALSE(kept.stamped(trace_));
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
  EXPECT_FALSE(kept.save(trace_, *built, stop_));
}

TEST_F(IndexCacheTest, TheOldestGoWhenTheLimitIsReached) {
  const auto kept = cache();
  ASSERT_TRUE(kept.save(trace_, *open(nullptr), stop_));
  const fs::path first = kept.file_of(trace_);
  const auto size = fs::file_size(first);
  fs::last_write_time(first, fs::file_time_type::clock::now() - std::chrono::hours(5));
  write_trace(3);
  const auto small = cache(size + size / 2);
  ASSERT_TRUE(small.save(trace_, *open(nullptr), stop_));
  EXPECT_FALSE(fs::exists(first));
  EXPECT_TRUE(fs::exists(small.file_of(trace_)));
}

TEST_F(IndexCacheTest, IsLeftAloneWhenItDoesNotPayOrMayNot) {
  const auto built = open(nullptr);
  EXPECT_FALSE(view::IndexCache(directory_ / "cache").save(trace_, *built, stop_));  // too few calls
  EXPECT_FALSE(cache(1000).save(trace_, *built, stop_));                             // over the limit
  EXPECT_FALSE(view::IndexCache({}, 1 << 30, 0).save(trace_, *built, stop_));        // off
  stop_ = true;
  EXPECT_FALSE(cache().save(trace_, *built, stop_));
  if (fs::exists(directory_ / "cache")) {
    EXPECT_TRUE(fs::is_empty(directory_ / "cache"));
  }
}

}  // namespace
}  // namespace karst
