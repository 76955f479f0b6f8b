// api/requests: what all threads did for each request, as `karst requests` says it, and tracks of them
// (engine/tiles/request_tracks.h).
#pragma once
#include <cstddef>
#include <memory>
#include <mutex>

#include "base/json.h"
#include "engine/columns.h"
#include "engine/index/index.h"
#include "engine/tiles/request_tracks.h"

namespace karst::engine {

inline constexpr std::size_t kMaxRequests = 10'000;  ///< in an answer

/// Finds a trace's requests when it is first asked; the index has them then. Thread-safe. Memory: some 200 bytes a
/// request, and 80 a stretch of work.
class Requests {
 public:
  /// Null: `work` was stopped.
  std::shared_ptr<const RequestTracks> of(const TraceIndex& index, Work* work);

 private:
  std::mutex making_;
};

/// The `most` longest requests.
void write_requests(Json& json, const TraceIndex& index, const RequestTracks& requests, std::size_t most);

}  // namespace karst::engine
