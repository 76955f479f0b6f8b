// SPDX-License-Identifier: MIT
// Packed events back to events: the payload of a PACK chunk (format::PackedHeader, docs/trace-format.md).
#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "format/event.h"
#include "format/trace.h"

namespace karst::reader {

/// Why a payload cannot be one: its sizes do not fit together. Empty: they do, though its streams may still be damaged.
std::string_view refusal_of_packed(const format::PackedHeader& header, std::size_t payload_size);

/// Keeps its memory from one payload to the next. One thread at a time.
class Unpacker {
 public:
  Unpacker();
  Unpacker(const Unpacker&) = delete;
  Unpacker& operator=(const Unpacker&) = delete;
  ~Unpacker();

  /// The events of a payload, which others may change meanwhile; good until the next call. False: it is damaged.
  bool unpack(std::span<const std::byte> payload);
  std::span<const format::Event> events() const { return {events_.get(), count_}; }

 private:
  struct Decompressor;
  bool load_streams(const format::PackedHeader& header, std::size_t at);
  bool decode(const format::PackedHeader& header);

  std::unique_ptr<Decompressor> decompressor_;
  std::vector<std::byte> payload_;
  std::vector<unsigned char> streams_[format::kPackedStreams];
  std::vector<std::uint32_t> stack_;
  std::unique_ptr<format::Event[]> events_;
  std::size_t capacity_ = 0;
  std::size_t count_ = 0;
};

}  // namespace karst::reader
