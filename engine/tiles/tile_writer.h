// SPDX-License-Identifier: MIT
// Slices on their way into an answer of api/tiles: what a kind of track (engine/tiles/tracks.h) draws into.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/index/index.h"
#include "engine/index/lanes.h"
#include "engine/protocol.h"

namespace karst::engine {

/// Slices an answer may have.
inline constexpr std::size_t kMaxSlices = std::size_t{4} << 20U;

/// Lane by lane: slices are added in order of begin, then end_lane() says whose they were. From one thread.
class TileWriter {
 public:
  TileWriter(const TraceIndex& index, const Picture& picture) : index_(index), picture_(picture) {}

  const Picture& picture() const { return picture_; }
  /// What Lanes::draw made of `calls`. `function` and `row` are what the page is told it is.
  void add(const CallColumns& calls, const Slice& slice, std::uint32_t function, std::uint32_t row);
  /// A slice that stands for nothing but itself. In ticks.
  void add(std::uint64_t begin, std::uint64_t end, std::uint32_t function, std::uint32_t row);
  /// What was added since the last lane is lane `depth` of this track; nothing if nothing was.
  void end_lane(std::uint32_t track, std::uint32_t depth);
  /// More slices than an answer may have: what is added from here on is of no use.
  bool full() const { return begin_.size() > kMaxSlices; }

  /// The answer; `begin` and `end` are the range that was asked for, ns.
  std::string take(double begin, double end) const;

 private:
  const TraceIndex& index_;
  const Picture picture_;
  std::vector<TileRow> rows_;
  std::size_t lane_ = 0;  // first slice of the lane that is being drawn
  std::vector<double> begin_, duration_;
  std::vector<std::uint32_t> function_, row_, count_;
  std::vector<std::uint8_t> flags_, density_;
};

/// Appends values as a column: padded with zeros to a multiple of 8 bytes.
template <typename T>
void append_column(std::string& out, const T* values, std::size_t count) {
  if (count != 0) out.append(reinterpret_cast<const char*>(values), count * sizeof(T));
  out.append((8 - out.size() % 8) % 8, '\0');
}

/// Of a share between 0 and 1; only nothing is 0.
std::uint8_t eighth_bits(double share);

}  // namespace karst::engine
