// SPDX-License-Identifier: MIT
// Frames as tracks: a bar of what a program does again and again (analysis/frames.h), a track for each name in each
// process. As those of locks (engine/tiles/lock_tracks.h) they are made when the page asks for them (api/frames), since
// an index from a cache has no notes. Their ids follow those of locks.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "analysis/frames.h"
#include "engine/columns.h"
#include "engine/index/index.h"
#include "engine/index/strips.h"

namespace karst::engine {

inline constexpr std::size_t kMaxFrameTracks = 200;  ///< names with the most marks

struct FrameTrack {
  std::uint32_t process = 0;
  std::string name;
  std::uint32_t function = 0;  ///< an id that has this name
  /// One lane. A slice's source is the frame's number; one whose begin nobody marked has kCallOpenBegin.
  Strip strip;

  /// Whether both ends of a frame have a mark.
  bool is_marked(std::size_t at) const { return (strip.calls.marks[at] & reader::kCallOpenBegin) == 0; }
};

struct FrameTracks {
  std::vector<FrameTrack> tracks;  ///< the main frames first
  std::size_t more = 0;            ///< names without a track

  /// Null: `work` was stopped.
  static std::shared_ptr<const FrameTracks> make(const TraceIndex& index, Work* work);
};

}  // namespace karst::engine
