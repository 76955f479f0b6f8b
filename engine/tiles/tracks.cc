#include "engine/tiles/tracks.h"

namespace karst::engine {

TrackKinds track_kinds() { return all_track_kinds().first(4); }

TrackKinds all_track_kinds() {
  static const TrackKind* const kKinds[] = {&thread_tracks(), &state_tracks(),   &cpu_tracks(),  &sample_tracks(),
                                            &lock_tracks(),   &request_tracks(), &frame_tracks()};
  return kKinds;
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
