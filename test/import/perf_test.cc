// perf script's text: lines as perf writes them, periods, several events, threads, what is damaged or absurd.
#include <string>

#include "import/perf_lines.h"
#include "import/refused.h"
#include "test/import/imported.h"

namespace karst::importing {
namespace {

struct ImportedPerf : Imported {
  explicit ImportedPerf(std::string_view text) : Imported(import_perf, text) {}

  /// Each sample as `pid/tid@ns outer;inner`, with the module of the innermost in brackets.
  std::vector<std::string> samples() const {
    std::vector<std::string> all;
    const reader::SampleLog& log = trace().samples();
    for (const format::SampleRecord& sample : log.samples) {
      std::string stack;
      for (std::uint32_t at = sample.stack; at != 0; at = log.stacks[at - 1].caller)
        stack = log.functions[log.stacks[at - 1].function].name + (stack.empty() ? "" : ";" + stack);
      all.push_back(std::to_string(sample.pid) + "/" + std::to_string(sample.tid) + "@" +
                    std::to_string(sample.ticks - log.samples[0].ticks) + " " + stack);
    }
    return all;
  }
  std::uint64_t period_ns() const { return trace().samples().source.period_ns; }
};
using Lines = std::vector<std::string>;

constexpr const char* kText =
    "# ========\n"
    "my app   7/8   [003]   10.000001:     250000 cpu-clock:pppH: \n"
    "\t            1100 inner(int, char)+0x12 (/bin/my app)\n"
    "\t            1200 main+0x4 (/bin/my app)\n"
    "\n"
    "my app   7/9   10.000501001:     250000 cpu-clock:pppH: \n"
    "\tffffffff81000000 do_work ([kernel.kallsyms])\n"
    "\t            1200 main (/bin/my app)\n"
    "\t            1300 [unknown] ([unknown])\n"
    "\n";

TEST(ImportPerf, SamplesHaveStacksThreadsAndTimes) {
  EXPECT_TRUE(may_be_perf(kText));
  const ImportedPerf imported(kText);
  ASSERT_EQ(imported.error, "");
  EXPECT_EQ(imported.samples(), (Lines{"7/8@0 main;inner(int, char)", "7/9@500001 [unknown];main;do_work"}));
  EXPECT_EQ(imported.period_ns(), 250'000U);
  EXPECT_EQ(imported.summary.samples, 2U);
  EXPECT_TRUE(imported.summary.left_out.empty());
  EXPECT_TRUE(imported.summary.remarks.empty());
  const reader::SampleLog& log = imported.trace().samples();
  EXPECT_EQ(log.functions[0].module, "/bin/my app");
  EXPECT_EQ(log.samples[0].cpu, 3U);
  ASSERT_EQ(imported.trace().processes().size(), 1U);
  EXPECT_EQ(imported.trace().processes()[0].name, "my app");
  EXPECT_EQ(imported.trace().processes()[0].threads.size(), 2U);
}

TEST(ImportPerf, FramesMayStandOnTheFirstLine) {
  const ImportedPerf imported(
      "a 1 2.000000: 1000 task-clock: 55 f+0x1 (/bin/a)\n"
      "a 1 2.000001: 1000 task-clock: 56 g (/bin/a)\n");
  EXPECT_EQ(imported.samples(), (Lines{"0/1@0 f", "0/1@1000 g"}));
  EXPECT_EQ(imported.period_ns(), 1000U);
  EXPECT_EQ(imported.trace().processes()[0].name, "(not known)");
}

TEST(ImportPerf, TheHeaderSaysWhatASampleStandsFor) {
  const std::string samples = "a 1/1 2.000000: 777 cycles:P: 55 f (x)\na 1/1 2.003000: 777 cycles:P: 55 f (x)\n";
  const ImportedPerf with_header(
      "# event : name = cycles:P, , id = { 1 }, { sample_period, sample_freq } = 500, freq = 1, x = 1\n" + samples);
  EXPECT_EQ(with_header.period_ns(), 2'000'000U);
  EXPECT_TRUE(with_header.summary.remarks.empty());
  const ImportedPerf without(samples);
  EXPECT_EQ(without.period_ns(), 3'000'000U);
  ASSERT_EQ(without.summary.remarks.size(), 1U);
  EXPECT_NE(without.summary.remarks[0].find("3000000 ns are the usual time"), std::string::npos);
  EXPECT_EQ(ImportedPerf("a 1/1 2.000000: 777 cycles: 55 f (x)\n").error,
            "nothing says how much time a sample stands for: 'perf script --header' writes it");
}

TEST(ImportPerf, WhatIsNoCpuTimeIsCounted) {
  const ImportedPerf imported(
      "a 1 2.000000: 9 page-faults: 55 f (x)\n"
      "a 1 2.000001: sched:sched_switch: prev_comm=a prev_pid=1 2.000009: ==> next_comm=b\n"
      "a 1 2.000002: 5 cpu_core/cycles/u: 55 f (x)\n"
      "a 1 2.000003: 5 cpu_atom/cycles/u: 55 f (x)\n"
      "a 1 2.000004: 5 cpu-clock: 55 f (x)\n"
      "\nnonsense\n");
  EXPECT_EQ(imported.summary.samples, 2U);
  EXPECT_EQ(imported.summary.left_out,
            (std::map<std::string, std::uint64_t>{{"lines that are no part of a sample", 1},
                                                  {"samples of cpu-clock, as there are those of another event", 1},
                                                  {"samples of page-faults, which is no CPU time", 1},
                                                  {"samples of sched:sched_switch, which is no CPU time", 1}}));
  EXPECT_EQ(ImportedPerf("a 1 2.000000: 9 page-faults: 55 f (x)\n").error,
            "there are no calls and no samples in it; left out: 1 samples of page-faults, which is no CPU time");
}

TEST(ImportPerf, CommandsMayLookLikeNumbers) {
  const auto head = perf_head(" 12 3.0: b/c 7/8 [001] d.h1.  5.123456: 4 cycles: ");
  ASSERT_TRUE(head);
  EXPECT_EQ(head->command, "12 3.0: b/c");
  EXPECT_EQ(head->pid, 7U);
  EXPECT_EQ(head->tid, 8U);
  EXPECT_EQ(head->cpu, 1U);
  EXPECT_EQ(head->ns, 5'123'456'000);
  EXPECT_EQ(head->event, "cycles");
  for (const char* none : {"", "a", "a 1 2.0: x:", "a 1 2.000000 x:", "a 1 2.000000: 5", "a x 2.000000: cycles:",
                           "a 1/x 2.000000: cycles:", "a 99999999999 2.000000: cycles:", "a 1 2.000000: :",
                           "a 1 99999999999999999999.000000: cycles:", "a 1 9999999999.000000: cycles:"})
    EXPECT_FALSE(perf_head(none)) << none;
}

TEST(ImportPerf, FramesOfAnyNameAreTaken) {
  const auto frame = perf_frame("\t 55 operator()(char (*)(int))+0x10 (inlined)");
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->name, "operator()(char (*)(int))");
  EXPECT_EQ(frame->module, "inlined");
  EXPECT_EQ(perf_frame("55")->name, "[unknown]");
  EXPECT_EQ(perf_frame("55 a (b) c")->name, "a (b) c");
  EXPECT_FALSE(perf_frame("x f (y)"));
  const ImportedPerf hostile("a\xff\x1b 1/1 2.000000: 5 cpu-clock: 55 f\xff\x1b (m\xff)\n");
  EXPECT_EQ(hostile.samples(), Lines{"1/1@0 f\xef\xbf\xbd\x1b"});
}

TEST(ImportPerf, DeepStacksAreCut) {
  std::string text = "a 1/1 2.000000: 5 cpu-clock: \n";
  for (int i = 0; i < 5000; ++i) text += "\t55 f" + std::to_string(i) + " (x)\n";
  const ImportedPerf imported(text);
  EXPECT_EQ(imported.trace().samples().samples[0].flags, format::kSampleCut);
  EXPECT_EQ(imported.trace().samples().stacks.size(), 4096U);
}

TEST(ImportRefused, FilesWithoutTimesSayWhatHelps) {
  EXPECT_NE(why_refused("# callgrind format\nversion: 1\n")->find("karst export --to callgrind"), std::string::npos);
  EXPECT_TRUE(why_refused("version: 1\ncreator: x\nevents: Ir\n"));
  EXPECT_TRUE(why_refused(std::string_view("gmon\1\0\0\0", 8)));
  EXPECT_NE(why_refused("PERFILE2xxxx")->find("perf script --header"), std::string::npos);
  EXPECT_NE(why_refused("name,src_file,src_line,total_ns\n")->find("tracy-csvexport -u"), std::string::npos);
  for (const char* other : {"", "version: 1\n", "name,total_ns\n", "hello", "{}"}) EXPECT_FALSE(why_refused(other));
}

}  // namespace
}  // namespace karst::importing
