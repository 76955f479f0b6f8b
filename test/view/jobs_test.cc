// Long answers can be stopped, and say how far they are.
#include "view/server/jobs.h"

#include <gtest/gtest.h>

#include "test/view/random_trace.h"
#include "view/api/api.h"

namespace karst {
namespace {

using view::Jobs;

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
  view::Api api({made.index.get()}, "1");
  for (const char* path : {"functions", "flame", "histogram", "occurrences"}) {
    const view::Parameters parameters = {{"function", "0"}, {"job", "x"}};
    view::Work stopped;
    stopped.stop = true;
    EXPECT_EQ(api.answer(path, parameters, &stopped).status, 499) << path;
    view::Work work;
    const view::Reply reply = api.answer(path, parameters, &work);
    EXPECT_EQ(reply.status, 200) << path;
    EXPECT_GT(work.expected, 0U) << path;
    // The name of the job makes no other question of it, and nobody looking on gets the same.
    EXPECT_EQ(api.answer(path, {{"function", "0"}}).body, reply.body) << path;
  }
}

TEST(Work, StopsAWalkInTheMiddle) {
  view::Work work;
  view::RowRange rows;
  rows.first = 0;
  rows.last = 10 * view::kWorkStep;
  rows.work = &work;
  std::uint32_t seen = 0;
  view::each_row(rows, [&](std::uint32_t) {
    if (++seen == view::kWorkStep / 2) work.stop = true;
  });
  EXPECT_EQ(seen, view::kWorkStep);
  EXPECT_EQ(work.done, view::kWorkStep);
}

}  // namespace
}  // namespace karst
