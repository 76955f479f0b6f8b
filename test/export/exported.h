// Exports of sample traces, in memory.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "export/export.h"
#include "format/control.h"
#include "test/analysis/sample_states.h"
#include "test/analysis/sample_trace.h"

namespace karst::test {

inline exporting::Options all_threads(const reader::Trace& trace) {
  exporting::Options options;
  for (const reader::Process& process : trace.processes()) {
    for (const reader::Thread& thread : process.threads) options.threads.push_back(&thread);
  }
  return options;
}

inline std::string exported(const reader::Trace& trace, exporting::Exporter exporter,
                            const exporting::Options& options) {
  std::string text;
  Output output = Output::to_string(text);
  exporter(trace, options, output);
  if (!output.finish()) throw std::runtime_error("writing to memory failed");
  return text;
}

/// Two processes; nested calls, names that need escaping, a call without a known begin, calls without an end, an
/// unknown function, a source file.
inline reader::Trace rich_trace(SampleTrace& sample) {
  sample.process(10, "parent \"p\"", {"main", "operator<<(std::ostream&, char const*)", "tab\tand \xff byte"});
  sample.thread(10, "parent \"p\"").enter(1, 1'001'000).call(2, 1'001'001, 1'003'500).call(3, 1'004'000, 1'004'000);
  sample.call(2, 1'005'000, 1'006'001).exit(1, 2'000'000);
  sample.thread(11, "worker", 3).call(2, 1'500'000, 1'500'100).exit(1, 1'600'000).enter(1, 1'700'000);
  sample.enter(2, 1'700'010).exit(1, 1'700'500).enter(3, 1'800'000).call(7'000'000, 1'800'010, 1'800'020);
  sample.function(3).file.clear();
  sample.process(20, "child", {"main"}).thread(20, "child").call(1, 3'000'000, 3'000'001);
  sample.source("/src/sample.cc", "int main() {\n  return \"\\n\"[0];\n}\n").source("/src/unused.h", "#pragma once\n");
  return sample.open();
}

/// Main (10) wakes worker (11) out of take() by put(); a stranger (99) is on the worker's CPU meanwhile; records of CPU
/// 1 are missing in the end.
inline reader::Trace trace_with_states(SampleTrace& sample) {
  sample.process(10, "app", {"main", "put(int)", "take()"});
  sample.thread(10, "main").enter(1, 2'000).call(2, 900'000, 1'000'100).exit(1, 3'000'000);
  sample.thread(11, "worker").call(3, 100'000, 2'000'000);
  SampleStates states(1'000, 3'000'000);
  states.task(10, 10, "main").task(11, 10, "wor\nker").task(99, 98, "stranger", false);
  states.go(1'500, 0, 0, 'R', 10).go(90'000, 1, 0, 'R', 11).go(200'000, 1, 11, 'D', 99);
  states.wake(1'000'000, 0, 11, 10).go(1'300'000, 1, 99, 'S', 11).go(1'500'000, 1, 11, 'R', 99);
  states.lost(1'600'000, 1'700'000, 1).go(1'800'000, 1, 0, 'R', 11);
  sample.states(states.log());
  return sample.open();
}

/// What of it is before that.
inline exporting::Options before_the_waking(const reader::Trace& trace) {
  exporting::Options options = all_threads(trace);
  options.filter.range = columns::TickRange{0, 900'500};
  return options;
}

/// Main calls put(int); samples are in both, in a thread that is not traced, and in the kernel. Some have no stack.
inline reader::Trace trace_with_samples(SampleTrace& sample) {
  sample.process(10, "app", {"main", "put(int)"}).thread(10, "main");
  sample.enter(1, 10'000).call(2, 20'000, 30'000).exit(1, 40'000);
  reader::SampleLog log;
  log.source.period_ns = 1000;
  log.source.begin_ticks = 5'000;
  log.source.end_ticks = 90'000;
  log.functions = {{"/lib/libc.so.6", "", 0x100, 16, 0, "__libc_start", ""},
                   {"/bin/app", "", 0x200, 16, 0, "main", ""},
                   {"/bin/app", "", 0x300, 16, 0, "put(int)", ""},
                   {"", "", 0, 0, 0, "[no file]", ""}};
  log.stacks = {{0, 0}, {1, 1}, {2, 2}, {0, 3}, {2, 3}};  // the last: main calls what has no file
  const auto add = [&](std::uint64_t ticks, std::uint32_t tid, std::uint32_t stack, std::uint16_t cpu,
                       std::uint16_t flags = 0) {
    log.samples.push_back({ticks, tid, 10, stack, cpu, flags});
  };
  add(8'000, 10, 1, 0);
  add(15'000, 10, 2, 0);
  add(25'000, 10, 3, 1, format::kSampleInKernel);
  add(26'000, 11, 4, 0, format::kSampleCut);  // a thread that is not traced
  add(35'000, 10, 5, 1);
  add(36'000, 10, 2, 1);
  add(50'000, 10, 0, 0, format::kSampleCut);
  sample.samples(std::move(log));
  return sample.open();
}

/// What a decoder should find: time since the trace's first sample, thread, CPU, stack from the outside in.
struct ExportedSample {
  std::uint64_t ns;
  std::uint64_t tid;
  std::uint64_t cpu;
  std::string stack;
  auto operator<=>(const ExportedSample&) const = default;
};
inline const std::vector<ExportedSample> kExportedSamples = {
    {0, 10, 0, "libc.so.6!__libc_start"},
    {7'000, 10, 0, "libc.so.6!__libc_start;app!main"},
    {17'000, 10, 1, "libc.so.6!__libc_start;app!main;app!put(int)"},
    {18'000, 11, 0, "[no file]![no file]"},
    {27'000, 10, 1, "libc.so.6!__libc_start;app!main;[no file]![no file]"},
    {28'000, 10, 1, "libc.so.6!__libc_start;app!main"},
    {42'000, 10, 0, ""}};

/// put(int) is switched off by the budget and comes back; then nothing is traced for a while, and in the end again.
inline reader::Trace trace_with_switches(SampleTrace& sample) {
  using format::SwitchReason;
  const auto by = [](SwitchReason reason) { return static_cast<std::uint32_t>(reason); };
  sample.process(10, "app", {"main", "put(int)", "take()"});
  sample.thread(10, "main").call(2, 900'000, 1'000'100).call(3, 5'000'000, 5'000'100);
  sample.switched({1'100'000, 1'100'500, 2, 1, false, by(SwitchReason::kBudget)});
  sample.switched({1'200'000, 1'200'500, 1, 3, true, by(SwitchReason::kBudget)});
  sample.switched({2'000'000, 2'000'500, 0, 0, false, by(SwitchReason::kRequest)});
  sample.switched({3'000'000, 3'000'500, 0, 0, true, by(SwitchReason::kRequest)});
  sample.switched({4'999'000, 0, 0, 0, false, by(SwitchReason::kTimer)});
  return sample.open();
}

}  // namespace karst::test
