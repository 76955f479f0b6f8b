// SPDX-License-Identifier: MIT
// How long frames took: what a program does again and again, by its own word (KARST_FRAME of karst/karst.h).
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "analysis/frames.h"
#include "answers/relation.h"
#include "columns/selection.h"

namespace karst::answers {

/// Frames of one name in one process.
struct FrameSetRow {
  struct Frame {
    std::uint64_t number, begin_ns, ns;
  };
  std::string_view name;
  std::uint32_t process;
  std::vector<Frame> frames;      ///< in order of time
  std::vector<std::size_t> slow;  ///< places of the slowest ones, at least one
  std::uint64_t sum_ns = 0;
  std::uint64_t over = 0;         ///< longer than the target
  std::vector<std::uint64_t> ns;  ///< how long each took

  std::uint64_t mean() const { return sum_ns / frames.size(); }
};

/// One of them.
struct FrameRow {
  const FrameSetRow& in;
  const FrameSetRow::Frame& of;
};

/// Those in `range`, which may be all, and that are slower than `target_ns`. The first frame of a name is not among
/// them unless somebody marked where it begins. `frames` must outlive it.
FrameSetRow frame_set(const reader::Trace& trace, const analysis::Frames& frames, const analysis::Frames::Set& of,
                      const std::optional<columns::TickRange>& range, std::uint64_t target_ns);

const Relation& frame_sets();
/// The slowest of a set.
const Relation& slowest_frames();
/// All of all sets.
const Relation& frames();

}  // namespace karst::answers
