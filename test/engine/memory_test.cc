// Memory that is out, wherever that is noticed: whoever looks at a trace gets an answer, and the server lives on.
//
// This program's `operator new` fails from the n-th call on, for all threads but the test's own.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <new>
#include <thread>
#include <vector>

#include "engine/cut/cut.h"
#include "engine/server/loader.h"
#include "test/engine/random_trace.h"

namespace {

constexpr long kPlenty = std::numeric_limits<long>::max() / 2;
std::atomic<long> left = kPlenty;  // calls that do not fail
std::atomic<bool> once = false;    // one fails, and no more
thread_local bool spared = false;

bool fails() {
  if (spared || left.load(std::memory_order_relaxed) > kPlenty / 2) return false;
  const long now = left.fetch_sub(1);
  return once ? now == 0 : now <= 0;
}

}  // namespace

// The compiler does not see that these belong together.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
#endif
void* operator new(std::size_t size) {
  void* const at = fails() ? nullptr : std::malloc(size);
  if (at == nullptr) throw std::bad_alloc();
  return at;
}
void operator delete(void* at) noexcept { std::free(at); }
void operator delete(void* at, std::size_t) noexcept { std::free(at); }

namespace karst {
namespace {

class Memory : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    spared = true;
    once = GetParam();
    path_ = std::filesystem::path(testing::TempDir()) / ("karst-memory-" + std::to_string(::getpid()) + ".karst");
    test::SampleTrace sample;
    test::fill_random(sample, {.threads = 3, .calls = 6000});
    auto writer = writing::TraceWriter::create(path_);
    ASSERT_TRUE(writer.ok());
    sample.write(*writer);
  }
  void TearDown() override {
    left = kPlenty;
    std::filesystem::remove(path_);
  }
  // Growing steps: most of what is new happens among the first.
  static std::vector<long> places() {
    std::vector<long> all;
    for (long n = 0; n < 4000; n += 1 + n / 24) all.push_back(n);
    return all;
  }

  std::filesystem::path path_;
};

TEST_P(Memory, ATraceIsShownOrItIsSaidWhyNot) {
  bool shown = false;
  bool failed = false;
  for (const long n : places()) {
    left = n;
    engine::Loader loader({path_}, "1", {}, engine::IndexCache({}),
                          {.least_events = 0, .long_thread = 1000, .on_part = {}});
    loader.wait();
    left = kPlenty;
    (loader.api() != nullptr ? shown : failed) = true;
    EXPECT_EQ(loader.api() == nullptr, !loader.error().empty()) << n;
  }
  EXPECT_TRUE(shown && failed);
}

TEST_P(Memory, QuestionsHaveAnswers) {
  test::SampleTrace sample;
  test::fill_random(sample, {.threads = 3, .calls = 6000});
  const auto index = test::index_of(sample);
  bool answered = false;
  bool failed = false;
  for (const auto& [path, parameters] : std::initializer_list<std::pair<const char*, engine::Parameters>>{
           {"trace", {}},
           {"tiles", {{"width", "300"}}},
           {"tiles", {{"width", "300"}, {"function", "1"}}},
           {"minimap", {}},
           {"functions", {}},
           {"flame", {}},
           {"histogram", {{"function", "1"}}},
           {"occurrences", {{"function", "1"}, {"direction", "next"}}},
           {"search", {{"q", "f"}}},
           {"call", {{"thread", "0"}, {"index", "3"}}},
           {"cut", {}}}) {
    for (const long n : places()) {
      engine::Api api({index.get()}, "1");
      api.set_server({.cut = engine::cut_trace});
      engine::Reply reply;
      left = kPlenty;
      // Other threads take over where the answer is made by several.
      std::thread([&, path = std::string(path), parameters = parameters] {
        left = n;
        try {
          reply = api.answer(path, parameters);
        } catch (const std::bad_alloc&) {  // even for that answer; the server closes the connection
          reply.status = 507;
        }
        left = kPlenty;
      }).join();
      EXPECT_TRUE(reply.status == 200 || reply.status == 400 || reply.status == 507) << path << n << reply.body;
      (reply.status == 507 ? failed : answered) = true;
      if (reply.status == 200) break;
    }
  }
  EXPECT_TRUE(answered && failed);
}

INSTANTIATE_TEST_SUITE_P(Out, Memory, testing::Bool(),
                         [](const auto& instance) { return instance.param ? "Once" : "FromThenOn"; });

}  // namespace
}  // namespace karst
