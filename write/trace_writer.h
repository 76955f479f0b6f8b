// SPDX-License-Identifier: MIT
// Writes a .karst file (format/trace.h, docs/trace-format.md) from plain values. The other writer is
// runtime/snapshots/raw_trace.cc, for snapshots that a traced process makes of itself.
//
// The file has no name until it is a whole trace (write/output_file.h), so nobody ever sees half a one, and a place
// that cannot be written is found in create(), before the traced program runs. A trace may get its name in two steps:
// keep_events() when all events are in it, as a raw trace, which `karst resolve` can complete; and finish() when names
// and sources are, which are held in memory until then. Blocks stream through; of them one chunk stays in memory.
//
// Failures of the disk are sticky: adding goes on without writing, only to count how many bytes
// the whole trace needs, and keep_events() or finish() returns the Error.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/descriptor.h"
#include "base/result.h"
#include "format/event.h"
#include "format/trace.h"
#include "reader/model.h"
#include "reader/samples.h"
#include "reader/states.h"
#include "reader/usage.h"

namespace karst::writing {

/// Owns the file. Destruction before keep_events() or finish() leaves nothing; between the two, the raw trace. Use from
/// one thread at a time. Chunks are written in the order of the calls; readers accept any order, the
/// usual one is that of format/trace.h. `process` is the process's index in the file
/// (reader::Process::index); what belongs to a process may be added in several calls.
class TraceWriter {
 public:
  /// Creates the file (mode 0600: a trace holds command lines and source text). An existing regular file at `path` is
  /// replaced when this one gets its name; a symbolic link is followed if nobody else may have put it there
  /// (base/output_place.h).
  /// Error: the directory is missing or not writable, or `path` is a directory, a device or the like.
  static Result<TraceWriter> create(const std::filesystem::path& path);
  /// The same with the name STEM-N.karst, N being the first number that is free when the file gets it.
  static Result<TraceWriter> create_numbered(const std::string& stem);
  /// Writes to the end of `out` (its former content is dropped), which must outlive the writer.
  static TraceWriter to_memory(std::vector<std::byte>& out);

  TraceWriter(TraceWriter&&) noexcept;
  TraceWriter& operator=(TraceWriter&&) noexcept;
  ~TraceWriter();

  /// PROC. The processes' own fields only: modules, functions and threads are added apart.
  void add_processes(std::span<const reader::Process> processes);
  /// CLCK.
  void add_clock(const Clock& clock);
  /// MODL.
  void add_modules(std::uint32_t process, std::span<const reader::Module> modules);
  /// FUNC: id, module, address, flags. Elements with id 0 are skipped.
  void add_functions(std::uint32_t process, std::span<const reader::Function> functions);
  /// SYMB: id, line, name, link name, file. Elements with id 0 are skipped. Marks the file resolved.
  void add_symbols(std::uint32_t process, std::span<const reader::Function> functions);
  /// THRD.
  void add_threads(std::uint32_t process, std::span<const reader::Thread> threads);
  /// MODE. Writes nothing for a process that was recorded in the usual way.
  void add_mode(const reader::Process& process);
  /// COST. Writes nothing where the costs are not known.
  void add_cost(const reader::Process& process);
  /// SWCH, in the order of their making.
  void add_switches(std::uint32_t process, std::span<const reader::Switch> switches);
  /// From here on events are packed (PACK), which takes a tenth of the space, rather than put down as they are (BLKS).
  /// `placed`, if there is one, is told where each payload lies in the file; it can be read there after flush().
  using Placed = std::function<void(const format::PackedHeader& header, std::uint64_t offset, std::uint32_t size)>;
  void pack_events(Placed placed = {});
  /// Part of a BLKS or PACK chunk: one block, or, where events are packed, `blocks` that follow each other. Those of a
  /// thread are to come in rising `sequence`.
  void add_block(std::uint32_t process, std::uint32_t thread, std::uint64_t sequence, std::uint64_t ticks,
                 std::span<const format::Event> events, std::uint32_t blocks = 1);
  /// INLN.
  void add_inlined(std::uint32_t process, const reader::InlinedTable& inlined);
  /// A chunk of another trace as it is; the caller counts its events and says whether it has names.
  void add_chunk(format::ChunkType type, std::span<const std::byte> payload);
  void count_events(std::uint64_t events);
  void mark_resolved();
  /// UNTR.
  void add_untraced(std::span<const reader::UntracedProgram> programs);
  /// MOMT.
  void add_moments(std::uint32_t process, std::span<const reader::Moment> moments);
  /// STSR, TASK and STEV: all of a trace's states. Call once.
  void add_states(const reader::StateLog& log);
  /// SMSR, SMFN, SMST, SMPL and SMWT: all of a trace's samples. Writes nothing where nothing was sampled. Call once.
  void add_samples(const reader::SampleLog& log);
  /// SERI and SRPT: all of what was used. Writes nothing where nothing was read. Call once.
  void add_usage(const reader::UsageLog& log);
  /// Part of a SRCF chunk. False when the text is too long for any chunk and was left out.
  bool add_source(std::string_view path, std::string_view text);

  /// Bytes the file takes (or would take, after a failure) with what was added so far, without its end chunk.
  std::uint64_t size() const;
  /// True after the first failed write. finish() tells why.
  bool failed() const;

  /// The file gets its name now, marked as one that grows (format::kFileGrowing), and has what was added at each
  /// flush(). Of tables, what is added later counts. Whatever ends this process, what was written then stays. Error: it
  /// cannot be written, or named.
  Status grow();
  bool grows() const;
  /// What was added is in the file, packs that are not full as they are.
  void flush();
  /// Of a file that grows, if a write has failed: it ends with the last chunk that is whole, what was not written is
  /// forgotten, and one may try again. Returns why; empty: none has.
  std::string cut_back();

  /// All events are added, no names are: gives the file its final name as a raw trace, safe on the disk. Names, inlined
  /// calls and sources may follow. Error as that of finish().
  Status keep_events();
  /// Writes the end chunk and gives the file its final name. Error: a write failed (the message
  /// says how many bytes the trace needs); nothing is left behind and an older file of that name
  /// is unchanged; after keep_events() the raw trace stays. Call once; nothing may be added afterwards.
  Status finish();
  /// Another descriptor of the file, by which it is the same whatever has its name by then; none if there is none to be
  /// had.
  Descriptor duplicate() const;
  /// The file's name; of a numbered one, when it has got it.
  const std::filesystem::path& path() const;

 private:
  struct FileChunks;
  explicit TraceWriter(std::unique_ptr<FileChunks> chunks);
  std::unique_ptr<FileChunks> chunks_;
};

}  // namespace karst::writing
