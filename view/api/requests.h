// api/requests: what all threads did for each request, as `karst requests` says it.
#pragma once
#include <cstddef>

#include "base/json.h"
#include "view/index/index.h"

namespace karst::view {

inline constexpr std::size_t kMaxRequests = 10'000;  ///< in an answer

/// The `most` longest requests, the longest first; nothing once `work` is stopped. Rebuilds the calls of threads that
/// tell of requests, one at a time: an index has no notes.
void write_requests(Json& json, const TraceIndex& index, std::size_t most, Work* work);

}  // namespace karst::view
