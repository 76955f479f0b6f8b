// SPDX-License-Identifier: MIT
#include "engine/cut/cut.h"

#include <algorithm>
#include <list>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "engine/cut/thread_cut.h"

namespace karst::engine {

Status write_cut(const Scope& scope, writing::TraceWriter& writer) {
  const reader::Trace& trace = scope.index->trace();
  const TickRange range = scope.parts.empty() ? TickRange{} : scope.parts.front().rows.range;
  std::list<ThreadCut> cuts;
  for (const Scope::Part& part : scope.parts) {
    if (!part.rows.empty()) cuts.emplace_back(scope, part);
  }
  writer.pack_events();
  writer.add_processes(trace.processes());
  writer.add_clock(trace.clock());
  std::set<std::string_view> files;  // of what was called
  for (const reader::Process& process : trace.processes()) {
    writer.add_modules(process.index, process.modules);
    writer.add_functions(process.index, process.functions);
    if (trace.resolved()) writer.add_symbols(process.index, process.functions);
    std::vector<reader::Thread> threads;
    for (const ThreadCut& cut : cuts) {
      if (trace.processes()[cut.thread().process].index == process.index) threads.push_back(cut.thread());
    }
    writer.add_threads(process.index, threads);
    writer.add_mode(process);
    writer.add_cost(process);
    writer.add_switches(process.index, process.switches);
    std::vector<reader::Moment> moments = process.moments;
    std::erase_if(moments, [&](const reader::Moment& moment) {
      return moment.begin_ticks >= range.end || moment.end_ticks < range.begin;
    });
    writer.add_moments(process.index, moments);
    std::vector<bool> seen(process.functions.size());
    for (const ThreadCut& cut : cuts) {
      if (&trace.processes()[cut.thread().process] == &process) cut.write(writer, seen);
    }
    reader::InlinedTable inlined = process.inlined;
    inlined.keep(seen);
    writer.add_inlined(process.index, inlined);
    for (const reader::Function& function : process.functions) {
      if (seen[function.id]) files.insert(function.file);
    }
    for (const auto& call : process.inlined.all()) {
      if (call.function < seen.size() && seen[call.function]) files.insert(process.inlined.text(call.file));
    }
  }
  if (!trace.states().empty()) {
    const std::uint64_t begin = std::max(range.begin, trace.states().source().begin_ticks);
    writer.add_states(reader::excerpt_states(trace.states().log(), begin, range.end));
  }
  writer.add_usage(reader::excerpt_usage(trace.usage(), range.begin, range.end));
  writer.add_samples(reader::excerpt_samples(trace.samples(), range.begin, range.end));
  for (const reader::SourceFile& source : trace.sources()) {
    if (files.contains(source.path)) writer.add_source(source.path, source.text);
  }
  return trace.unchanged();
}

Result<std::vector<std::byte>> cut_trace(const Scope& scope) {
  std::uint64_t events = 0;
  for (const Scope::Part& part : scope.parts)
    events += 2 * (part.rows.outer.size() + (part.rows.last - part.rows.first));
  if (events > kMaxCutEvents) {
    return Error{"the range has about " + std::to_string(events / 2) + " calls, and a cut may have " +
                 std::to_string(kMaxCutEvents / 2) + ": choose a shorter one, or copy " + scope.index->trace().name()};
  }
  std::vector<std::byte> bytes;
  auto writer = writing::TraceWriter::to_memory(bytes);
  if (Status written = write_cut(scope, writer); !written) return written.error();
  if (Status finished = writer.finish(); !finished) return finished.error();
  return bytes;
}

}  // namespace karst::engine
