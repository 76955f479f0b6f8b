// What is shown of a trace while it is being read is what is shown of it then, on any schedule: the reader is held
// wherever a test looks.
#include "engine/index/preview.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "engine/api/api.h"
#include "reader/partial.h"
#include "test/engine/random_trace.h"

namespace karst {
namespace {

// Builds an index in a thread of its own, which stops at each part until it is let go.
class HeldBuild {
 public:
  explicit HeldBuild(reader::Trace trace, std::uint64_t long_thread = ~std::uint64_t{0})
      : preview({.least_events = 0, .long_thread = long_thread, .on_part = [this] { hold(); }}),
        thread_([this, of = std::make_shared<reader::Trace>(std::move(trace))] {
          auto built = engine::TraceIndex::build(std::move(*of), progress, &preview);
          const std::lock_guard lock(mutex_);
          if (built) {
            index = std::move(*built);
          } else {
            error = built.error().message;
          }
          over_ = true;
          changed_.notify_all();
        }) {}
  ~HeldBuild() {
    progress.stop = true;
    let_all_go();
    thread_.join();
  }
  // Waits for `n` parts in all, or the end; whether there are so many.
  bool wait(std::uint64_t n) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return parts_ >= n || over_; });
    return parts_ >= n;
  }
  void let_go(std::uint64_t more) {
    const std::lock_guard lock(mutex_);
    allowed_ += more;
    changed_.notify_all();
  }
  void let_all_go() {
    const std::lock_guard lock(mutex_);
    free_ = true;
    changed_.notify_all();
  }
  void finish() {
    let_all_go();
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return over_; });
  }

  engine::IndexProgress progress;
  engine::Preview preview;
  std::unique_ptr<engine::TraceIndex> index;
  std::string error;

 private:
  void hold() {
    std::unique_lock lock(mutex_);
    const std::uint64_t mine = parts_++;
    changed_.notify_all();
    changed_.wait(lock, [&] { return free_ || mine < allowed_; });
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t parts_ = 0;
  std::uint64_t allowed_ = 0;
  bool free_ = false;
  bool over_ = false;
  std::thread thread_;
};

std::string name_of(const engine::TraceIndex& index, const engine::ThreadIndex& thread, std::size_t row) {
  return index.functions().functions()[index.function_of(thread, row)].name;
}

// That two threads have the same calls, in the first `rows`.
void expect_same_rows(const engine::TraceIndex& a, const engine::TraceIndex& b, std::size_t thread, std::size_t rows) {
  const engine::ThreadIndex& of_a = a.threads()[thread];
  const engine::ThreadIndex& of_b = b.threads()[thread];
  ASSERT_LE(rows, of_a.calls.size());
  ASSERT_LE(rows, of_b.calls.size());
  for (std::size_t row = 0; row < rows; ++row) {
    ASSERT_EQ(a.function_of(of_a, row), b.function_of(of_b, row)) << row;
    ASSERT_EQ(name_of(a, of_a, row), name_of(b, of_b, row)) << row;
    ASSERT_EQ(of_a.calls.begin[row], of_b.calls.begin[row]) << row;
    ASSERT_EQ(of_a.calls.depth[row], of_b.calls.depth[row]) << row;
    ASSERT_EQ(of_a.calls.parent[row], of_b.calls.parent[row]) << row;
    if ((of_a.calls.marks[row] & reader::kCallOpenEnd) == 0) {
      ASSERT_EQ(of_a.calls.end(row), of_b.calls.end(row)) << row;
      ASSERT_EQ(of_a.calls.marks[row], of_b.calls.marks[row]) << row;
    }
  }
}

TEST(Preview, HasEachThreadAsSoonAsItIsReadAndAsItStays) {
  const test::RandomShape shape{.seed = 5, .threads = 6, .calls = 3000, .open_ends = true, .processes = 2};
  const auto whole = test::random_index(shape);
  test::SampleTrace sample;
  test::fill_random(sample, shape);
  HeldBuild build(sample.open());
  std::shared_ptr<const engine::TraceIndex> last;
  for (std::uint64_t n = 1; n <= 12; ++n) {
    ASSERT_TRUE(build.wait(n));
    const auto now = build.preview.refresh();
    ASSERT_NE(now, nullptr);
    EXPECT_TRUE(now->is_partial());
    EXPECT_EQ(build.preview.latest(), now);
    EXPECT_EQ(now->origin(), whole.index->origin());
    EXPECT_EQ(now->last_ticks(), whole.index->last_ticks());
    ASSERT_EQ(now->threads().size(), whole.index->threads().size());
    std::uint64_t read = 0;
    std::uint64_t calls = 0;
    for (std::size_t t = 0; t < now->threads().size(); ++t) {
      const engine::ThreadIndex& thread = now->threads()[t];
      if (!thread.is_read()) {
        EXPECT_EQ(thread.calls.size(), 0U);
        EXPECT_EQ(thread.unread_from, whole.index->threads()[t].first_ticks);
        continue;
      }
      ++read;
      ASSERT_EQ(thread.calls.size(), whole.index->threads()[t].calls.size());
      expect_same_rows(*now, *whole.index, t, thread.calls.size());
      for (std::size_t row = 0; row < thread.calls.size(); ++row)
        calls += engine::is_counted(thread.calls.marks[row]) ? 1 : 0;
    }
    EXPECT_GE(read, n);
    EXPECT_EQ(now->calls(), calls);
    last = now;
    build.let_go(1);
  }
  build.finish();
  ASSERT_NE(build.index, nullptr) << build.error;
  EXPECT_FALSE(build.index->is_partial());
  engine::Api of_built({build.index.get()}, "1");
  engine::Api of_whole({whole.index.get()}, "1");
  for (const char* path : {"trace", "functions", "flame", "minimap"})
    EXPECT_EQ(of_built.answer(path, {}).body, of_whole.answer(path, {}).body) << path;
  build.preview.end();
  EXPECT_EQ(build.preview.refresh(), nullptr);
  EXPECT_EQ(build.preview.latest(), nullptr);
  EXPECT_EQ(build.preview.parts(), 0U);
  EXPECT_GT(last->threads()[0].calls.size(), 0U);  // who holds it may go on
  EXPECT_EQ(name_of(*last, last->threads()[0], 0), name_of(*whole.index, whole.index->threads()[0], 0));
}

// Ids in an order that is none of the file's: the first thread calls the last functions, and some that have no record.
test::SampleTrace trace_of_many_functions() {
  test::SampleTrace sample;
  std::vector<std::string> names;
  for (int i = 1; i <= 50; ++i) names.push_back("f" + std::to_string(i));
  sample.process(7, "app", names);
  const std::uint32_t called[3][4] = {{50, 70, 3, 90'000}, {2, 70, 60, 3}, {41, 90'001, 60, 1}};
  for (std::uint32_t t = 0; t < 3; ++t) {
    sample.thread(70 + t, "thread", 0);
    std::uint64_t now = 1000;
    for (const std::uint32_t id : called[t]) {
      // The first thread is the longest, and is read first.
      for (std::uint32_t i = 0; i < 9 - t; ++i, now += 20) sample.call(id, now, now + 10);
    }
  }
  return sample;
}

TEST(Preview, FunctionsHaveTheNumbersOfTheWhole) {
  test::SampleTrace of_whole = trace_of_many_functions();
  const auto whole = test::index_of(of_whole);
  const auto& all = whole->functions().functions();
  test::SampleTrace sample = trace_of_many_functions();
  HeldBuild build(sample.open());
  for (std::uint64_t n = 1; n <= 3; ++n) {
    ASSERT_TRUE(build.wait(n));
    const auto now = build.preview.refresh();
    ASSERT_NE(now, nullptr);
    for (std::size_t t = 0; t < now->threads().size(); ++t)
      expect_same_rows(*now, *whole, t, now->threads()[t].calls.size());
    const auto& some = now->functions().functions();
    ASSERT_LE(some.size(), all.size());
    std::size_t occur = 0;
    for (std::size_t f = 0; f < some.size(); ++f) {
      if (!some[f].occurs) continue;
      ++occur;
      EXPECT_EQ(some[f].name, all[f].name);
      EXPECT_EQ(some[f].line, all[f].line);
    }
    EXPECT_GE(occur, 4U);
    build.let_go(1);
  }
  build.finish();
  // By the table: f3 is the third, whoever calls it first.
  EXPECT_EQ(all[2].name, "f3");
  EXPECT_EQ(all[2].calls, 9U + 8U);
  EXPECT_FALSE(all[3].occurs);
  EXPECT_EQ(all[50 + 70].name, "function#70");
  EXPECT_EQ(all[50 + 70].calls, 9U + 8U);
  // A made-up trace gets no list as long as its greatest id.
  EXPECT_EQ(all[50].name, "functions without a record");
  EXPECT_EQ(all[50].calls, 9U + 7U);
  EXPECT_EQ(all.size(), 50U + 70U + 1U);
  const std::string facts = engine::trace_json(*whole, "1", 1, {});
  EXPECT_NE(facts.find(R"("count":121,"number":[0,1,2,40,49,50,110,120],"name":["f1","f2","f3","f41","f50",)"),
            std::string::npos);
}

TEST(Preview, ReadsFirstWhatIsLookedAt) {
  test::SampleTrace sample;
  test::fill_random(sample, {.seed = 6, .threads = 40, .calls = 300});
  HeldBuild build(sample.open());
  const std::size_t workers = std::clamp(std::thread::hardware_concurrency(), 1U, 40U);
  if (workers > 35) GTEST_SKIP() << "a processor for nearly each thread";
  ASSERT_TRUE(build.wait(workers));  // each has one, and is held
  std::vector<std::uint32_t> wanted = {4000000000U, 100};
  const auto before = build.preview.refresh();
  for (std::uint32_t t = 39; t > 0 && wanted.size() < 4; --t) {
    if (!before->threads()[t].is_read()) wanted.push_back(t);
  }
  build.preview.want(wanted);
  for (std::size_t i = 2; i < 4; ++i) {
    build.let_go(1);
    ASSERT_TRUE(build.wait(workers + i - 1));
    const auto now = build.preview.refresh();
    ASSERT_NE(now, nullptr);
    EXPECT_TRUE(now->threads()[wanted[i]].is_read()) << i;
  }
}

TEST(Preview, TheBeginOfALongThreadIsThereBeforeAllOfIt) {
  const test::RandomShape shape{.seed = 8, .threads = 1, .calls = 60'000};
  const auto whole = test::random_index(shape);
  test::SampleTrace sample;
  test::fill_random(sample.blocks_of(500), shape);
  HeldBuild build(sample.open(), 1000);
  ASSERT_TRUE(build.wait(1));
  const auto now = build.preview.refresh();
  ASSERT_NE(now, nullptr);
  const engine::ThreadIndex& part = now->threads()[0];
  // The whole may have come before its part was begun; the part never comes after it.
  if (!part.is_read()) {
    EXPECT_LT(part.unread_from, part.last_ticks);
    EXPECT_LT(part.calls.size(), whole.index->threads()[0].calls.size());
    EXPECT_EQ(now->last_ticks(), whole.index->last_ticks());
    expect_same_rows(*now, *whole.index, 0, part.calls.size());
    for (std::size_t row = 0; row < part.calls.size(); ++row) ASSERT_LE(part.calls.end(row), part.unread_from);
    EXPECT_EQ(now->calls(), 0U);  // counted when all is there
    const std::string facts = engine::trace_json(*now, "1", 1, {});
    EXPECT_EQ(facts.find("\"unread_from\":null"), std::string::npos);
    EXPECT_NE(facts.find("\"reading\":{"), std::string::npos);
  }
  build.finish();
  ASSERT_NE(build.index, nullptr) << build.error;
  EXPECT_EQ(build.index->calls(), whole.index->calls());
  EXPECT_NE(engine::trace_json(*build.index, "1", 1, {}).find("\"unread_from\":null"), std::string::npos);
}

TEST(Preview, ThePartsOfAThreadThatLostItsBeginHaveOpenCalls) {
  const test::RandomShape shape{.seed = 9, .threads = 1, .calls = 40'000, .open_ends = true};
  test::SampleTrace sample;
  test::fill_random(sample.blocks_of(500), shape);
  const reader::Trace trace = sample.open();
  const reader::Thread& thread = trace.processes()[0].threads[0];
  const auto all = reader::rebuild_calls(trace, thread);
  for (std::size_t blocks : {1U, 3U, 10U, 1'000'000U}) {
    const auto part = reader::rebuild_calls(trace, thread, {.blocks = blocks});
    ASSERT_LE(part.size(), all.size());
    ASSERT_GT(part.size(), 0U);
    EXPECT_EQ(part.begin[0], all.begin[0]);
    for (std::size_t row = 0; row < part.size(); ++row)
      ASSERT_LE(part.begin[row] + part.duration[row], part.last_ticks) << row;
  }
  EXPECT_EQ(reader::rebuild_calls(trace, thread, {.blocks = 0}).size(), 0U);
}

TEST(Preview, StopsInTheMiddle) {
  test::SampleTrace sample;
  test::fill_random(sample, {.seed = 10, .threads = 5, .calls = 2000});
  HeldBuild build(sample.open());
  ASSERT_TRUE(build.wait(1));
  const auto now = build.preview.refresh();
  build.progress.stop = true;
  build.finish();
  EXPECT_EQ(build.index, nullptr);
  EXPECT_NE(build.error.find("stopped"), std::string::npos);
  build.preview.end();
  // Whoever was looking at it still can.
  std::uint64_t rows = 0;
  for (const engine::ThreadIndex& thread : now->threads()) {
    for (std::size_t row = 0; row < thread.calls.size(); ++row) rows += thread.calls.end(row) != 0 ? 1 : 0;
  }
  EXPECT_GT(rows, 0U);
}

TEST(Preview, EventsOfAnySortDoNoHarm) {
  std::mt19937_64 random(13);
  for (int round = 0; round < 8; ++round) {
    test::SampleTrace sample;
    sample.process(1, "hostile", {"f", "g", "h"}).blocks_of(1 + random() % 40);
    for (std::uint32_t t = 0; t < 4; ++t) {
      sample.thread(1 + t, "thread", random() % 3);
      for (int i = 0; i < 400; ++i) {
        const std::uint64_t word = random();
        // Mostly calls that there may be; else marks, holes, ids that there are not, times that go back.
        if (i % 4 != 0) {
          sample.raw(format::make_event(1000 + static_cast<std::uint64_t>(i), word % 2 == 0, 1 + word % 3));
        } else {
          sample.raw(word % 5 == 0 ? 0 : word % 2 == 0 ? word | 0xffff00U : word & ~std::uint64_t{0x7f0000});
        }
      }
    }
    HeldBuild build(sample.open(), 100);
    for (std::uint64_t n = 1; build.wait(n); ++n) {
      if (const auto now = build.preview.refresh(); now != nullptr) {
        engine::Api api({now.get()}, "1");
        EXPECT_EQ(api.answer("trace", {}).status, 200);
        EXPECT_EQ(api.answer("tiles", {{"width", "99"}, {"begin", "0"}, {"end", "1e7"}}).status, 200);
      }
      build.let_go(1);
    }
    build.finish();
    EXPECT_NE(build.index, nullptr) << build.error;
  }
}

TEST(Preview, ShortTracesHaveNone) {
  test::SampleTrace sample;
  test::fill_random(sample, {.seed = 11});
  engine::Preview preview;
  engine::IndexProgress progress;
  ASSERT_TRUE(engine::TraceIndex::build(sample.open(), progress, &preview).ok());
  EXPECT_EQ(preview.parts(), 0U);
  EXPECT_EQ(preview.refresh(), nullptr);
}

TEST(Preview, ManyLookOnAtOnce) {
  const test::RandomShape shape{.seed = 12, .threads = 30, .calls = 2000};
  test::SampleTrace sample;
  test::fill_random(sample.blocks_of(50), shape);
  engine::Preview preview({.least_events = 0, .long_thread = 500, .on_part = {}});
  engine::IndexProgress progress;
  std::atomic<bool> over = false;
  std::vector<std::jthread> lookers;
  for (std::uint32_t i = 0; i < 3; ++i) {
    lookers.emplace_back([&, i] {
      std::uint32_t thread = i;
      while (!over) {
        preview.want({thread = (thread + 7) % 30});
        const auto now = i == 0 ? preview.refresh() : preview.latest();
        if (now == nullptr) continue;
        engine::Api api({now.get()}, "1");
        EXPECT_EQ(api.answer("trace", {}).status, 200);
        EXPECT_EQ(api.answer("tiles", {{"width", "300"}, {"begin", "0"}, {"end", "1e9"}}).status, 200);
      }
    });
  }
  const auto index = engine::TraceIndex::build(sample.open(), progress, &preview);
  over = true;
  lookers.clear();
  preview.end();
  ASSERT_TRUE(index.ok());
  EXPECT_EQ((*index)->calls(), 30U * 2000U);
}

}  // namespace
}  // namespace karst
