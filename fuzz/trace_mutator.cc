// For targets whose input is a .karst file. Checksums would stop nearly every mutation at the door, so the mutator sets
// them right again; most of the time, as the paths for damage want exercise too.
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "format/checksum.h"
#include "format/trace.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace {

using namespace karst;

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
