#include "collect/raw.h"

#include <string>
#include <utility>

#include "collect/trace_writer.h"
#include "format/event.h"
#include "reader/chunks.h"
#include "reader/file_bytes.h"
#include "reader/problems.h"
#include "reader/trace.h"
#include "symbols/sources.h"

namespace karst::collect {
namespace {

using format::ChunkType;

/// What is made anew.
bool is_made(ChunkType type) {
  return type == ChunkType::kSymbols || type == ChunkType::kInlined || type == ChunkType::kSource;
}

/// Sources are kept of what was called, not of all that could have been.
std::vector<reader::Process> called_part(const reader::Trace& trace) {
  std::vector<reader::Process> processes;
  for (const reader::Process& process : trace.processes()) {
    std::vector<bool> seen(process.functions.size());
    for (const reader::Thread& thread : process.threads)
      for (const reader::BlockView& block : trace.blocks(thread))
        for (const format::Event e : block.events)
          if (const std::uint32_t id = format::event_function(e); id < seen.size()) seen[id] = true;
    reader::Process part;
    part.index = process.index;
    part.modules = process.modules;
    for (const reader::Function& function : process.functions)
      if (function.id != 0 && seen[function.id]) part.functions.push_back(function);
    part.inlined = process.inlined;
    part.inlined.keep(seen);
    processes.push_back(std::move(part));
  }
  return processes;
}

}  // namespace

Result<RawSummary> resolve_raw(const std::filesystem::path& raw, const std::filesystem::path& output,
                               const RawOptions& options) {
  auto bytes = reader::FileBytes::open(raw);
  if (!bytes) return bytes.error();
  reader::ProblemList damage;
  auto list = reader::scan_chunks(bytes->bytes(), raw.string(), damage);
  if (!list) return list.error();
  auto trace = reader::Trace::open_memory(bytes->bytes(), raw.string());
  if (!trace) return trace.error();
  RawSummary summary;
  summary.problems = trace->problems();
  const bool resolved = trace->resolved();
  if (!resolved) {
    trace->complete_processes([&](reader::Process& process) {
      symbols::ResolveResult result = symbols::resolve(process, options.resolve);
      summary.named += result.named;
      summary.unnamed += result.unnamed;
      for (reader::Problem& problem : result.problems) summary.problems.push_back(std::move(problem));
    });
  }
  auto writer = TraceWriter::create(output);
  if (!writer) return writer.error();
  for (const reader::Chunk& chunk : list->chunks) {
    if (!resolved && is_made(chunk.type)) continue;
    auto payload = reader::decode(chunk);
    if (payload && !chunk.cut) writer->add_chunk(chunk.type, payload->bytes);
  }
  summary.events = trace->event_count();
  writer->count_events(summary.events);
  if (resolved) {
    writer->mark_resolved();
  } else {
    for (const reader::Process& process : trace->processes()) writer->add_symbols(process.index, process.functions);
    const std::vector<reader::Process> called = called_part(*trace);
    for (const reader::Process& process : called) writer->add_inlined(process.index, process.inlined);
    if (options.source) {
      const symbols::Sources sources = symbols::collect_sources(called);
      for (const reader::SourceFile& file : sources.files) writer->add_source(file.path, file.text);
      summary.problems.insert(summary.problems.end(), sources.problems.begin(), sources.problems.end());
    }
  }
  if (const Status done = writer->finish(); !done) return done.error();
  return summary;
}

}  // namespace karst::collect
