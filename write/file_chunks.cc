// SPDX-License-Identifier: MIT
#include "write/file_chunks.h"

#include <cstring>

#include "format/checksum.h"

namespace karst::writing {
namespace {

using format::ChunkType;

constexpr int kZstdLevel = 3;
constexpr std::size_t kWorthCompressing = 128;

}  // namespace

void TraceWriter::FileChunks::write_chunk(ChunkType type, format::Encoding encoding, std::span<const std::byte> stored,
                                          std::uint64_t raw_size) {
  format::ChunkHeader header{};
  header.type = static_cast<std::uint32_t>(type);
  header.encoding = static_cast<std::uint32_t>(encoding);
  header.stored_size = stored.size();
  header.raw_size = raw_size;
  header.payload_crc = format::crc32c(stored.data(), stored.size());
  header.header_crc = format::crc32c(&header, offsetof(format::ChunkHeader, header_crc));
  file.append(bytes_of(header));
  file.append(stored);
  static constexpr std::byte kZero[8] = {};
  file.append(std::span(kZero).first((8 - stored.size() % 8) % 8));
  ++chunks;
  if (file.grows()) ends.push_back({file.size(), chunks, events_in_chunks});
}

void TraceWriter::FileChunks::write_chunk(ChunkType type, std::span<const std::byte> payload, bool compress) {
  if (compress && context != nullptr && payload.size() >= kWorthCompressing) {
    compressed.resize(ZSTD_compressBound(payload.size()));
    const std::size_t n =
        ZSTD_compressCCtx(context, compressed.data(), compressed.size(), payload.data(), payload.size(), kZstdLevel);
    // Readers bound what a file may expand to (docs/trace-format.md, Limits), so stay well below.
    if (ZSTD_isError(n) == 0 && n < payload.size() && n >= payload.size() / format::kMaxExpansion) {
      write_chunk(type, format::Encoding::kZstd, std::span(compressed).first(n), payload.size());
      return;
    }
  }
  write_chunk(type, format::Encoding::kRaw, payload, payload.size());
}

void TraceWriter::FileChunks::write_end() {
  const format::EndRecord end{chunks, events};
  write_chunk(ChunkType::kEnd, bytes_of(end), false);
  --chunks;  // it does not count itself, nor does the one that takes its place
}

format::FileHeader TraceWriter::FileChunks::file_header(bool growing) const {
  format::FileHeader header{};
  std::memcpy(header.magic, format::kFileMagic, sizeof header.magic);
  header.major = format::kMajorVersion;
  header.minor = format::kMinorVersion;
  header.header_size = sizeof header;
  header.flags =
      (resolved ? std::uint64_t{format::kFileResolved} : 0) | (growing ? std::uint64_t{format::kFileGrowing} : 0);
  header.crc = format::crc32c(&header, offsetof(format::FileHeader, crc));
  return header;
}

void TraceWriter::FileChunks::flush_blocks() {
  if (blocks_header.count == 0) return;
  std::memcpy(blocks.data(), &blocks_header, sizeof blocks_header);
  events_in_chunks += events_in_blocks;
  events_in_blocks = 0;
  write_chunk(ChunkType::kBlocks, blocks, false);
  blocks.clear();
  blocks_header = {};
}

void TraceWriter::FileChunks::flush_sources() {
  if (source_records.empty()) return;
  const format::TableHeader header{0, sizeof(format::SourceRecord), static_cast<std::uint32_t>(source_records.size()),
                                   static_cast<std::uint32_t>(source_heap.size())};
  std::vector<std::byte> payload;
  put(payload, bytes_of(header));
  put(payload, std::as_bytes(std::span(source_records)));
  put(payload, std::as_bytes(std::span(source_heap)));
  write_chunk(ChunkType::kSource, payload, true);
  source_records.clear();
  source_heap.clear();
}

void TraceWriter::FileChunks::pack() {
  packs = std::make_unique<Packs>([this](const format::PackedHeader& header, std::span<const std::byte> payload) {
    flush_pending();
    const std::uint64_t offset = file.size() + sizeof(format::ChunkHeader);
    events_in_chunks += header.event_count;
    write_chunk(ChunkType::kPacked, payload, false);
    if (placed) placed(header, offset, static_cast<std::uint32_t>(payload.size()));
  });
}

}  // namespace karst::writing
