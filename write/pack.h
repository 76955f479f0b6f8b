// SPDX-License-Identifier: MIT
// Events to packed events: the payload of a PACK chunk (format::PackedHeader, docs/trace-format.md). reader/unpack.h is
// the way back.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "format/event.h"
#include "format/trace.h"

namespace karst::writing {

/// Blocks of one thread that follow each other: what PackedHeader says of them, and their events.
struct Pack {
  std::uint32_t process = 0;
  std::uint32_t thread = 0;
  std::uint64_t sequence = 0;  ///< of the first block
  std::uint32_t blocks = 0;
  std::uint64_t ticks = 0;  ///< at the first block's start
  std::vector<format::Event> events{};

  /// Whether a block goes on with it: it is the next one, of the same part of the clock, and there is room.
  bool takes(std::uint64_t next, std::uint64_t ticks_of_next, std::size_t count) const;
};

/// Keeps its memory from one pack to the next. One thread at a time.
class Packer {
 public:
  Packer();
  Packer(const Packer&) = delete;
  Packer& operator=(const Packer&) = delete;
  ~Packer();

  /// The payload, good until the next call. An enter of function 0, which is none, becomes a hole.
  std::span<const std::byte> pack(const Pack& pack);

 private:
  struct Compressor;
  void choose_ids(std::span<const format::Event> events);
  void forget_ids();
  void write_streams(const Pack& pack, format::PackedHeader& header);
  void put_stream(std::span<const unsigned char> raw, std::uint32_t& stored_size, std::uint32_t& raw_size);

  std::unique_ptr<Compressor> compressor_;
  std::vector<std::uint32_t> counts_;    // enters by id
  std::vector<unsigned char> codes_of_;  // by id
  std::vector<std::uint32_t> ids_;       // that were entered
  std::vector<unsigned char> streams_[format::kPackedStreams];
  std::vector<std::uint32_t> stack_;
  std::vector<std::byte> payload_;
};

}  // namespace karst::writing
