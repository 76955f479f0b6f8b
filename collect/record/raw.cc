// SPDX-License-Identifier: MIT
#include "collect/record/raw.h"

#include <string>
#include <utility>

#include "format/note.h"
#include "reader/chunks.h"
#include "reader/file_bytes.h"
#include "reader/problems.h"
#include "reader/trace.h"
#include "symbols/missing_names.h"
#include "symbols/sources.h"
#include "write/trace_writer.h"

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
  reader::EventReader read = trace.event_reader();
  for (const reader::Process& process : trace.processes()) {
    std::vector<bool> seen(process.functions.size());
    for (const reader::Thread& thread : process.threads)
      for (const reader::StoredBlock& block : trace.blocks(thread))
        for (const format::Event e : read(block).events)
          if (const std::uint32_t id = format::named_function(e); id < seen.size()) seen[id] = true;
    reader::Process part;
    part.index = process.index;
    part.modules = process.modules;
    for (const reader::Function& function : process.functions)
      if (function.id != 0 && !function.made && seen[function.id]) part.functions.push_back(function);
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
  // What it names is read with the rights of who owns it.
  const auto as = options.resolve.as ? options.resolve.as : sandbox::Credentials::of_file(raw);
  if (!resolved) {
    symbols::MissingNames missing;
    trace->complete_processes([&](reader::Process& process) {
      symbols::ResolveResult result = symbols::resolve(process, options.resolve.with(as));
      summary.named += result.named;
      summary.unnamed += result.unnamed;
      missing.add(std::move(result.problems));
    });
    for (reader::Problem& problem : missing.folded()) summary.problems.push_back(std::move(problem));
  }
  auto writer = writing::TraceWriter::create(output);
  if (!writer) return writer.error();
  for (const reader::Chunk& chunk : list->chunks) {
    if ((!resolved && is_made(chunk.type)) || options.strip.drops(chunk.type)) continue;
    auto payload = reader::decode(chunk);
    if (!payload || chunk.truncated) continue;
    if (options.strip.empty()) {
      writer->add_chunk(chunk.type, payload->bytes);
    } else if (const auto left = options.strip.apply(chunk.type, payload->bytes)) {
      writer->add_chunk(chunk.type, *left);
    } else {
      summary.problems.push_back({"a part is left out: " + left.error().message, 1});
    }
  }
  summary.events = trace->event_count();
  writer->count_events(summary.events);
  if (resolved) {
    writer->mark_resolved();
  } else {
    std::vector<reader::Process> called = called_part(*trace);
    if (options.source && !options.strip.takes(Strip::kSource)) {
      const symbols::Sources sources = symbols::collect_sources(called, {}, as);
      for (const reader::SourceFile& file : sources.files)
        writer->add_source(options.strip.takes(Strip::kPaths) ? file.path.substr(file.path.rfind('/') + 1) : file.path,
                           file.text);
      summary.problems.insert(summary.problems.end(), sources.problems.begin(), sources.problems.end());
    }
    for (reader::Process process : trace->processes()) {
      std::erase_if(process.functions, [](const reader::Function& f) { return f.made; });
      options.strip.apply(process);
      writer->add_symbols(process.index, process.functions);
    }
    for (reader::Process& process : called) {
      options.strip.apply(process);
      writer->add_inlined(process.index, process.inlined);
    }
  }
  if (const Status same = bytes->unchanged(); !same) return same.error();
  const Descriptor written = writer->duplicate();
  if (const Status done = writer->finish(); !done) return done.error();
  if (options.on_written) options.on_written(written);
  return summary;
}

}  // namespace karst::collect
