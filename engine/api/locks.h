// SPDX-License-Identifier: MIT
// api/lock: who had a lock, and who waited for it, for the page (engine/tiles/lock_tracks.h).
#pragma once
#include <cstddef>

#include "answers/relation.h"
#include "base/json.h"
#include "engine/api/calls.h"
#include "engine/index/index.h"
#include "engine/tiles/lock_tracks.h"

namespace karst::engine {

inline constexpr std::size_t kMaxWaiters = 50;  ///< of a holder, in an answer

/// api/lock: one row.
const answers::Relation& lock_answers();

/// Of a call. False, and nothing is written: it is no wait for a lock that has a track.
bool write_wait(Json& json, const TraceIndex& index, const LockTracks& locks, const CallPlace& call);
/// Of a holder; both numbers must be there.
void write_holder(Json& json, const TraceIndex& index, const LockTracks& locks, std::size_t track, std::size_t holder);

}  // namespace karst::engine
