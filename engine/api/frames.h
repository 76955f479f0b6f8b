// SPDX-License-Identifier: MIT
// api/frame: how long a program's frames took, and which were slow (engine/tiles/frame_tracks.h).
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>

#include "analysis/pictures.h"
#include "answers/relation.h"
#include "base/json.h"
#include "engine/index/index.h"
#include "engine/tiles/frame_tracks.h"

namespace karst::engine {

inline constexpr std::size_t kSlowestFrames = 10;  ///< in an answer

/// The place of a frame in its track; nothing: it has no such number.
std::optional<std::size_t> frame_numbered(const FrameTrack& track, std::uint64_t number);
/// api/frame, a row: what is known of all frames of a track, and of one of them (`at`, its place). `target_ns`: longer
/// ones are over it. `picture`: what is shown of that one.
void write_frame(Json& json, const TraceIndex& index, const FrameTrack& track, double target_ns,
                 std::optional<std::size_t> at, const std::optional<analysis::Picture>& picture = std::nullopt);
const answers::Relation& frame_answers();

}  // namespace karst::engine
