// SPDX-License-Identifier: MIT
// A thread's calls by depth, with a level-of-detail pyramid over each depth, so that a picture of any range takes time
// by its width and not by the number of calls in it.
//
//   lane      the calls of one depth in order of begin; they do not overlap
//   slice     what is drawn: a call at least a pixel long, or all shorter ones that begin in one pixel
//   node      16 calls of a lane, or 16 nodes of the level below: when the first begins, the longest, the sum
//
// docs/viewer-protocol.md (api/tiles) says exactly what a slice is; a test compares it with a naive count. A pyramid
// takes 2.1 bytes a call, the order by depth 4.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/columns.h"
#include "reader/column.h"

namespace karst::engine {

/// A picture: what part of the time it shows and how many pixels wide it is. Ticks are absolute; a pixel can be shorter
/// than one.
struct Picture {
  double begin = 0;          ///< ticks since `origin`
  double end = 0;            ///< the same; greater than begin
  std::uint64_t origin = 0;  ///< ticks
  std::uint32_t width = 1;   ///< pixels, at least 1

  double scale() const { return width / (end - begin); }
  /// The first whole tick in the picture, and the first behind it.
  std::uint64_t first_tick() const;
  std::uint64_t end_tick() const;
  /// Pixel in which `ticks` falls, or the nearest: an index that somebody made up may have times out of order. 0 where
  /// the picture is so short that there is no such number.
  std::uint32_t pixel(std::uint64_t ticks) const {
    const double at = (static_cast<double>(ticks - origin) - begin) * scale();
    return at > 0 ? static_cast<std::uint32_t>(std::min(at, static_cast<double>(width))) : 0;
  }
  /// Whether a call of this duration is a slice of its own.
  bool wide(std::uint64_t duration) const { return static_cast<double>(duration) * scale() >= 1; }
};

struct Slice {
  std::uint32_t row = 0;    ///< the call, or the longest of the summed ones (the earliest of equals)
  std::uint32_t count = 1;  ///< calls in it
  std::uint64_t sum = 0;    ///< ticks of all of them
};

/// 32 bytes, so that two share a cache line.
struct LaneNode {
  std::uint64_t begin = 0;    ///< of its first call
  std::uint64_t longest = 0;  ///< duration of the longest call
  std::uint64_t sum = 0;      ///< of durations
  std::uint32_t row = 0;      ///< of the longest call, the earliest of equals
  std::uint32_t reserved = 0;
};
static_assert(sizeof(LaneNode) == 32);

/// Copies look at the same rows and nodes.
class Lanes {
 public:
  static constexpr std::uint32_t kFanOutBits = 4;

  /// Orders `calls` by depth and builds the pyramids. Calls deeper than the depth column can tell (65535) are left out,
  /// and counted.
  void build(const CallColumns& calls);
  /// The same for some rows only, in rising order.
  void build(const CallColumns& calls, std::span<const std::uint32_t> rows);

  /// Takes rows and nodes that build() made, for as long as they stay where they are: those of an index file. `counts`
  /// are the rows by depth. False: sizes do not agree.
  bool view(std::span<const std::uint32_t> rows, std::span<const LaneNode> nodes,
            const std::vector<std::uint64_t>& counts, std::uint64_t beyond_depth);
  std::span<const std::uint32_t> all_rows() const { return rows_; }
  std::span<const LaneNode> all_nodes() const { return nodes_; }

  std::uint32_t depths() const { return static_cast<std::uint32_t>(first_row_.size()) - 1; }
  /// Rows of one depth, in order of begin.
  std::span<const std::uint32_t> rows(std::uint32_t depth) const {
    return {rows_.data() + first_row_[depth], first_row_[depth + 1] - first_row_[depth]};
  }
  std::uint64_t beyond_depth() const { return beyond_depth_; }

  /// Appends the slices of one depth, in order of begin: at most 2 * width + 2. `calls` are those it was built from.
  void draw(const CallColumns& calls, std::uint32_t depth, const Picture& picture, std::vector<Slice>& out) const;

  /// Ticks between `begin` and `end` in which some call of depth 0 was running.
  std::uint64_t covered(const CallColumns& calls, std::uint64_t begin, std::uint64_t end) const;

 private:
  struct Level {
    std::size_t first = 0;  ///< into nodes_
    std::size_t count = 0;
  };
  template <typename Row>
  void build_rows(const CallColumns& calls, std::size_t count, Row row_at);
  std::uint64_t sum(const CallColumns& calls, std::uint32_t depth, std::size_t from, std::size_t to) const;

  std::size_t lay_out(const std::vector<std::uint64_t>& counts);

  struct Owned {
    reader::Column<std::uint32_t> rows;
    reader::Column<LaneNode> nodes;
  };
  std::shared_ptr<const Owned> owned_;        // null: rows and nodes are somebody else's
  std::span<const std::uint32_t> rows_;       // by depth
  std::vector<std::size_t> first_row_ = {0};  // by depth, and one more
  std::span<const LaneNode> nodes_;           // by depth, then level
  std::vector<Level> levels_;                 // by depth, then level from the finest
  std::vector<std::size_t> first_level_ = {0};
  std::uint64_t beyond_depth_ = 0;
};

}  // namespace karst::engine
