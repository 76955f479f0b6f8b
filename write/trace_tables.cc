// SPDX-License-Identifier: MIT
// The tables of a trace, from plain values: a function for each of them.
#include <algorithm>
#include <iterator>
#include <string>

#include "format/moments.h"
#include "format/trace.h"
#include "write/file_chunks.h"
#include "write/trace_writer.h"

namespace karst::writing {

using format::ChunkType;

void TraceWriter::add_processes(std::span<const reader::Process> processes) {
  auto table = make_table<format::ProcessRecord>(*chunks_, ChunkType::kProcesses, 0, false);
  for (const auto& process : processes) {
    std::string arguments;
    for (const auto& argument : process.command_line) arguments.append(argument).push_back('\0');
    format::ProcessRecord record{};
    record.process = process.index;
    record.pid = process.pid;
    record.parent_pid = process.parent_pid;
    record.flags = process.flags;
    record.wait_status = process.wait_status;
    record.parent = process.parent;
    record.start_ticks = process.start_ticks;
    record.end_ticks = process.end_ticks;
    record.overwritten_events = process.overwritten_events;
    record.lost_events = process.lost_events;
    record.name = table.text(process.name);
    record.command_line = table.text(arguments);
    record.executable = table.text(process.executable);
    record.options = table.text(process.options);
    table.add(record);
  }
}

void TraceWriter::add_clock(const Clock& clock) {
  auto table = make_table<format::ClockRecord>(*chunks_, ChunkType::kClock, 0, false);
  for (const auto& pair : clock.pairs) {
    table.add({pair.ticks, pair.monotonic_raw_ns, pair.realtime_ns, clock.ticks_per_second, pair.uncertainty_ns,
               clock.rate_source});
  }
}

void TraceWriter::add_modules(std::uint32_t process, std::span<const reader::Module> modules) {
  auto table = make_table<format::ModuleRecord>(*chunks_, ChunkType::kModules, process, true);
  for (const auto& module : modules) {
    format::ModuleRecord record{};
    record.module = module.index;
    record.flags = module.flags();
    record.bias = module.bias;
    record.text_begin = module.text_begin;
    record.text_end = module.text_end;
    record.loaded_ticks = module.loaded_ticks;
    record.unloaded_ticks = module.unloaded_ticks;
    record.path = table.text(module.path);
    record.build_id = table.text(module.identity());
    table.add(record);
  }
}

void TraceWriter::add_functions(std::uint32_t process, std::span<const reader::Function> functions) {
  auto table = make_table<format::FunctionRecord>(*chunks_, ChunkType::kFunctions, process, true);
  for (const auto& function : functions) {
    if (function.id == 0) continue;
    const std::uint32_t flags = (function.filtered ? std::uint32_t{format::kFunctionFiltered} : 0) |
                                (function.tail_exit ? std::uint32_t{format::kFunctionTailExit} : 0) |
                                (function.tail_return ? std::uint32_t{format::kFunctionTailReturn} : 0) |
                                (function.always ? std::uint32_t{format::kFunctionAlways} : 0) |
                                (function.culled ? std::uint32_t{format::kFunctionCulled} : 0) |
                                (function.note ? std::uint32_t{format::kFunctionNote} : 0);
    table.add({function.id, function.module, function.address, flags, 0});
  }
}

void TraceWriter::add_symbols(std::uint32_t process, std::span<const reader::Function> functions) {
  chunks_->resolved = true;
  auto table = make_table<format::SymbolRecord>(*chunks_, ChunkType::kSymbols, process, true);
  for (const auto& function : functions) {
    if (function.id == 0) continue;
    format::SymbolRecord record{};
    record.id = function.id;
    record.line = function.line;
    record.name = table.text(function.name);
    record.link_name = table.text(function.link_name);
    record.file = table.shared_text(function.file);
    record.values = table.text(function.values);
    table.add(record);
  }
}

void TraceWriter::add_inlined(std::uint32_t process, const reader::InlinedTable& inlined) {
  auto table = make_table<format::InlinedRecord>(*chunks_, ChunkType::kInlined, process, true);
  for (const auto& call : inlined.all()) {
    if (call.depth == 1) table.split();
    format::InlinedRecord record{};
    record.function = call.function;
    record.depth = call.depth;
    record.copies = call.copies;
    record.line = call.line;
    record.call_line = call.call_line;
    record.name = table.shared_text(std::string(inlined.text(call.name)));
    record.file = table.shared_text(std::string(inlined.text(call.file)));
    record.call_file = table.shared_text(std::string(inlined.text(call.call_file)));
    table.add_unsplit(record);
  }
}

void TraceWriter::add_moments(std::uint32_t process, std::span<const reader::Moment> moments) {
  auto table = make_table<format::MomentRecord>(*chunks_, ChunkType::kMoments, process, true);
  for (const auto& moment : moments) {
    format::MomentRecord record{};
    record.number = moment.number;
    record.kind = moment.kind;
    record.begin_ticks = moment.begin_ticks;
    record.end_ticks = moment.end_ticks;
    record.kept_from = moment.kept_from;
    record.kept_to = moment.kept_to;
    record.whole_from = moment.whole_from;
    record.lost_events = moment.lost_events;
    record.function = moment.function;
    record.thread = moment.thread;
    record.tid = moment.tid;
    record.flags = moment.flags;
    record.address = moment.address;
    std::copy(moment.arguments.begin(), moment.arguments.end(), std::begin(record.arguments));
    record.what = table.shared_text(moment.what);
    table.add(record);
  }
}

void TraceWriter::add_untraced(std::span<const reader::UntracedProgram> programs) {
  auto table = make_table<format::UntracedRecord>(*chunks_, ChunkType::kUntraced, 0, true);
  for (const auto& untraced : programs) table.add({table.text(untraced.program), table.shared_text(untraced.reason)});
}

void TraceWriter::add_threads(std::uint32_t process, std::span<const reader::Thread> threads) {
  auto table = make_table<format::ThreadRecord>(*chunks_, ChunkType::kThreads, process, true);
  for (const auto& thread : threads) {
    format::ThreadRecord record{};
    record.thread = thread.index;
    record.tid = thread.tid;
    record.flags = (thread.exited ? std::uint32_t{format::kThreadExited} : 0) |
                   (thread.excerpt ? std::uint32_t{format::kThreadExcerpt} : 0) |
                   (thread.fiber ? std::uint32_t{format::kThreadFiber} : 0);
    record.joined_ticks = thread.joined_ticks;
    record.exited_ticks = thread.exited_ticks;
    record.overwritten_events = thread.overwritten_events;
    record.lost_events = thread.lost_events;
    record.inherited = thread.inherited;
    record.name = table.text(thread.name);
    table.add(record);
  }
}

void TraceWriter::add_states(const reader::StateLog& log) {
  {
    auto table = make_table<format::StateSourceRecord>(*chunks_, ChunkType::kStateSource, 0, false);
    const reader::StateSource& s = log.source;
    format::StateSourceRecord record{};
    record.backend = static_cast<std::uint32_t>(s.backend);
    record.flags = s.flags;
    record.clock_error_ns = s.clock_error_ns;
    record.cpus = s.cpus;
    record.begin_ticks = s.begin_ticks;
    record.end_ticks = s.end_ticks;
    record.lost_events = s.lost_events;
    record.overwritten_events = s.overwritten_events;
    record.page_faults = s.page_faults;
    record.migrations = s.migrations;
    record.note = table.text(s.note);
    table.add(record);
  }
  {
    auto table = make_table<format::TaskRecord>(*chunks_, ChunkType::kTasks, 0, true);
    for (const reader::Task& task : log.tasks) {
      const std::uint32_t flags = (task.of_run ? format::kTaskOfRun : 0U) | (task.tracer ? format::kTaskTracer : 0U);
      table.add({task.tid, task.pid, flags, 0, table.shared_text(task.name)});
    }
  }
  auto table = make_table<format::StateRecord>(*chunks_, ChunkType::kStateEvents, 0, true);
  for (const format::StateRecord& record : log.records) table.add(record);
}

void TraceWriter::add_samples(const reader::SampleLog& log) {
  if (log.empty()) return;
  {
    auto table = make_table<format::SampleSourceRecord>(*chunks_, ChunkType::kSampleSource, 0, false);
    const reader::SampleSource& s = log.source;
    table.add({s.period_ns, s.begin_ticks, s.end_ticks, s.lost, s.unread, s.flags,
               static_cast<std::uint32_t>(std::min<std::uint64_t>(s.waits_left_out, 0xffffffffU)), table.text(s.note)});
  }
  {
    auto table = make_table<format::SampledFunctionRecord>(*chunks_, ChunkType::kSampledFunctions, 0, true);
    for (const reader::SampledFunction& f : log.functions)
      table.add(
          {f.address, f.size, f.line, table.shared_text(f.module), table.text(f.name), table.shared_text(f.file)});
  }
  {
    auto table = make_table<format::SampledStackRecord>(*chunks_, ChunkType::kSampledStacks, 0, true);
    for (const format::SampledStackRecord& stack : log.stacks) table.add(stack);
  }
  const auto add = [this](ChunkType type, const reader::Column<format::SampleRecord>& samples) {
    auto table = make_table<format::SampleRecord>(*chunks_, type, 0, true);
    for (const format::SampleRecord& sample : samples) table.add(sample);
  };
  add(ChunkType::kSamples, log.samples);
  if (log.waits.size() != 0) add(ChunkType::kSampledWaits, log.waits);
}

void TraceWriter::add_usage(const reader::UsageLog& log) {
  if (log.empty()) return;
  {
    auto table = make_table<format::SeriesRecord>(*chunks_, ChunkType::kSeries, 0, true);
    std::uint32_t number = 0;
    for (const reader::UsageSeries& series : log.series)
      table.add({number++, static_cast<std::uint32_t>(series.kind), static_cast<std::uint32_t>(series.of), series.pid,
                 series.tid, series.thinned ? format::kSeriesThinned : 0U});
  }
  auto table = make_table<format::PointRecord>(*chunks_, ChunkType::kPoints, 0, true);
  for (std::uint32_t number = 0; number < log.series.size(); ++number)
    for (const reader::UsagePoint& point : log.series[number].points) table.add({point.ticks, point.value, number, 0});
}

void TraceWriter::add_mode(const reader::Process& process) {
  if (process.min_duration_ticks == 0 && process.clock_period_ticks == 0) return;
  auto table = make_table<format::ModeRecord>(*chunks_, ChunkType::kModes, process.index, false);
  table.add({process.min_duration_ticks, process.clock_period_ticks, process.clock_longest_ticks});
}

void TraceWriter::add_cost(const reader::Process& process) {
  if (process.cost.call == 0) return;
  auto table = make_table<format::CostRecord>(*chunks_, ChunkType::kCosts, process.index, false);
  table.add({process.cost.call, process.cost.inside, process.cost.off_by});
}

void TraceWriter::add_switches(std::uint32_t process, std::span<const reader::Switch> switches) {
  auto table = make_table<format::SwitchRecord>(*chunks_, ChunkType::kSwitches, process, true);
  for (const auto& s : switches) table.add({s.begin_ticks, s.end_ticks, s.first, s.count, s.on ? 1U : 0U, s.reason});
}

}  // namespace karst::writing
