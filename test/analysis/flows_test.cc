// Flows of made-up threads: what is said, against a log of it; coroutines whose frames lie where others' lay.
#include "analysis/flows.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "format/note.h"
#include "format/values.h"
#include "reader/trace.h"
#include "test/analysis/sample_trace.h"

namespace karst::analysis {
namespace {

using format::NoteKind;
using test::SampleTrace;

std::vector<Flow> flows_of_all(const reader::Trace& trace) {
  std::vector<const reader::Thread*> threads;
  for (const reader::Process& process : trace.processes())
    for (const reader::Thread& thread : process.threads) threads.push_back(&thread);
  return flows_of(trace, threads);
}

/// `flow 7: 1.serve 2.parse|`, the ends of flows marked.
std::string text_of(const reader::Trace& trace) {
  std::string text;
  for (const Flow& flow : flows_of_all(trace)) {
    text += flow_name(trace, flow) + ":";
    for (const FlowStep& step : flow.steps)
      text += fmt::format(" {}.{}", step.thread->tid,
                          step.function == 0 ? "-" : trace.function(trace.processes()[0], step.function).name);
    text += flow.ended ? "|\n" : "\n";
  }
  return text;
}

TEST(Flows, GoThroughThreadsAndEndWhereThatIsSaid) {
  SampleTrace values;
  values.process(1, "app", {"main", "serve", "parse"}).thread(1, "app").enter(1, 1000);
  values.note(NoteKind::kFlow, 7, 1100).enter(2, 1200).note(NoteKind::kFlow, 8, 1300).exit(2, 1400);
  values.note(NoteKind::kFlow, 7, 2500).exit(1, 3000);
  values.thread(2, "worker").enter(3, 1500).note(NoteKind::kFlow, 8, 1600).note(NoteKind::kFlowEnd, 7, 1700);
  values.exit(3, 1800).note(NoteKind::kFlowEnd, 8, 1900);
  const reader::Trace trace = values.open();
  EXPECT_EQ(text_of(trace), "flow 7: 1.main 2.parse|\nflow 8: 1.serve 2.parse 2.-|\nflow 7: 1.main\n");
  const std::vector<Flow> flows = flows_of_all(trace);
  EXPECT_EQ(flows[0].gap(0), 600U);
  EXPECT_EQ(flows[1].gaps(), 600U);
  EXPECT_EQ(flows[1].longest_gap(), 0U);
  EXPECT_EQ(flows[1].threads(), 2U);
  EXPECT_EQ(flows[1].end, 1900U);
  EXPECT_EQ(flows[2].longest_gap(), flows[2].steps.size());
}

TEST(Flows, RandomOnesAreAsTheirLogSays) {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    SampleTrace values;
    values.process(1, "app", {"f"});
    std::vector<std::vector<std::string>> said;  // of each flow the times of its steps
    std::map<std::uint64_t, std::size_t> open;   // number: which flow it is
    struct Said {
      NoteKind kind;
      std::uint64_t id, at;
    };
    std::map<std::uint32_t, std::vector<Said>> threads;
    for (std::uint64_t at = 2000; at < 2400; ++at) {
      const std::uint64_t id = random() % 5 == 0 ? ~std::uint64_t{0} - random() % 3 : random() % 6;
      const bool last = random() % 4 == 0;
      threads[1 + random() % 4].push_back({last ? NoteKind::kFlowEnd : NoteKind::kFlow, id, at});
      if (!open.contains(id)) {
        open[id] = said.size();
        said.emplace_back();
      }
      said[open[id]].push_back(fmt::format("{}{}", at, last ? "|" : ""));
      if (last) open.erase(id);
    }
    for (const auto& [tid, notes] : threads) {
      values.thread(tid, "app").enter(1, 1000);
      for (const Said& note : notes) values.note(note.kind, note.id, note.at);
      values.exit(1, 3000);
    }
    const reader::Trace trace = values.open();
    std::vector<std::vector<std::string>> found;
    for (const Flow& flow : flows_of_all(trace)) {
      found.emplace_back();
      for (std::size_t i = 0; i < flow.steps.size(); ++i)
        found.back().push_back(
            fmt::format("{}{}", flow.steps[i].begin, flow.ended && i + 1 == flow.steps.size() ? "|" : ""));
    }
    EXPECT_EQ(found, said) << seed;
  }
}

/// A call of a coroutine's part, whose frame lies there.
void part(SampleTrace& values, std::uint32_t function, std::uint64_t frame, std::uint64_t begin, std::uint64_t end) {
  std::string bytes(1, static_cast<char>(format::note_bytes_of(frame)));
  for (std::uint64_t left = frame; left != 0; left >>= 8) bytes += static_cast<char>(left);
  values.values(NoteKind::kArguments, function, bytes + "\xff", begin).enter(function, begin).exit(function, end);
}

constexpr const char* kFrame = "coroutine frame:x|";

SampleTrace& with_coroutine(SampleTrace& values, const char* resumes) {
  values.process(1, "app",
                 {"main", "f(int)", std::string("f(int) [clone .") + resumes + "]", "f(int) [clone .destroy]",
                  "f(int) [clone .destroy]"});
  values.function(5).tail_exit = true;  // the second id of 4
  values.function(5).address = values.function(4).address;
  values.function(3).values = kFrame;
  values.function(4).values = kFrame;
  return values;
}

TEST(Coroutines, OfGccBeginInTheFunctionThatMakesThem) {
  SampleTrace values;
  with_coroutine(values, "actor").thread(1, "app").enter(1, 1000).enter(2, 1100);
  part(values, 3, 0x500, 1110, 1120);
  values.exit(2, 1150);
  part(values, 3, 0x500, 1200, 1210);
  // Another one where it lay.
  values.enter(2, 1300);
  part(values, 3, 0x500, 1310, 1320);
  values.exit(2, 1350).exit(1, 2000);
  values.thread(2, "worker");
  part(values, 3, 0x500, 1400, 1450);
  const reader::Trace trace = values.open();
  const char* const step = "f(int) [clone .actor]";
  EXPECT_EQ(text_of(trace), fmt::format("f [0x500]: 1.{0} 1.{0}\nf [0x500]: 1.{0} 2.{0}\n", step));
  const std::vector<Flow> flows = flows_of_all(trace);
  EXPECT_EQ(flows[0].gap(0), 80U);
  EXPECT_EQ(flows[1].gap(0), 80U);
}

TEST(Coroutines, EndWhereTheyAreDestroyedWhichIsNoResumption) {
  for (const bool by_jump : {false, true}) {
    SampleTrace values;
    with_coroutine(values, "actor").thread(1, "app").enter(1, 1000);
    part(values, 3, 0x500, 1100, 1110);
    std::string bytes = std::string("\x02") + std::string("\x00\x05", 2) + "\xff";
    values.values(NoteKind::kArguments, 4, bytes, 1200).enter(4, 1200);
    if (by_jump) {
      values.exit(5, 1210);
      part(values, 3, 0x500, 1212, 1220);
    } else {
      part(values, 3, 0x500, 1205, 1215);
      values.exit(4, 1220);
    }
    part(values, 3, 0x500, 1300, 1310);
    values.exit(1, 2000);
    const reader::Trace trace = values.open();
    const char* const step = "f(int) [clone .actor]";
    EXPECT_EQ(text_of(trace), fmt::format("f [0x500]: 1.{0}|\nf [0x500]: 1.{0}\n", step)) << by_jump;
  }
}

TEST(Coroutines, OfClangThatNobodyDestroysAreOthersAfterOneHasBegun) {
  SampleTrace values;
  with_coroutine(values, "resume").thread(1, "app").enter(1, 1000).call(2, 1010, 1020);
  part(values, 3, 0x500, 1100, 1110);
  part(values, 3, 0x500, 1200, 1210);
  values.call(2, 1300, 1310);
  part(values, 3, 0x500, 1400, 1410);
  values.exit(1, 2000);
  const reader::Trace trace = values.open();
  const char* const step = "f(int) [clone .resume]";
  EXPECT_EQ(text_of(trace), fmt::format("f [0x500]: 1.{0} 1.{0}\nf [0x500]: 1.{0}\n", step));
}

TEST(Coroutines, OfClangThatAreDestroyedAreTheSameUntilThen) {
  SampleTrace values;
  with_coroutine(values, "resume").thread(1, "app").enter(1, 1000);
  part(values, 3, 0x500, 1100, 1110);
  values.call(2, 1150, 1160);  // has another frame
  part(values, 3, 0x500, 1200, 1210);
  part(values, 4, 0x500, 1300, 1310);
  part(values, 3, 0x500, 1400, 1410);
  values.exit(1, 2000);
  const reader::Trace trace = values.open();
  const char* const step = "f(int) [clone .resume]";
  EXPECT_EQ(text_of(trace), fmt::format("f [0x500]: 1.{0} 1.{0}|\nf [0x500]: 1.{0}\n", step));
}

TEST(Coroutines, TornNotesAndArgumentsOfOtherFunctionsAreNoSteps) {
  SampleTrace values;
  values.process(1, "app", {"f(int) [clone .actor]", "g"}).thread(1, "app");
  values.function(1).values = kFrame;
  values.function(2).values = "coroutine:x|";
  values.values(NoteKind::kArguments, 1, "\x08\x01", 1000).call(1, 1000, 1010);
  values.values(NoteKind::kArguments, 2, "\x01\x01\xff", 1100).call(2, 1100, 1110);
  values.call(1, 1200, 1210);
  EXPECT_EQ(text_of(values.open()), "");
}

}  // namespace
}  // namespace karst::analysis
