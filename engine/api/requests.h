// SPDX-License-Identifier: MIT
// api/requests: what all threads did for each request, as `karst requests` says it, and tracks of them
// (engine/tiles/request_tracks.h).
#pragma once
#include <cstddef>

#include "answers/relation.h"
#include "base/json.h"
#include "engine/index/index.h"
#include "engine/tiles/request_tracks.h"

namespace karst::engine {

inline constexpr std::size_t kMaxRequests = 10'000;  ///< in an answer

const answers::Relation& request_answers();

/// The `most` longest requests.
void write_requests(Json& json, const TraceIndex& index, const RequestTracks& requests, std::size_t most);

}  // namespace karst::engine
