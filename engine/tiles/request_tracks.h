// SPDX-License-Identifier: MIT
// Requests as tracks: those of a process, each from its begin to its end, and below it the threads that worked on it
// (analysis/requests.h). As those of locks (engine/tiles/lock_tracks.h) they are made when the page asks for them
// (api/requests), since an index from a cache has no notes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "analysis/requests.h"
#include "engine/columns.h"
#include "engine/index/index.h"
#include "engine/index/strips.h"

namespace karst::engine {

inline constexpr std::size_t kMaxRequestTracks = 16;  ///< processes
inline constexpr std::uint16_t kMostAtOnce = 8;       ///< requests at a time, in a track
inline constexpr std::uint16_t kMostWorkLanes = 3;    ///< threads at a time, of a request

/// A lane of requests, below it `work_lanes` lanes of work on those, then the next lane of requests, and so on.
struct RequestTrack {
  std::uint32_t process = 0;
  std::size_t count = 0;
  /// A slice's source is a place in RequestTracks::requests. The function of work is a thread of the index; of a
  /// request it is 0. What has no begin, or no end, by the program's words is marked open there.
  Strip strip;
  std::uint16_t at_once = 1;  ///< lanes of requests
  std::uint16_t work_lanes = 1;
  std::uint64_t left_out = 0;  ///< requests, and pieces of work, that there was no lane for

  std::uint32_t lanes() const { return std::uint32_t{at_once} * (1U + work_lanes); }
};

/// Memory: some 200 bytes a request, and 80 a stretch of work.
struct RequestTracks {
  std::vector<analysis::Request> requests;  ///< the longest first
  std::vector<RequestTrack> tracks;         ///< those of kMaxRequestTracks processes

  /// Null: `work` was stopped.
  static std::shared_ptr<const RequestTracks> make(const TraceIndex& index, Work* work);
};

}  // namespace karst::engine
