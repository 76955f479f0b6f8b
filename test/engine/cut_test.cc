// A cut is a trace of its own, with the same calls.
#include "engine/cut/cut.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <set>
#include <tuple>

#include "analysis/values.h"
#include "format/note.h"
#include "test/engine/random_trace.h"

namespace karst {
namespace {

// Everything about a call but its row; for one with an open end or begin not how long it is known.
using CallText = std::tuple<std::uint32_t, std::string, std::uint64_t, std::uint64_t, int, int, std::string>;

std::multiset<CallText> calls_in(const engine::TraceIndex& index, engine::TickRange range) {
  std::multiset<CallText> all;
  for (const engine::ThreadIndex& thread : index.threads()) {
    const engine::CallColumns& calls = thread.calls;
    const engine::RowRange rows = engine::rows_in(calls, range);
    engine::each_row(rows, [&](std::uint32_t row) {
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

// Name and begin of what was entered in the range.
std::multiset<std::pair<std::string, std::uint64_t>> begun_in(const engine::TraceIndex& index,
                                                              engine::TickRange range) {
  std::multiset<std::pair<std::string, std::uint64_t>> all;
  for (const auto& [tid, name, begin, duration, depth, marks, path] : calls_in(index, range)) {
    if ((marks & reader::kCallOpenBegin) == 0 && begin >= range.begin) all.emplace(name, begin);
  }
  return all;
}

std::unique_ptr<engine::TraceIndex> reopen(const std::vector<std::byte>& bytes) {
  auto trace = reader::Trace::open_memory(bytes, "cut.karst");
  if (!trace) throw std::runtime_error(trace.error().message);
  EXPECT_TRUE(trace->complete());
  EXPECT_TRUE(trace->problems().empty());
  engine::IndexProgress progress;
  auto index = engine::TraceIndex::build(std::move(*trace), progress);
  if (!index) throw std::runtime_error(index.error().message);
  return std::move(*index);
}

TEST(Cut, HasTheCallsOfItsRange) {
  for (const bool open : {false, true}) {
    const auto made = test::random_index({.seed = 21, .threads = 3, .calls = 1200, .open_ends = open, .processes = 2});
    std::mt19937_64 random(21);
    const std::uint64_t span = made.index->last_ticks() - made.index->origin();
    for (int i = 0; i < 20; ++i) {
      engine::TickRange range;
      range.begin = made.index->origin() + random() % span;
      range.end = range.begin + 1 + random() % (i % 2 == 0 ? 3000 : span);
      const auto bytes = engine::cut_trace(test::scope_of(*made.index, range));
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
  const auto bytes = engine::cut_trace(test::scope_of(*made.index));
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
  const engine::TickRange range{1390, 1455};
  const auto bytes = engine::cut_trace(test::scope_of(*index, range));
  ASSERT_TRUE(bytes.ok());
  const auto cut = reopen(*bytes);
  EXPECT_EQ(calls_in(*cut, range), calls_in(*index, range));
}

using format::Mark;

// A thread that goes every way: returns, tail calls, exceptions, jumps (also to places that are gone), stacks that
// are new, wait and go on.
void fill_ways_out(test::SampleTrace& sample, std::uint32_t seed, bool whole) {
  std::mt19937 random(seed);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  sample.process(1, "app", {"a", "b", "c", "d", "e", "a"});
  sample.function(6).tail_exit = true;  // of the first
  sample.function(6).of = 1;
  sample.thread(1, "t", whole ? 0 : 7);
  using Stack = std::vector<std::uint32_t>;
  std::map<std::uint64_t, Stack> aside;  // by place
  std::vector<std::pair<std::uint64_t, Stack>> under;
  std::vector<std::pair<std::uint64_t, std::size_t>> places;  // and the depth that they go to
  Stack stack;
  std::uint64_t now = 1002;
  std::uint64_t fresh = 0x1000;
  const auto switched = [&](std::uint64_t from, std::uint64_t to) {
    sample.raw(format::make_mark(now, Mark::kSwitched)).raw(format::make_place(from)).raw(format::make_place(to));
  };
  if (!whole) sample.exit(2, 1001).exit(3, 1001);
  for (int i = 0; i < 700; ++i) {
    now += below(4) == 0 ? 0 : below(30);
    const std::size_t what = below(100);
    if (what < 45 && stack.size() < 7) {
      stack.push_back(static_cast<std::uint32_t>(1 + below(5)));
      sample.enter(stack.back(), now);
    } else if (what < 70) {
      if (stack.empty()) continue;
      const std::uint32_t id = stack.back();
      stack.pop_back();
      if (id == 1 && below(2) == 0) {
        sample.exit(6, now);
      } else if (below(4) == 0) {
        sample.raw(format::make_mark(now, Mark::kUnwound)).exit(id, now + below(3));
        now += 3;
      } else {
        sample.exit(id, now);
      }
    } else if (what < 78) {
      const std::uint64_t place = 0x100 + 0x10 * below(12);
      places.emplace_back(place, stack.size());
      sample.raw(format::make_place(place, Mark::kSetPlace));
    } else if (what < 84) {
      if (places.empty()) continue;
      const auto [place, depth] = places[below(places.size())];
      if (depth > stack.size() && below(3) != 0) continue;
      sample.raw(format::make_mark(now, Mark::kJumped)).raw(format::make_place(place));
      // What the reader makes of it is told by the latest place of that number; the model needs no more than a stack
      // that is not above it.
      if (depth < stack.size()) stack.resize(depth);
    } else if (what < 92) {
      // To a stack that waits, or to one that is new.
      const std::uint64_t from = fresh += 0x10;
      std::uint64_t to = fresh += 0x10;
      Stack next;
      if (!aside.empty() && below(3) != 0) {
        auto chosen = aside.begin();
        std::advance(chosen, static_cast<std::ptrdiff_t>(below(aside.size())));
        to = chosen->first;
        next = chosen->second;
        aside.erase(chosen);
      }
      switched(from, to);
      under.emplace_back(from, stack);
      stack = next;
    } else if (!under.empty()) {
      const std::uint64_t from = fresh += 0x10;
      aside[from] = stack;
      switched(from, under.back().first);
      stack = under.back().second;
      under.pop_back();
    }
  }
}

// A seed takes two seconds under sanitizers, where what memory does is of interest; the default build has them all.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define KARST_FEW_SEEDS
#endif
#endif
#ifdef KARST_FEW_SEEDS
constexpr std::uint32_t kSeeds = 15;
#else
constexpr std::uint32_t kSeeds = 60;
#endif

TEST(Cut, HasTheCallsOfItsRangeWhateverWaysTheyWent) {
  std::uint64_t jumped = 0;
  std::uint64_t resumed = 0;
  for (std::uint32_t seed = 1; seed <= kSeeds; ++seed) {
    test::SampleTrace sample;
    fill_ways_out(sample, seed, seed % 3 != 0);
    const auto index = test::index_of(sample);
    std::mt19937_64 random(seed);
    const std::uint64_t span = index->last_ticks() - index->origin();
    for (int i = 0; i < 25; ++i) {
      engine::TickRange range;
      range.begin = index->origin() + random() % span;
      range.end = range.begin + 1 + random() % (i % 2 == 0 ? 300 : span);
      const auto bytes = engine::cut_trace(test::scope_of(*index, range));
      ASSERT_TRUE(bytes.ok());
      const auto cut = reopen(*bytes);
      const auto wanted = calls_in(*index, range);
      // What had ended before has no call here, whatever the range jumps to.
      for (const engine::ThreadIndex& thread : cut->threads()) {
        for (std::size_t row = 0; row < thread.calls.size(); ++row) {
          ASSERT_TRUE(thread.calls.end(row) >= range.begin || (thread.calls.marks[row] & ~reader::kCallTail) != 0)
              << "seed " << seed << ", range " << range.begin << " to " << range.end;
        }
      }
      if (seed % 3 == 0) {
        // Of which stack an unknown one is above cannot be known where the thread's begin is lost: what began is there.
        ASSERT_EQ(begun_in(*cut, range), begun_in(*index, range)) << "seed " << seed;
        continue;
      }
      ASSERT_EQ(calls_in(*cut, range), wanted) << "seed " << seed << ", range " << range.begin << " to " << range.end;
      for (const CallText& call : wanted) {
        jumped += (std::get<5>(call) & reader::kCallJumped) != 0 ? 1 : 0;
        resumed += (std::get<5>(call) & reader::kCallResumed) != 0 ? 1 : 0;
      }
    }
  }
  EXPECT_GT(jumped, 1000U * kSeeds / 60);
  EXPECT_GT(resumed, 1000U * kSeeds / 60);
}

// Two threads take turns with three fibers, each of which calls and returns by chance.
TEST(Cut, KeepsLanesOfFibers) {
  for (std::uint32_t seed = 1; seed <= kSeeds; ++seed) {
    std::mt19937_64 random(seed);
    test::SampleTrace sample;
    sample.process(1, "app", {"main", "f", "g", "h"}).with_fibers();
    std::vector<std::vector<std::uint32_t>> open(4);
    std::vector<std::vector<std::array<std::uint64_t, 4>>> words(2);  // what, function or fiber, time, before
    std::uint64_t now = 1000;
    for (std::uint32_t turn = 0; turn < 60; ++turn) {
      auto& thread = words[random() % 2];
      const std::uint32_t fiber = 1 + random() % 3;
      thread.push_back({2, fiber, now += 1 + random() % 9, 0});
      for (std::uint32_t i = random() % 6; i != 0; --i) {
        if (open[fiber].empty() || random() % 2 == 0) {
          open[fiber].push_back(2 + random() % 3);
          thread.push_back({0, open[fiber].back(), now += 1 + random() % 9, 0});
        } else {
          thread.push_back({1, open[fiber].back(), now += 1 + random() % 9, 0});
          open[fiber].pop_back();
        }
      }
      thread.push_back({2, 0, now += 1 + random() % 9, fiber});
    }
    for (std::uint32_t t = 0; t < 2; ++t) {
      sample.thread(10 + t, "worker").enter(1, 1000);
      for (const auto& [what, number, at, before] : words[t]) {
        const auto id = static_cast<std::uint32_t>(number);
        if (what == 2)
          sample.fiber(static_cast<std::uint32_t>(before), id, id == 0 ? "" : "fiber " + std::to_string(id), at);
        else
          what == 0 ? sample.enter(id, at) : sample.exit(id, at);
      }
      sample.exit(1, now + 5);
    }
    const auto index = test::index_of(sample);
    ASSERT_EQ(index->threads().size(), 5U);
    const std::uint64_t span = index->last_ticks() - index->origin();
    for (int i = 0; i < 10; ++i) {
      engine::TickRange range;
      range.begin = index->origin() + random() % span;
      range.end = range.begin + 1 + random() % span;
      const auto bytes = engine::cut_trace(test::scope_of(*index, range));
      ASSERT_TRUE(bytes.ok());
      const auto cut = reopen(*bytes);
      ASSERT_EQ(calls_in(*cut, range), calls_in(*index, range)) << "seed " << seed;
      for (const engine::ThreadIndex& thread : cut->threads())
        EXPECT_EQ(thread.thread->fiber, thread.thread->tid >= reader::kFirstFiberTid);
    }
  }
}

// What a call was given and returned is noted just outside of it.
TEST(Cut, KeepsWhatCallsWereGivenAndReturned) {
  test::SampleTrace sample;
  sample.process(1, "app", {"main", "f", "g"}).thread(1, "app").enter(1, 1000);
  for (const std::uint32_t function : {2U, 3U}) sample.function(function).values = "a:i4,b:u4|:i4,r:u4";
  std::uint32_t next = 0;
  std::uint64_t now = 1000;
  const auto note = [&](format::NoteKind kind, std::uint32_t function) {
    ++next;
    sample.values(kind, function, test::SampleTrace::two_integers(next, 1000 - next), now += 5);
  };
  const auto enter = [&](std::uint32_t function) {
    note(format::NoteKind::kArguments, function);
    sample.enter(function, now += 5);
  };
  const auto exit = [&](std::uint32_t function) {
    if (next % 3 != 0) note(format::NoteKind::kReturned, function);
    sample.exit(function, now += 5);
  };
  for (int i = 0; i < 4; ++i) {
    enter(2);
    enter(3);
    if (i == 1) enter(3);
    if (i == 1) exit(3);
    exit(3);
    exit(2);
  }
  sample.exit(1, now += 5);
  const auto index = test::index_of(sample);
  const auto values_in = [](const engine::TraceIndex& of) {
    const engine::ThreadIndex& thread = of.threads()[0];
    const analysis::CallValues values(*thread.owned);
    std::map<std::pair<std::uint64_t, std::uint32_t>, analysis::NamedValues> all;
    for (std::uint32_t row = 0; row < thread.calls.size(); ++row)
      all[{thread.calls.begin[row], thread.calls.function[row]}] = values.named(of.trace(), *thread.thread, row);
    return all;
  };
  const auto whole = values_in(*index);
  std::size_t noted = 0;
  for (std::uint64_t begin = 1000; begin < now; begin += 3) {
    for (std::uint64_t end = begin + 1; end < now + 10; end += 4) {
      const auto cut = engine::cut_trace(test::scope_of(*index, {begin, end}));
      ASSERT_TRUE(cut) << cut.error().message;
      for (const auto& [call, values] : values_in(*reopen(*cut))) {
        ASSERT_TRUE(whole.contains(call));
        EXPECT_EQ(values, whole.at(call)) << begin << " to " << end << ", call at " << call.first;
        noted += values.empty() ? 0 : 1;
      }
    }
  }
  EXPECT_GT(noted, 1000U);
}

TEST(Cut, KeepsGapsApart) {
  std::vector<std::byte> bytes;
  test::SampleTrace sample;
  sample.process(1, "app", {"f", "g"}).thread(1, "t").enter(1, 1000).call(2, 1100, 1200);
  {
    auto writer = writing::TraceWriter::to_memory(bytes);
    sample.write(writer, [](writing::TraceWriter& more) {
      const format::Event events[] = {format::make_event(5000, false, 2), format::make_event(5100, true, 2)};
      more.add_block(0, 0, 4, 5000, events);
    });
  }
  auto trace = reader::Trace::open_memory(bytes, "gap.karst");
  ASSERT_TRUE(trace.ok());
  engine::IndexProgress progress;
  auto index = engine::TraceIndex::build(std::move(*trace), progress);
  ASSERT_TRUE(index.ok());
  ASSERT_EQ((*index)->threads()[0].gaps.size(), 1U);
  EXPECT_EQ((*index)->threads()[0].gaps[0].blocks, 3U);
  const auto cut_bytes = engine::cut_trace(test::scope_of(**index));
  ASSERT_TRUE(cut_bytes.ok());
  const auto cut = reopen(*cut_bytes);
  EXPECT_EQ(calls_in(*cut, {}), calls_in(**index, {}));
  bool missing = false;
  for (const engine::Gap& gap : cut->threads()[0].gaps)
    missing = missing || (!gap.overwritten && gap.begin == 1200 && gap.end == 5000);
  EXPECT_TRUE(missing);
}

}  // namespace
}  // namespace karst
