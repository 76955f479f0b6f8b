// Long answers can be stopped, and say how far they are.
#include "engine/server/jobs.h"

#include <gtest/gtest.h>

#include "engine/api/api.h"
#include "test/engine/random_trace.h"

namespace karst {
namespace {

using engine::Jobs;

TEST(Jobs, AreStoppedByTheirNames) {
  Jobs jobs;
  Jobs::Running a(jobs, "a");
  Jobs::Running b(jobs, "b");
  jobs.stop("a");
  EXPECT_TRUE(a.work()->stop);
  EXPECT_FALSE(b.work()->stop);
  jobs.stop_all();
  EXPECT_TRUE(b.work()->stop);
  Jobs::Running late(jobs, "c");
  EXPECT_TRUE(late.work()->stop);
}

TEST(Jobs, MayBeStoppedBeforeTheyCome) {
  Jobs jobs;
  jobs.stop("a");
  {
    Jobs::Running a(jobs, "a");
    EXPECT_TRUE(a.work()->stop);
  }
  Jobs::Running again(jobs, "a");
  EXPECT_FALSE(again.work()->stop);
  // Nobody can fill the memory with names.
  for (int i = 0; i < 5000; ++i) jobs.stop("name " + std::to_string(i));
  Jobs::Running nameless(jobs, "");
  jobs.stop("");
  EXPECT_FALSE(nameless.work()->stop);
}

TEST(Jobs, TellTheirProgress) {
  Jobs jobs;
  Jobs::Running a(jobs, "a\"");
  Jobs::Running nameless(jobs, "");
  a.work()->expected = 10;
  a.work()->done = 3;
  EXPECT_EQ(jobs.progress_json(), R"({"a\"":[3,10]})");
}

TEST(Work, AStoppedAnswerSaysSoAndIsNotKept) {
  const auto made = test::random_index({.seed = 5, .threads = 2, .calls = 3000});
  engine::Api api({made.index.get()}, "1");
  for (const char* path : {"functions", "flame", "histogram", "occurrences"}) {
    const engine::Parameters parameters = {{"function", "0"}, {"job", "x"}};
    engine::Work stopped;
    stopped.stop = true;
    EXPECT_EQ(api.answer(path, parameters, &stopped).status, 499) << path;
    engine::Work work;
    const engine::Reply reply = api.answer(path, parameters, &work);
    EXPECT_EQ(reply.status, 200) << path;
    EXPECT_GT(work.expected, 0U) << path;
    // The name of the job makes no other question of it, and nobody looking on gets the same.
    EXPECT_EQ(api.answer(path, {{"function", "0"}}).body, reply.body) << path;
  }
}

TEST(Work, StopsAWalkInTheMiddle) {
  engine::Work work;
  engine::RowRange rows;
  rows.first = 0;
  rows.last = 10 * engine::kWorkStep;
  rows.work = &work;
  std::uint32_t seen = 0;
  engine::each_row(rows, [&](std::uint32_t) {
    if (++seen == engine::kWorkStep / 2) work.stop = true;
  });
  EXPECT_EQ(seen, engine::kWorkStep);
  EXPECT_EQ(work.done, engine::kWorkStep);
}

}  // namespace
}  // namespace karst
