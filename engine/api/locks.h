// api/locks, api/lock: who had which lock, and who waited for it, for the page (engine/tiles/lock_tracks.h).
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/json.h"
#include "engine/api/calls.h"
#include "engine/columns.h"
#include "engine/index/index.h"
#include "engine/tiles/lock_tracks.h"

namespace karst::engine {

inline constexpr std::size_t kMaxWaiters = 50;  ///< of a holder, in an answer

/// Numbers in functions() of waits for locks that one thread has: those that occur.
std::vector<std::uint32_t> functions_that_wait(const TraceIndex& index);

/// Finds a trace's locks when it is first asked; the index has them then. Thread-safe. Memory: some 200 bytes a wait,
/// and as much a hold.
class Locks {
 public:
  /// Null: `work` was stopped.
  std::shared_ptr<const LockTracks> of(const TraceIndex& index, Work* work);

 private:
  std::mutex making_;
};

/// api/locks.
void write_locks(Json& json, const TraceIndex& index, const LockTracks& locks);
/// api/lock of a call. False, and nothing is written: it is no wait for a lock that has a track.
bool write_wait(Json& json, const TraceIndex& index, const LockTracks& locks, const CallPlace& call);
/// api/lock of a holder; both numbers must be there.
void write_holder(Json& json, const TraceIndex& index, const LockTracks& locks, std::size_t track, std::size_t holder);

}  // namespace karst::engine
