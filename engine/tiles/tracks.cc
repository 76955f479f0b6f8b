// SPDX-License-Identifier: MIT
#include "engine/tiles/tracks.h"

#include <algorithm>

namespace karst::engine {

TrackKinds track_kinds() {
  const TrackKinds all = all_track_kinds();
  return {all.begin(), std::find_if(all.begin(), all.end(), [](const TrackKind* kind) { return kind->is_late(); })};
}

TrackKinds all_track_kinds() {
#define KARST_TRACK_KIND(name) &name(),
  static const TrackKind* const kKinds[] = {KARST_TRACK_KINDS(KARST_TRACK_KIND)};
#undef KARST_TRACK_KIND
  return kKinds;
}

std::uint32_t first_track(const TraceIndex& index, const TrackKind& kind) {
  std::uint32_t id = 0;
  for (const TrackKind* before : all_track_kinds()) {
    if (before == &kind) break;
    id += before->count(index);
  }
  return id;
}

std::vector<Track> tracks_of(const TraceIndex& index, TrackKinds kinds) {
  std::vector<Track> tracks;
  std::uint32_t first = 0;
  for (const TrackKind* kind : kinds) {
    const std::uint32_t count = kind->count(index);
    for (std::uint32_t number = 0; number < count; ++number) {
      if (auto facts = kind->facts(index, number)) tracks.push_back({first + number, kind, number, std::move(*facts)});
    }
    first += count;
  }
  return tracks;
}

std::optional<Track> find_track(const TraceIndex& index, std::uint64_t id, TrackKinds kinds) {
  std::uint64_t first = 0;
  for (const TrackKind* kind : kinds) {
    const std::uint32_t count = kind->count(index);
    if (id - first < count) {
      const auto number = static_cast<std::uint32_t>(id - first);
      auto facts = kind->facts(index, number);
      if (!facts) return std::nullopt;
      return Track{static_cast<std::uint32_t>(id), kind, number, std::move(*facts)};
    }
    first += count;
  }
  return std::nullopt;
}

}  // namespace karst::engine
