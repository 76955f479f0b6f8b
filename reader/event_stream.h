// SPDX-License-Identifier: MIT
// A thread's events written anew: parts of its blocks as they are, and words that the reader puts between them.
// Made whole first, looked at as blocks afterwards.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "format/event.h"
#include "reader/stored_block.h"

namespace karst::reader {

class EventStream {
 public:
  explicit EventStream(std::uint64_t sequence = 0) : sequence_(sequence) {}

  /// One event with its whole time.
  void put(std::uint64_t ticks, bool exit, std::uint32_t function);
  /// Nothing but a time: a jump that lacks its place.
  void put_time(std::uint64_t ticks);
  /// Leaves nothing but its time of an event that was put.
  void only_time(std::size_t at);
  /// Words `from` to `to` of a block. Each is read once.
  void copy(const BlockView& block, std::size_t from, std::size_t to);
  /// What follows begins a block; `missing` blocks lie before it.
  void cut(std::uint64_t missing = 0) {
    begins_ = true;
    sequence_ += missing;
  }

  std::size_t size() const { return words_.size(); }
  /// Blocks of the words from `from` to `to`, in which cut() was called at `from`. Good while the stream lives and
  /// nothing is added; moving it changes nothing.
  std::vector<StoredBlock> blocks(std::size_t from, std::size_t to) const;
  std::vector<StoredBlock> blocks() const { return blocks(0, words_.size()); }

 private:
  struct Cut {
    std::size_t first;
    std::uint64_t sequence;
    std::uint64_t ticks;
  };
  void begin(std::uint64_t ticks);

  std::vector<format::Event> words_;
  std::vector<Cut> cuts_;
  std::uint64_t sequence_;
  bool begins_ = true;
};

}  // namespace karst::reader
