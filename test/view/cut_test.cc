// A cut is a trace of its own, with the same calls.
#include "view/cut.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <tuple>

#include "test/view/random_trace.h"

namespace karst {
namespace {

// Everything about a call but its row; for one with an open end or begin not how long it is known.
using CallText = std::tuple<std::uint32_t, std::string, std::uint64_t, std::uint64_t, int, int, std::string>;

std::multiset<CallText> calls_in(const view::TraceIndex& index, view::TickRange range) {
  std::multiset<CallText> all;
  for (const view::ThreadIndex& thread : index.threads()) {
    const view::CallColumns& calls = thread.calls;
    const view::RowRange rows = view::rows_in(calls, range);
    view::each_row(rows, [&](std::uint32_t row) {
      if (!rows.counts(calls, row)) return;
      const bool open_begin = (calls.marks[row] & reader::kCallOpenBegin) != 0;
      const bool open_end = (calls.marks[row] & reader::kCallOpenEnd) != 0;
      std::string path;
      for (std::uint32_t at = row; at != reader::kNoParent; at = calls.parent[at]) {
        path += index.functions().functions()[index.function_of(thread, at)].name + "<";
      }
      all.emplace(thread.thread->tid, index.functions().functions()[index.function_of(thread, row)].name,
                  open_begin ? 0 : calls.begin[row], open_begin || open_end ? 0 : calls.duration[row], calls.depth[row],
                  calls.marks[row], path);
    });
  }
  return all;
}

std::unique_ptr<view::TraceIndex> reopen(const std::vector<std::byte>& bytes) {
  auto trace = reader::Trace::open_memory(bytes, "cut.karst");
  if (!trace) throw std::runtime_error(trace.error().message);
  EXPECT_TRUE(trace->complete());
  EXPECT_TRUE(trace->problems().empty());
  view::IndexProgress progress;
  auto index = view::TraceIndex::build(std::move(*trace), progress);
  if (!index) throw std::runtime_error(index.error().message);
  return std::move(*index);
}

TEST(Cut, HasTheCallsOfItsRange) {
  for (const bool open : {false, true}) {
    const auto made = test::random_index({.seed = 21, .threads = 3, .calls = 1200, .open_ends = open, .processes = 2});
    std::mt19937_64 random(21);
    const std::uint64_t span = made.index->last_ticks() - made.index->origin();
    for (int i = 0; i < 20; ++i) {
      view::TickRange range;
      range.begin = made.index->origin() + random() % span;
      range.end = range.begin + 1 + random() % (i % 2 == 0 ? 3000 : span);
      const auto bytes = view::cut_trace(test::scope_of(*made.index, range));
      ASSERT_TRUE(bytes.ok());
      const auto cut = reopen(*bytes);
      EXPECT_EQ(calls_in(*cut, range), calls_in(*made.index, range));
      // Nothing but those and their callers.
      EXPECT_EQ(cut->calls(), [&] {
        std::uint64_t calls = 0;
        for (const auto& part : test::scope_of(*made.index, range).parts) {
          for (const std::uint32_t row : part.rows.outer) {
            calls += part.rows.counts(part.thread->calls, row) ? 1 : 0;
          }
          calls += part.rows.last - part.rows.first;
        }
        return calls;
      }());
    }
  }
}

TEST(Cut, OfEverythingIsTheSameTrace) {
  const auto made = test::random_index({.seed = 22, .threads = 2, .calls = 900, .processes = 2});
  const auto bytes = view::cut_trace(test::scope_of(*made.index));
  ASSERT_TRUE(bytes.ok());
  const auto cut = reopen(*bytes);
  EXPECT_EQ(calls_in(*cut, {}), calls_in(*made.index, {}));
  EXPECT_EQ(cut->trace().processes().size(), 2U);
  EXPECT_EQ(cut->trace().processes()[1].name, "app");
}

TEST(Cut, KeepsHowCallsEnded) {
  test::SampleTrace sample;
  sample.process(1, "app", {"main", "f", "g"}).thread(1, "t");
  const auto unwound = format::make_mark(2000, format::Mark::kUnwound);
  sample.enter(1, 1000).enter(2, 1100).enter(3, 1200);
  sample.enter(3, 1300);  // ends by an exception within the range
  sample.raw(format::make_mark(1400, format::Mark::kUnwound)).exit(3, 1400);
  sample.call(3, 1450, 1460);
  sample.raw(unwound).exit(3, 2000).raw(unwound).exit(2, 2000).exit(1, 3000);
  const auto index = test::index_of(sample);
  ASSERT_EQ(index->calls(), 5U);
  ASSERT_EQ(index->threads()[0].calls.marks[1], reader::kCallUnwound);
  const view::TickRange range{1390, 1455};
  const auto bytes = view::cut_trace(test::scope_of(*index, range));
  ASSERT_TRUE(bytes.ok());
  const auto cut = reopen(*bytes);
  EXPECT_EQ(calls_in(*cut, range), calls_in(*index, range));
}

TEST(Cut, KeepsGapsApart) {
  std::vector<std::byte> bytes;
  test::SampleTrace sample;
  sample.process(1, "app", {"f", "g"}).thread(1, "t").enter(1, 1000).call(2, 1100, 1200);
  {
    auto writer = collect::TraceWriter::to_memory(bytes);
    sample.write(writer, [](collect::TraceWriter& more) {
      const format::Event events[] = {format::make_event(5000, false, 2), format::make_event(5100, true, 2)};
      more.add_block(0, 0, 4, 5000, events);
    });
  }
  auto trace = reader::Trace::open_memory(bytes, "gap.karst");
  ASSERT_TRUE(trace.ok());
  view::IndexProgress progress;
  auto index = view::TraceIndex::build(std::move(*trace), progress);
  ASSERT_TRUE(index.ok());
  ASSERT_EQ((*index)->threads()[0].gaps.size(), 1U);
  EXPECT_EQ((*index)->threads()[0].gaps[0].blocks, 3U);
  const auto cut_bytes = view::cut_trace(test::scope_of(**index));
  ASSERT_TRUE(cut_bytes.ok());
  const auto cut = reopen(*cut_bytes);
  EXPECT_EQ(calls_in(*cut, {}), calls_in(**index, {}));
  bool missing = false;
  for (const view::Gap& gap : cut->threads()[0].gaps)
    missing = missing || (!gap.overwritten && gap.begin == 1200 && gap.end == 5000);
  EXPECT_TRUE(missing);
}

}  // namespace
}  // namespace karst
