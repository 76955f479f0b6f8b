// SPDX-License-Identifier: MIT
#include "engine/index/lanes.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace karst::engine {
namespace {

constexpr std::size_t kFanOut = std::size_t{1} << Lanes::kFanOutBits;
constexpr std::uint32_t kDeepest = std::numeric_limits<std::uint16_t>::max();

std::size_t round_up(std::size_t n) { return (n + kFanOut - 1) / kFanOut; }

std::uint64_t to_tick(double ticks, std::uint64_t origin) {
  if (!(ticks > 0)) return origin;
  const double room = static_cast<double>(std::numeric_limits<std::uint64_t>::max() - origin);
  if (ticks >= room) return std::numeric_limits<std::uint64_t>::max();
  return origin + static_cast<std::uint64_t>(std::ceil(ticks));
}

// The depth column saturates: calls below its last value are not told apart, and would overlap.
bool too_deep(const CallColumns& calls, std::size_t row) {
  if (calls.depth[row] != kDeepest) return false;
  const std::uint32_t parent = calls.parent[row];
  return parent != reader::kNoParent && calls.depth[parent] == kDeepest;
}

}  // namespace

std::uint64_t Picture::first_tick() const { return to_tick(begin, origin); }
std::uint64_t Picture::end_tick() const { return to_tick(end, origin); }

void Lanes::build(const CallColumns& calls) {
  build_rows(calls, calls.size(), [](std::size_t i) { return static_cast<std::uint32_t>(i); });
}

void Lanes::build(const CallColumns& calls, std::span<const std::uint32_t> rows) {
  build_rows(calls, rows.size(), [&](std::size_t i) { return rows[i]; });
}

// Where each depth's rows and the levels over them lie; returns the number of nodes.
std::size_t Lanes::lay_out(const std::vector<std::uint64_t>& counts) {
  first_row_.assign(1, 0);
  first_level_.assign(1, 0);
  levels_.clear();
  std::size_t nodes = 0;
  for (const std::uint64_t size : counts) {
    first_row_.push_back(first_row_.back() + size);
    for (std::size_t n = size; n > 1;) {
      n = round_up(n);
      levels_.push_back({nodes, n});
      nodes += n;
    }
    first_level_.push_back(levels_.size());
  }
  return nodes;
}

bool Lanes::view(std::span<const std::uint32_t> rows, std::span<const LaneNode> nodes,
                 const std::vector<std::uint64_t>& counts, std::uint64_t beyond_depth) {
  for (const std::uint64_t count : counts) {
    if (count > rows.size()) return false;
  }
  const std::size_t wanted = lay_out(counts);
  if (wanted != nodes.size() || first_row_.back() != rows.size()) return false;
  owned_.reset();
  rows_ = rows;
  nodes_ = nodes;
  beyond_depth_ = beyond_depth;
  return true;
}

template <typename Row>
void Lanes::build_rows(const CallColumns& calls, std::size_t count, Row row_at) {
  std::vector<std::uint64_t> counts;
  beyond_depth_ = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t row = row_at(i);
    if (too_deep(calls, row)) {
      ++beyond_depth_;
      continue;
    }
    const std::size_t depth = calls.depth[row];
    if (depth >= counts.size()) counts.resize(depth + 1);
    ++counts[depth];
  }
  const std::size_t node_count = lay_out(counts);
  const auto owned = std::make_shared<Owned>();
  owned_ = owned;
  auto& own_rows = owned->rows;
  auto& own_nodes = owned->nodes;
  own_rows.reserve(first_row_.back());
  own_rows.set_size(first_row_.back());
  own_nodes.reserve(node_count);
  own_nodes.set_size(node_count);
  rows_ = {own_rows.data(), own_rows.size()};
  nodes_ = {own_nodes.data(), own_nodes.size()};

  // One pass in the order of the columns fills all rows and their finest nodes.
  struct Filling {
    std::uint32_t* row;
    LaneNode* node;
    std::size_t in_node;
  };
  LaneNode alone;  // of lanes with one row, which have none
  std::vector<Filling> lanes(counts.size());
  for (std::size_t depth = 0; depth < counts.size(); ++depth) {
    const bool nodes = first_level_[depth] != first_level_[depth + 1];
    lanes[depth] = {own_rows.data() + first_row_[depth],
                    nodes ? own_nodes.data() + levels_[first_level_[depth]].first : &alone, 0};
  }
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t row = row_at(i);
    if (too_deep(calls, row)) continue;
    Filling& lane = lanes[calls.depth[row]];
    *lane.row++ = row;
    const std::uint64_t duration = calls.duration[row];
    if (lane.in_node == 0) {
      *lane.node = {calls.begin[row], duration, duration, row, 0};
    } else {
      lane.node->sum += duration;
      if (duration > lane.node->longest) {
        lane.node->longest = duration;
        lane.node->row = row;
      }
    }
    if (++lane.in_node == kFanOut) {
      lane.in_node = 0;
      ++lane.node;
    }
  }
  for (std::size_t depth = 0; depth < counts.size(); ++depth) {
    for (std::size_t level = first_level_[depth] + 1; level < first_level_[depth + 1]; ++level) {
      const Level below = levels_[level - 1];
      for (std::size_t i = 0; i < below.count; ++i) {
        const LaneNode& child = nodes_[below.first + i];
        LaneNode& node = own_nodes[levels_[level].first + i / kFanOut];
        if (i % kFanOut == 0) {
          node = child;
          continue;
        }
        node.sum += child.sum;
        if (child.longest > node.longest) {
          node.longest = child.longest;
          node.row = child.row;
        }
      }
    }
  }
}

void Lanes::draw(const CallColumns& calls, std::uint32_t depth, const Picture& picture, std::vector<Slice>& out) const {
  const auto lane = rows(depth);
  const std::uint64_t first_tick = picture.first_tick();
  const std::uint64_t end_tick = picture.end_tick();
  const auto begins_before = [&](std::uint64_t tick) {
    return [&, tick](std::uint32_t row) { return calls.begin[row] < tick; };
  };
  const auto from = std::partition_point(lane.begin(), lane.end(), begins_before(first_tick));
  const auto to = std::partition_point(from, lane.end(), begins_before(end_tick));
  if (from != lane.begin()) {
    const std::uint32_t row = *(from - 1);
    if (calls.end(row) > first_tick && picture.wide(calls.duration[row])) out.push_back({row, 1, calls.duration[row]});
  }

  Slice pending{0, 0, 0};
  std::uint64_t longest = 0;
  std::uint32_t pixel = 0;
  const auto flush = [&] {
    if (pending.count != 0) out.push_back(pending);
    pending.count = 0;
  };
  const auto add = [&](std::uint32_t at, std::uint32_t row, std::uint64_t duration, std::uint64_t sum,
                       std::size_t count) {
    if (pending.count == 0 || pixel != at) {
      flush();
      pending = {row, static_cast<std::uint32_t>(count), sum};
      pixel = at;
      longest = duration;
      return;
    }
    pending.count += static_cast<std::uint32_t>(count);
    pending.sum += sum;
    if (duration > longest) {
      longest = duration;
      pending.row = row;
    }
  };

  // Goes up a level wherever a node begins, down when the node does not fit into a pixel.
  const std::size_t stop = static_cast<std::size_t>(to - lane.begin());
  const std::size_t levels = first_level_[depth + 1] - first_level_[depth];
  std::size_t level = 0;
  for (auto at = static_cast<std::size_t>(from - lane.begin()); at < stop;) {
    if (level == 0) {
      const std::uint32_t row = lane[at];
      const std::uint64_t duration = calls.duration[row];
      if (picture.wide(duration)) {
        flush();
        out.push_back({row, 1, duration});
      } else {
        add(picture.pixel(calls.begin[row]), row, duration, duration, 1);
      }
      ++at;
      if (at % kFanOut == 0 && levels != 0) level = 1;
      continue;
    }
    const Level& here = levels_[first_level_[depth] + level - 1];
    const std::size_t index = at >> (kFanOutBits * level);
    const LaneNode& node = nodes_[here.first + index];
    const std::size_t next = (index + 1) << (kFanOutBits * level);
    // The next node's begin bounds those of all calls in this one.
    if (next <= stop && index + 1 < here.count && !picture.wide(node.longest)) {
      const std::uint64_t bound = nodes_[here.first + index + 1].begin;
      const std::uint32_t in = picture.pixel(node.begin);
      if (bound < end_tick && picture.pixel(bound) == in) {
        add(in, node.row, node.longest, node.sum, next - at);
        at = next;
        if ((index + 1) % kFanOut == 0 && level < levels) ++level;
        continue;
      }
    }
    --level;
  }
  flush();
}

// Of the durations of the calls [from, to) of a lane.
std::uint64_t Lanes::sum(const CallColumns& calls, std::uint32_t depth, std::size_t from, std::size_t to) const {
  const auto lane = rows(depth);
  const std::size_t levels = first_level_[depth + 1] - first_level_[depth];
  std::uint64_t total = 0;
  std::size_t level = 0;
  while (from < to) {
    const std::size_t size = std::size_t{1} << (kFanOutBits * level);
    if (level < levels && from % (size * kFanOut) == 0 && from + size * kFanOut <= to) {
      ++level;
    } else if (from % size != 0 || from + size > to) {
      --level;
    } else {
      total += level == 0
                   ? calls.duration[lane[from]]
                   : nodes_[levels_[first_level_[depth] + level - 1].first + (from >> (kFanOutBits * level))].sum;
      from += size;
    }
  }
  return total;
}

std::uint64_t Lanes::covered(const CallColumns& calls, std::uint64_t begin, std::uint64_t end) const {
  if (depths() == 0 || end <= begin) return 0;
  const auto lane = rows(0);
  const auto from =
      std::partition_point(lane.begin(), lane.end(), [&](std::uint32_t row) { return calls.end(row) <= begin; });
  const auto to = std::partition_point(from, lane.end(), [&](std::uint32_t row) { return calls.begin[row] < end; });
  if (from == to) return 0;
  std::uint64_t total =
      sum(calls, 0, static_cast<std::size_t>(from - lane.begin()), static_cast<std::size_t>(to - lane.begin()));
  if (calls.begin[*from] < begin) total -= begin - calls.begin[*from];
  if (calls.end(*(to - 1)) > end) total -= calls.end(*(to - 1)) - end;
  return total;
}

}  // namespace karst::engine
