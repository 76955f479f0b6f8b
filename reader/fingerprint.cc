// SPDX-License-Identifier: MIT
#include "reader/fingerprint.h"

#include <span>

#include "format/checksum.h"
#include "format/trace.h"
#include "reader/chunks.h"
#include "reader/file_bytes.h"

namespace karst::reader {
namespace {

// FNV-1a (Fowler, Noll, Vo), 128 bits.
class Hash {
 public:
  void add(std::span<const std::byte> bytes) {
    for (const std::byte byte : bytes) state_ = (state_ ^ static_cast<unsigned char>(byte)) * kPrime;
  }
  Fingerprint value() const { return {static_cast<std::uint64_t>(state_ >> 64U), static_cast<std::uint64_t>(state_)}; }

 private:
  using Wide = unsigned __int128;
  static constexpr Wide kPrime = (Wide{1} << 88U) + 0x13b;
  Wide state_ = (Wide{0x6c62272e07bb0142ULL} << 64U) + 0x62b821756295c58dULL;
};

}  // namespace

std::optional<Fingerprint> fingerprint(const std::filesystem::path& trace) {
  using format::ChunkHeader;
  using format::FileHeader;
  const auto opened = FileBytes::open(trace);
  if (!opened || opened->bytes().size() < sizeof(FileHeader)) return std::nullopt;
  const std::span<const std::byte> file = opened->bytes();
  const auto header = read_at<FileHeader>(file, 0);
  if (std::memcmp(file.data(), format::kFileMagic, sizeof format::kFileMagic) != 0 ||
      format::crc32c(&header, offsetof(FileHeader, crc)) != header.crc || header.header_size < sizeof(FileHeader) ||
      header.header_size > file.size()) {
    return std::nullopt;
  }
  Hash hash;
  hash.add(file.first(sizeof(FileHeader)));
  for (std::uint64_t offset = header.header_size; file.size() - offset >= sizeof(ChunkHeader);) {
    const auto chunk = read_at<ChunkHeader>(file, offset);
    if (format::crc32c(&chunk, offsetof(ChunkHeader, header_crc)) != chunk.header_crc) return std::nullopt;
    hash.add(file.subspan(offset, sizeof(ChunkHeader)));
    const std::uint64_t left = file.size() - offset - sizeof(ChunkHeader);
    if (chunk.stored_size > left) return std::nullopt;
    const std::uint64_t padded = (chunk.stored_size + 7) / 8 * 8;
    if (static_cast<format::ChunkType>(chunk.type) == format::ChunkType::kEnd) {
      return padded >= left ? std::optional(hash.value()) : std::nullopt;
    }
    if (padded > left) return std::nullopt;
    offset += sizeof(ChunkHeader) + padded;
  }
  return std::nullopt;
}

}  // namespace karst::reader
