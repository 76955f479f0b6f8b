// SPDX-License-Identifier: MIT
// From chunks to the model: fills processes, clock, sources and the list of blocks; makes what
// records leave out (stand-ins, fallback names); the later of two records of the same thing counts.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "reader/chunks.h"
#include "reader/event_stream.h"
#include "reader/model.h"
#include "reader/problems.h"
#include "reader/tables.h"
#include "reader/trace.h"

namespace karst::reader {

/// What Trace holds besides the file's bytes.
struct TraceModel {
  std::vector<Process> processes;  ///< by index in the file
  Clock clock;
  std::vector<SourceFile> sources;
  std::vector<UntracedProgram> untraced;
  std::vector<StoredBlock> blocks;  ///< by process, thread, sequence
  struct Range {
    std::size_t first = 0;
    std::size_t count = 0;
  };
  std::vector<std::vector<Range>> ranges;           ///< into `blocks`, by process and thread position
  std::vector<std::unique_ptr<std::byte[]>> owned;  ///< decompressed blocks
  std::vector<EventStream> streams;                 ///< of fibers and threads that worked on them
  std::uint64_t events = 0;
};

class ModelBuilder {
 public:
  ModelBuilder(std::uint64_t file_size, ProblemList& problems) : problems_(problems) {
    text_budget_ = (std::uint64_t{64} << 20) + file_size * format::kMaxExpansion;
  }

  TraceModel build(const ChunkList& list);

 private:
  static constexpr std::uint32_t kUnset = 0xffffffffU;  // marks a hole in a table indexed by the file's numbers
  struct PlacedBlock {
    std::uint32_t process;
    std::uint32_t thread;
    StoredBlock view;
  };

  template <typename Record>
  std::string text(const Table<Record>& table, format::StringRef ref);
  Process& process(std::uint32_t index);

  // model_records.cc
  void add_processes(const Chunk& chunk);
  void add_clock(const Chunk& chunk);
  void add_modules(const Chunk& chunk);
  void add_functions(const Chunk& chunk);
  void add_symbols(const Chunk& chunk);
  void add_threads(const Chunk& chunk);
  void add_blocks(const Chunk& chunk);
  void add_packed(const Chunk& chunk);
  void add_moments(const Chunk& chunk);
  void add_inlined(const Chunk& chunk);
  void add_switches(const Chunk& chunk);
  void add_modes(const Chunk& chunk);
  void add_costs(const Chunk& chunk);
  void add_sources(const Chunk& chunk);
  void add_untraced(const Chunk& chunk);

  // model_builder.cc
  void settle_modules(Process& process);
  void settle_functions(Process& process);
  void settle_switches(Process& process);
  void settle_tail_exits(Process& process);
  void settle_ids(Process& process, std::uint64_t events);
  void settle_threads(Process& process);
  void settle_blocks();
  void settle_fibers(Process& process, std::vector<TraceModel::Range>& ranges);

  TraceModel model_;
  ProblemList& problems_;
  std::map<std::uint32_t, Process> processes_;
  std::vector<PlacedBlock> blocks_;
  bool have_rate_ = false;
  std::uint32_t next_fiber_tid_ = 0;
  // Tables are indexed by ids from the file; what that may allocate follows the number of records.
  std::uint64_t function_budget_ = std::uint64_t{1} << 18;
  std::uint64_t module_budget_ = std::uint64_t{1} << 12;
  std::uint64_t text_budget_;
};

}  // namespace karst::reader
