// SPDX-License-Identifier: MIT
// A note's numbers put together in registers: bytes that are written in parts and read as words make the processor
// wait.
#pragma once
#include <cstdint>

#include "format/note.h"

namespace karst::runtime {

/// What record_short_note() takes: numbers, each with how many bytes it has in front.
class ShortNote {
 public:
  /// False, and nothing done: there is no room.
  __attribute__((always_inline)) bool add(std::uint64_t number) {
    const std::uint32_t bytes = format::note_bytes_of(number);
    if (size_ + bytes >= kMostBytes || bytes == sizeof number) return false;
    bytes_ |= static_cast<unsigned __int128>(number << 8 | bytes) << (8 * size_);
    size_ += 1 + bytes;
    return true;
  }
  __attribute__((always_inline)) bool end(unsigned char byte) {
    if (size_ == kMostBytes) return false;
    bytes_ |= static_cast<unsigned __int128>(byte) << (8 * size_++);
    return true;
  }

  unsigned __int128 bytes() const { return bytes_; }
  std::uint32_t size() const { return size_; }

 private:
  static constexpr std::uint32_t kMostBytes = sizeof(unsigned __int128);
  unsigned __int128 bytes_ = 0;
  std::uint32_t size_ = 0;
};

/// What record_note_words() takes (recording/thread.h).
class NoteWords {
 public:
  static constexpr std::uint32_t kMostBytes = 128;

  /// The lowest `bytes` bytes, 1 to 8, of a value whose others are 0. kMostBytes in all.
  void add(std::uint64_t value, std::uint32_t bytes) {
    const std::uint32_t size = 8 * bytes;
    bits_ |= value << used_;
    used_ += size;
    if (used_ < kBits) return;
    payloads_[count_++] = bits_ & kMask;
    used_ -= kBits;
    bits_ = used_ == 0 ? 0 : value >> (size - used_);
    if (used_ < kBits) return;
    payloads_[count_++] = bits_ & kMask;
    used_ -= kBits;
    bits_ >>= kBits;
  }
  /// Nothing is added then.
  void end() {
    if (used_ != 0) payloads_[count_++] = bits_;
  }

  const std::uint64_t* payloads() const { return payloads_; }
  std::uint32_t count() const { return count_; }

 private:
  static constexpr std::uint32_t kBits = 8 * format::kNoteBytesInWord;
  static constexpr std::uint64_t kMask = (std::uint64_t{1} << kBits) - 1;
  std::uint64_t payloads_[format::note_words(kMostBytes)];
  std::uint32_t count_ = 0;
  std::uint32_t used_ = 0;  // of bits_; less than kBits
  std::uint64_t bits_ = 0;
};

}  // namespace karst::runtime
