#include "analysis/requests.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "analysis/tracing_cost.h"
#include "format/note.h"
#include "reader/trace.h"
#include "test/analysis/sample_trace.h"

namespace karst::analysis {
namespace {

using format::NoteKind;
using test::SampleTrace;

reader::Calls calls_of(const reader::Trace& trace, std::size_t thread = 0) {
  return reader::rebuild_calls(trace, trace.processes()[0].threads[thread]);
}

// main(1000-2000){ serve(1100-1500){ parse(1150-1250) } serve(1600-1900) }; 7 from 1120 to 1400 and from 1700 to 1800.
void request_sample(SampleTrace& values) {
  values.process(1, "app", {"main", "serve", "parse"}).thread(1, "app").enter(1, 1000).enter(2, 1100);
  values.note(NoteKind::kRequest, 7, 1120).call(3, 1150, 1250).note(NoteKind::kRequest, 0, 1400).exit(2, 1500);
  values.enter(2, 1600).note(NoteKind::kRequest, 7, 1700).note(NoteKind::kRequest, 1ULL << 63, 1800).exit(2, 1900);
  values.exit(1, 2000);
}

TEST(Requests, WorkEndsWithTheNextNoteOrTheHistory) {
  SampleTrace values;
  request_sample(values);
  const reader::Trace trace = values.open();
  const auto work = work_on_requests(calls_of(trace));
  ASSERT_EQ(work.size(), 3U);
  EXPECT_EQ(work[0].id, 7U);
  EXPECT_EQ(work[0].range.begin, 1120U);
  EXPECT_EQ(work[0].range.end, 1400U);
  EXPECT_EQ(work[1].range.begin, 1700U);
  EXPECT_EQ(work[2].id, 1ULL << 63);
  EXPECT_EQ(work[2].range.end, 2001U);
  const reader::Thread& thread = trace.processes()[0].threads[0];
  EXPECT_TRUE(worked_on(trace, thread, 7));
  EXPECT_TRUE(worked_on(trace, thread, 1ULL << 63));
  EXPECT_FALSE(worked_on(trace, thread, 8));
}

TEST(Requests, CallsAreCutToThePartsAndCountOnce) {
  SampleTrace values;
  request_sample(values);
  const reader::Trace trace = values.open();
  reader::Calls calls = calls_of(trace);
  cut_to_request(calls, 7);
  std::string text;
  for (std::size_t row = 0; row < calls.size(); ++row)
    text += std::to_string(calls.depth[row]) + ":" + std::to_string(calls.function[row]) + " " +
            std::to_string(calls.begin[row]) + "+" + std::to_string(calls.duration[row]) + " " +
            std::to_string(calls.marks[row]) + "\n";
  EXPECT_EQ(text,
            "0:1 1120+280 3\n"
            "1:2 1120+280 3\n"
            "2:3 1150+100 0\n"
            "0:1 1700+100 35\n"   // main again: it counts once
            "1:2 1700+100 3\n");  // the second serve
  ASSERT_EQ(calls.notes.size(), 2U);
  EXPECT_EQ(calls.notes[0].row, 1U);
  EXPECT_EQ(calls.notes[1].row, 4U);
  EXPECT_EQ(calls.first_ticks, 1120U);
  EXPECT_EQ(calls.last_ticks, 1800U);
  cut_to_request(calls, 99);
  EXPECT_EQ(calls.size(), 0U);
  EXPECT_TRUE(calls.notes.empty());
}

// The cost of a call that was entered before the part lies there.
TEST(Requests, CostsAreOfCallsThatBeginInThePart) {
  SampleTrace values;
  request_sample(values);
  const reader::Trace trace = values.open();
  reader::Calls calls = calls_of(trace);
  cut_to_request(calls, 7);
  reader::Process process;
  process.cost.call = 20 * format::kCallCostUnit;
  process.cost.inside = 5 * format::kCallCostUnit;
  take_cost_out(calls, process.cost, {});
  EXPECT_EQ(calls.time(0), 280U - 5 - 20);
  EXPECT_EQ(calls.time(1), 280U - 5 - 20);
  EXPECT_EQ(calls.time(2), 100U - 5);
  EXPECT_EQ(calls.time(3), 100U - 5);
}

std::vector<Request> find(const reader::Trace& trace, std::optional<columns::TickRange> range = {}) {
  RequestFinder finder(trace, nullptr, range, false);
  for (const reader::Process& process : trace.processes())
    for (const reader::Thread& thread : process.threads) {
      const reader::Calls calls = reader::rebuild_calls(trace, thread);
      finder.add(thread, calls, calls);
    }
  return finder.take();
}

TEST(Requests, GoFromThreadToThread) {
  SampleTrace values;
  values.process(1, "app", {"main", "parse", "answer"}).thread(1, "app").enter(1, 1000);
  values.note(NoteKind::kRequestBegin, 7, 1100).note(NoteKind::kRequest, 7, 1200).call(2, 1210, 1290);
  values.note(NoteKind::kRequest, 0, 1300).exit(1, 3000);
  values.thread(2, "worker").enter(1, 1000).note(NoteKind::kRequest, 7, 1500).call(3, 1600, 1900);
  values.note(NoteKind::kRequestEnd, 7, 2000).note(NoteKind::kRequest, 0, 2000).exit(1, 3000);
  const reader::Trace trace = values.open();
  const auto requests = find(trace);
  ASSERT_EQ(requests.size(), 1U);
  const Request& r = requests[0];
  EXPECT_EQ(r.id, 7U);
  EXPECT_TRUE(r.begun && r.ended);
  EXPECT_EQ(r.begin, 1100U);
  EXPECT_EQ(r.duration(), 900U);
  EXPECT_EQ(r.worked, 100U + 500);
  EXPECT_EQ(r.idle, 100U + 200);
  EXPECT_EQ(r.threads, 2U);
  EXPECT_EQ(r.calls, 2U);
  EXPECT_EQ(r.most_in, 3U);
  EXPECT_EQ(r.most_ticks, 300U);
  EXPECT_FALSE(r.states);
  // Only what is in the range counts; the request is as long as it was.
  const auto part = find(trace, columns::TickRange{1700, 5000});
  ASSERT_EQ(part.size(), 1U);
  EXPECT_EQ(part[0].worked, 300U);
  EXPECT_EQ(part[0].calls, 0U);
  EXPECT_EQ(part[0].most_ticks, 200U);
  EXPECT_EQ(part[0].duration(), 900U);
}

TEST(Requests, ANumberMayBeginAgain) {
  SampleTrace values;
  values.process(1, "app", {"main"}).thread(1, "app").enter(1, 1000);
  const auto once = [&](std::uint64_t at) {
    values.note(NoteKind::kRequestBegin, 7, at).note(NoteKind::kRequest, 7, at + 1);
    values.note(NoteKind::kRequest, 0, at + 9).note(NoteKind::kRequestEnd, 7, at + 10);
  };
  values.note(NoteKind::kRequestEnd, 7, 1005);  // of one whose begin was overwritten
  once(1010);
  once(1020);  // as soon as the first has ended
  values.note(NoteKind::kRequestBegin, 7, 1050).note(NoteKind::kRequestBegin, 7, 1060);  // twice, and never ended
  values.exit(1, 1100);
  const reader::Trace trace = values.open();
  std::string text;
  for (const Request& r : find(trace))
    text += (r.begun ? "" : "<") + std::to_string(r.begin) + "+" + std::to_string(r.duration()) + (r.ended ? "" : ">") +
            " " + std::to_string(r.worked) + " ";
  EXPECT_EQ(text, "<1005+0 0 1010+10 8 1020+10 8 1050+0> 0 ");
}

TEST(Requests, OfTwoProcessesAreTwo) {
  SampleTrace values;
  for (std::uint32_t pid = 1; pid <= 2; ++pid)
    values.process(pid, "app", {"main"})
        .thread(pid, "app")
        .enter(1, 1000)
        .note(NoteKind::kRequest, 7, 1010)
        .exit(1, 1020);
  const reader::Trace trace = values.open();
  const auto requests = find(trace);
  ASSERT_EQ(requests.size(), 2U);
  EXPECT_EQ(requests[1].process, 1U);
  EXPECT_FALSE(requests[0].begun || requests[0].ended);
  EXPECT_EQ(requests[0].duration(), 11U);
}

// Each tick of each thread looked at alone: which request it is on, and in which call.
struct Naive {
  std::uint64_t worked = 0, calls = 0;
  std::set<std::uint32_t> threads;
  std::set<std::uint64_t> ticks;
  std::map<std::uint32_t, std::uint64_t> self;
};

TEST(Requests, TheSameAsLookingAtEachTickAlone) {
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
    SampleTrace values;
    values.process(1, "app", {"a", "b", "c"});
    std::map<std::uint64_t, Naive> naive;
    for (std::uint32_t tid = 1; tid <= 3; ++tid) {
      values.thread(tid, "app");
      std::vector<std::uint32_t> stack;
      std::uint64_t now = 1000, request = 0;
      const auto go_on = [&](std::uint64_t ticks) {
        const std::uint64_t next = now + ticks;
        if (Naive* on = request != 0 ? &naive[request] : nullptr; on != nullptr) {
          on->worked += next - now;
          on->threads.insert(tid);
          for (std::uint64_t tick = now; tick < next; ++tick) on->ticks.insert(tick);
          if (!stack.empty()) on->self[stack.back()] += next - now;
        }
        now = next;
      };
      for (int i = 0; i < 120; ++i) {
        go_on(1 + below(12));
        if (below(4) == 0) {
          request = below(4);
          values.note(NoteKind::kRequest, request, now);
        } else if (stack.size() < 6 && below(2) == 0) {
          stack.push_back(1 + below(3));
          values.enter(stack.back(), now);
          if (request != 0) ++naive[request].calls;
        } else if (!stack.empty()) {
          values.exit(stack.back(), now);
          stack.pop_back();
        }
      }
      go_on(1);
      values.note(NoteKind::kRequest, 0, now);
      while (!stack.empty()) {
        values.exit(stack.back(), now);
        stack.pop_back();
      }
    }
    const reader::Trace trace = values.open();
    const auto requests = find(trace);
    std::erase_if(naive, [](const auto& one) { return one.second.worked == 0; });
    ASSERT_EQ(requests.size(), naive.size()) << "seed " << seed;
    for (const Request& r : requests) {
      const Naive& of = naive.at(r.id);
      EXPECT_EQ(r.worked, of.worked) << "seed " << seed;
      EXPECT_EQ(r.calls, of.calls) << "seed " << seed;
      EXPECT_EQ(r.threads, of.threads.size()) << "seed " << seed;
      EXPECT_EQ(r.begin, *of.ticks.begin()) << "seed " << seed;
      EXPECT_EQ(r.end, *of.ticks.rbegin() + 1) << "seed " << seed;
      EXPECT_EQ(r.idle, r.duration() - of.ticks.size()) << "seed " << seed;
      std::uint64_t most = 0;
      for (const auto& [function, ticks] : of.self) most = std::max(most, ticks);
      EXPECT_EQ(r.most_ticks, most) << "seed " << seed;
      // What is cut out for it is the same time, function by function.
      std::map<std::uint32_t, std::uint64_t> self;
      std::uint64_t calls = 0;
      for (std::size_t thread = 0; thread < 3; ++thread) {
        reader::Calls cut = calls_of(trace, thread);
        cut_to_request(cut, r.id);
        for (std::size_t row = 0; row < cut.size(); ++row) {
          self[cut.function[row]] += cut.duration[row];
          if (cut.parent[row] != reader::kNoParent) self[cut.function[cut.parent[row]]] -= cut.duration[row];
          if ((cut.marks[row] & reader::kCallOpenBegin) == 0) ++calls;
        }
      }
      std::erase_if(self, [](const auto& one) { return one.second == 0; });
      EXPECT_EQ(self, of.self) << "seed " << seed;
      EXPECT_EQ(calls, of.calls) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace karst::analysis
