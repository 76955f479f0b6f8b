// Fuzzes the reader of .karst files: opening, and rebuilding the calls of every thread.
//
// Checksums would stop nearly every mutation at the door, so the mutator sets them right again
// (most of the time: the paths for damage want exercise too).
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>

#include "format/checksum.h"
#include "format/trace.h"
#include "reader/moments.h"
#include "reader/trace.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace {

using namespace karst;

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

// What rebuild_calls and the model promise to those who use them without looking twice.
void check_promises(const reader::Trace& trace, const reader::Process& process, const reader::Calls& calls) {
  const std::size_t rows = calls.size();
  require(calls.begin.size() == rows && calls.duration.size() == rows && calls.parent.size() == rows &&
              calls.depth.size() == rows && calls.marks.size() == rows,
          "columns are of one length");
  for (std::size_t i = 0; i < rows; ++i) {
    const bool root = calls.parent[i] == reader::kNoParent;
    require(root || calls.parent[i] < i, "a parent comes before its children");
    require(root ? calls.depth[i] == 0 : calls.depth[i] == 65535 || calls.depth[i] == calls.depth[calls.parent[i]] + 1,
            "depth is that of the parent and one");
    require(!trace.function(process, calls.function[i]).name.empty(), "every function has a name");
  }
}

void fix_checksums(std::uint8_t* data, std::size_t size) {
  if (size < sizeof(format::FileHeader)) return;
  format::FileHeader file;
  std::memcpy(&file, data, sizeof file);
  file.crc = format::crc32c(&file, offsetof(format::FileHeader, crc));
  std::memcpy(data, &file, sizeof file);
  std::size_t at = file.header_size % 8 == 0 && file.header_size >= sizeof file ? file.header_size : sizeof file;
  while (at < size && size - at >= sizeof(format::ChunkHeader)) {
    format::ChunkHeader chunk;
    std::memcpy(&chunk, data + at, sizeof chunk);
    const std::size_t rest = size - at - sizeof chunk;
    const std::size_t stored = chunk.stored_size < rest ? chunk.stored_size : rest;
    if (chunk.encoding == 0) chunk.raw_size = chunk.stored_size;
    chunk.payload_crc = format::crc32c(data + at + sizeof chunk, stored);
    chunk.header_crc = format::crc32c(&chunk, offsetof(format::ChunkHeader, header_crc));
    std::memcpy(data + at, &chunk, sizeof chunk);
    at += sizeof chunk + (stored + 7) / 8 * 8;
  }
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  const std::size_t fresh = LLVMFuzzerMutate(data, size, max_size);
  if (seed % 16 != 0) fix_checksums(data, fresh);
  return fresh;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  auto trace = reader::Trace::open_memory(bytes, "fuzz");
  if (!trace) {
    require(!trace.error().message.empty(), "an error says something");
    return 0;
  }
  require(trace->complete() || !trace->problems().empty(), "a cut file is reported");
  std::uint64_t events = 0;
  for (const auto& process : trace->processes()) {
    for (const auto& function : process.functions) {
      if (function.id == 0) continue;
      require(!function.name.empty() && function.module < process.modules.size(), "functions have name and module");
    }
    for (const auto& moment : process.moments) {
      require(moment.kept_from <= moment.begin_ticks && moment.begin_ticks <= moment.end_ticks &&
                  moment.end_ticks <= moment.kept_to,
              "a moment lies in what was kept of it");
      require(find_moment(*trace, moment.number).ok(), "what is listed is found");
    }
    for (const auto& thread : process.threads) {
      for (const auto& block : trace->blocks(thread)) events += block.events.size();
      check_promises(*trace, process, rebuild_calls(*trace, thread));
    }
  }
  require(events == trace->event_count(), "every event belongs to a thread");
  return 0;
}
