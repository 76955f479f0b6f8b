// SPDX-License-Identifier: MIT
#include "engine/tiles/tile_writer.h"

#include <algorithm>
#include <cmath>

namespace karst::engine {
namespace {

// The mark of an inherited call has its bit taken from it: that it is one shows in api/call.
std::uint8_t drawn_flags(std::uint8_t marks, bool summed) {
  return static_cast<std::uint8_t>((marks & ~kSliceSummed) | (summed ? kSliceSummed : 0));
}

}  // namespace

std::uint8_t eighth_bits(double share) {
  return static_cast<std::uint8_t>(std::clamp(std::ceil(share * 255), 0.0, 255.0));
}

void TileWriter::add(const CallColumns& calls, const Slice& slice, std::uint32_t function, std::uint32_t row) {
  const bool summed = slice.count > 1;
  begin_.push_back(index_.since_origin(calls.begin[slice.row]));
  duration_.push_back(index_.to_ns(static_cast<double>(calls.duration[slice.row])));
  function_.push_back(function);
  row_.push_back(row);
  count_.push_back(slice.count);
  flags_.push_back(drawn_flags(calls.marks[slice.row], summed));
  density_.push_back(summed ? eighth_bits(static_cast<double>(slice.sum) * picture_.scale()) : 255);
}

void TileWriter::add(std::uint64_t begin, std::uint64_t end, std::uint32_t function, std::uint32_t row) {
  begin_.push_back(index_.since_origin(begin));
  duration_.push_back(index_.to_ns(static_cast<double>(end - begin)));
  function_.push_back(function);
  row_.push_back(row);
  count_.push_back(1);
  flags_.push_back(0);
  density_.push_back(255);
}

void TileWriter::end_lane(std::uint32_t track, std::uint32_t depth) {
  const std::size_t count = begin_.size() - lane_;
  if (count != 0) rows_.push_back({track, depth, static_cast<std::uint32_t>(lane_), static_cast<std::uint32_t>(count)});
  lane_ = begin_.size();
}

std::string TileWriter::take(double begin, double end) const {
  const TileHeader header{kTilesMagic,
                          kProtocolVersion,
                          static_cast<std::uint32_t>(rows_.size()),
                          static_cast<std::uint32_t>(begin_.size()),
                          begin,
                          end};
  std::string out;
  append_column(out, &header, 1);
  append_column(out, rows_.data(), rows_.size());
  append_column(out, begin_.data(), begin_.size());
  append_column(out, duration_.data(), duration_.size());
  append_column(out, function_.data(), function_.size());
  append_column(out, row_.data(), row_.size());
  append_column(out, count_.data(), count_.size());
  append_column(out, flags_.data(), flags_.size());
  append_column(out, density_.data(), density_.size());
  return out;
}

}  // namespace karst::engine
