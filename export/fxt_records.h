// SPDX-License-Identifier: MIT
// Records of the Fuchsia trace format, as "Fuchsia trace format" (fuchsia.dev, reference/tracing/trace-format) has
// them: words of 64 bits, the first of which says what the record is and how many words it has.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/output.h"

namespace karst::exporting::fxt {

enum class RecordType : std::uint64_t {
  kMetadata = 0,
  kInitialization = 1,
  kString = 2,
  kThread = 3,
  kEvent = 4,
  kKernelObject = 7
};
enum class Metadata : std::uint64_t { kProviderInfo = 1, kProviderSection = 2 };
enum class Event : std::uint64_t { kInstant = 0, kCounter = 1, kComplete = 4, kAsyncBegin = 5, kAsyncEnd = 7 };
enum class Argument : std::uint64_t { kInt64 = 3, kDouble = 5, kString = 6, kKoid = 8 };
enum class Object : std::uint64_t { kProcess = 1, kThread = 2 };

inline constexpr std::uint64_t kMagic = 0x0016547846040010;
inline constexpr std::uint64_t kMostStrings = 0x7fff, kMostThreads = 0xff, kInline = 0x8000;
/// Bytes of texts, and how many arguments, so that a record with the most of all stays below its 4095 words.
inline constexpr std::size_t kMostName = 8000, kMostOfArgument = 800, kMostArguments = 15;

/// A record in its making: words behind a head that gets their number.
class Record {
 public:
  explicit Record(RecordType type) : words_{static_cast<std::uint64_t>(type)} {}

  /// Bits of the head from `first` on.
  Record& head(unsigned first, std::uint64_t value) {
    words_.front() |= value << first;
    return *this;
  }
  Record& word(std::uint64_t value) {
    words_.push_back(value);
    return *this;
  }
  /// Bytes, filled up with zeros to whole words.
  Record& bytes(std::string_view text) {
    for (std::size_t at = 0; at < text.size(); at += 8) {
      std::uint64_t word = 0;
      for (std::size_t i = 0; i < std::min<std::size_t>(8, text.size() - at); ++i)
        word |= std::uint64_t{static_cast<unsigned char>(text[at + i])} << (8 * i);
      words_.push_back(word);
    }
    return *this;
  }
  std::size_t size() const { return words_.size(); }

  void write(Output& output) {
    head(4, words_.size());
    output.append({reinterpret_cast<const char*>(words_.data()), words_.size() * sizeof(std::uint64_t)});
  }

 private:
  std::vector<std::uint64_t> words_;
};

/// An argument of an event: words of its own, the first of which has their number.
inline std::uint64_t argument_head(Argument type, std::uint64_t words, std::uint64_t name, std::uint64_t value = 0) {
  return static_cast<std::uint64_t>(type) | words << 4U | name << 16U | value << 32U;
}

}  // namespace karst::exporting::fxt
