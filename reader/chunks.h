// SPDX-License-Identifier: MIT
// From bytes to checked chunks: the file header, chunk headers, checksums, decompression. Nothing
// here knows what a payload means.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "format/trace.h"
#include "reader/problems.h"

namespace karst::reader {

/// One chunk of a known type whose checksums fit, or the part of a BLKS chunk before the end of a truncated file.
struct Chunk {
  format::ChunkType type{};
  format::Encoding encoding{};
  std::uint64_t offset = 0;           ///< of its header in the file
  std::span<const std::byte> stored;  ///< payload as it lies in the file
  std::uint64_t raw_size = 0;
  bool truncated = false;  ///< the file ended inside it; its checksum could not be verified
};

struct ChunkList {
  std::uint16_t minor = 0;
  std::uint64_t flags = 0;
  bool header_damaged = false;  ///< the file header's checksum does not fit; its fields were not used
  std::vector<Chunk> chunks;    ///< in file order, without ENDT
  std::uint64_t seen = 0;       ///< chunks before ENDT with a sound header, unknown and damaged ones too
  bool ended = false;           ///< ENDT was found
  bool growing = false;         ///< chunks may be added behind the last one
  format::EndRecord end{};
};

/// Walks the file. Damage goes to `problems`; an Error means that it is no trace, or one of a later
/// major version, or that nothing in it can be used.
/// `known_sound`: the events' checksums were right before and the file is the same.
Result<ChunkList> scan_chunks(std::span<const std::byte> file, const std::string& name, ProblemList& problems,
                              bool known_sound = false);

/// A chunk's payload, decoded. Events that are not compressed stay in the file, which may change: read each once.
struct Payload {
  std::span<const std::byte> bytes;
  std::unique_ptr<std::byte[]> owned;  ///< holds `bytes`, or null: they lie in the file; aligned for any type
};

/// Decodes a payload; what it may allocate is bounded by the stored size (kMaxExpansion) and kMaxChunkSize.
Result<Payload> decode(const Chunk& chunk);

/// The four letters of a chunk type of this version.
std::string_view chunk_name(format::ChunkType type);

/// Reads a T at `offset`; requires that it lies within `bytes`.
template <typename T>
T read_at(std::span<const std::byte> bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

}  // namespace karst::reader
