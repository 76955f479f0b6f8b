// SPDX-License-Identifier: MIT
// What a process recorded, taken out of its arena before it is overwritten, for `karst run --all`. Packed events lie in
// a file without a name, in the directory of the trace; where they lie there stays in memory, some 60 bytes for 65,536
// events.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/descriptor.h"
#include "base/result.h"
#include "collect/arena/view.h"
#include "format/event.h"
#include "reader/unpack.h"
#include "write/packs.h"

namespace karst::collect {

/// Of all processes of a run. One thread at a time.
class SpoolFile {
 public:
  /// Error: the directory cannot be written to.
  static Result<std::shared_ptr<SpoolFile>> create(const std::filesystem::path& directory);

  /// Where it lies now. Nothing once a write has failed: the disk is full, say.
  bool append(std::span<const std::byte> bytes, std::uint64_t& offset);
  bool read(std::uint64_t offset, std::span<std::byte> bytes) const;
  /// Why nothing goes in any more; empty: it does.
  const std::string& failure() const { return failure_; }

 private:
  explicit SpoolFile(Descriptor file) : file_(std::move(file)) {}
  Descriptor file_;
  std::uint64_t size_ = 0;
  std::string failure_;
};

/// Of one process. One thread at a time.
class Spool {
 public:
  explicit Spool(std::shared_ptr<SpoolFile> file);

  /// Takes the blocks that are behind those it has, and that their threads have left. Returns how many of them.
  std::size_t drain(const ArenaView& arena);
  /// Whether so much was recorded since the last drain() that it is time for one.
  bool is_due(const ArenaView& arena) const;
  /// Behind the last drain(): all that was taken can be read.
  void finish() { packs_.flush(); }

  /// Behind finish(). `index` of each is its number here, `blocks` how many it is made of; in no order of time.
  const std::vector<ArenaBlock>& blocks() const { return blocks_; }
  /// Good until the next call; empty if the file cannot be read.
  std::span<const format::Event> read(std::size_t number);
  /// Whether a block of the arena is one that was taken.
  bool has(std::uint32_t thread, std::uint64_t sequence) const;
  /// Functions that occur, by id.
  const std::vector<bool>& seen() const { return seen_; }

 private:
  struct Place {
    std::uint64_t offset = 0;
    std::uint32_t size = 0;
  };
  void put(const format::PackedHeader& header, std::span<const std::byte> payload);

  std::shared_ptr<SpoolFile> file_;
  writing::Packs packs_;
  std::map<std::uint32_t, std::uint64_t> next_;     // by thread: the sequence behind what was taken
  std::map<std::uint32_t, std::uint64_t> missing_;  // by thread: what the last drain() did not find
  std::uint64_t handed_out_ = 0;                    // blocks of the arena at the last drain()
  std::vector<ArenaBlock> blocks_;
  std::vector<Place> places_;
  std::vector<bool> seen_;
  std::vector<format::Event> buffer_;
  reader::Unpacker unpacker_;
  std::size_t at_hand_ = ~std::size_t{0};
};

}  // namespace karst::collect
