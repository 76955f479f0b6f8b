// Tracks: what has lanes of its own in time. Threads, the states of a thread and CPUs are three kinds. Another kind is
// a file like engine/tiles/track_cpus.cc, its line in engine/tiles/tracks.cc, and a renderer in the page
// (page/src/timeline/).
//
// A track's id is the number of its kind's first track plus its number in the kind. Both are known when a trace is
// opened, so an id means the same while the trace is being read and after. Tracks that are made later have the last
// ids.
#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/index/index.h"
#include "engine/tiles/tile_writer.h"

namespace karst::engine {

struct FilteredLanes;

/// Some lanes of a track.
struct TrackLanes {
  std::uint32_t track = 0;  ///< its id
  std::uint32_t first = 0;
  std::uint32_t last = std::numeric_limits<std::uint32_t>::max();  ///< included
};

/// What api/trace says of a track.
struct TrackFacts {
  std::string name;
  std::uint32_t owner = 0;  ///< place in the list that its kind says: `threads` or `cpus` of api/trace
  std::uint32_t lanes = 0;
};

/// One for each kind, without state: any thread may ask it. Numbers are those in the kind, below count().
class TrackKind {
 public:
  virtual std::string_view name() const = 0;
  /// Whether its tracks are owned by threads.
  virtual bool of_threads() const = 0;
  /// Follows from the file alone, however much of it was read.
  virtual std::uint32_t count(const TraceIndex& index) const = 0;
  /// Nothing: there is no such track, or not yet.
  virtual std::optional<TrackFacts> facts(const TraceIndex& index, std::uint32_t number) const = 0;
  /// Draws the wanted lanes of a track that has facts. With `filtered`: only these calls, where it has calls.
  virtual void draw(const TraceIndex& index, std::uint32_t number, const TrackLanes& wanted,
                    const FilteredLanes* filtered, TileWriter& tiles) const = 0;

 protected:
  ~TrackKind() = default;
};

const TrackKind& thread_tracks();
const TrackKind& state_tracks();
const TrackKind& cpu_tracks();
const TrackKind& sample_tracks();
/// There are none until TraceIndex::set_locks(), but numbers for all that there may be.
const TrackKind& lock_tracks();
/// There are none until TraceIndex::set_requests(), but numbers as for locks.
const TrackKind& request_tracks();
/// There are none until TraceIndex::set_frames().
const TrackKind& frame_tracks();

/// Draws lanes of a strip: a slice's row is its source.
void draw_strip(const Strip& strip, const TrackLanes& wanted, TileWriter& tiles);

struct Track {
  std::uint32_t id;
  const TrackKind* kind;
  std::uint32_t number;  ///< in its kind
  TrackFacts facts;
};

/// In the order of their ids.
using TrackKinds = std::span<const TrackKind* const>;
/// What api/trace lists.
TrackKinds track_kinds();
/// The same, and what is found when somebody asks for it.
TrackKinds all_track_kinds();

/// All there are, in order of id.
std::vector<Track> tracks_of(const TraceIndex& index, TrackKinds kinds = track_kinds());
/// The track of an id; nothing: there is none.
std::optional<Track> find_track(const TraceIndex& index, std::uint64_t id, TrackKinds kinds = all_track_kinds());

}  // namespace karst::engine
