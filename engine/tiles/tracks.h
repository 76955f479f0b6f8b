// SPDX-License-Identifier: MIT
// Tracks: what has lanes of its own in time. Another kind is a file like engine/tiles/track_cpus.cc, its line in
// KARST_TRACK_KINDS, and a renderer in the page (page/src/timeline/).
//
// A track's id is the number of its kind's first track plus its number in the kind. Both are known when a trace is
// opened, so an id means the same while the trace is being read and after.
//
// Tracks that need all of the trace and much work are late: they are made when the page asks for their list. Their
// kinds have the last ids.
#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "answers/relation.h"
#include "engine/columns.h"
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

  /// Whether somebody must ask for its tracks before there are any; api/trace does not list them.
  virtual bool is_late() const { return false; }
  /// api/NAME makes its tracks and lists them. Empty: another answer does.
  virtual std::string_view list_name() const { return {}; }
  /// The relation of that answer, which is one row. Null: another answer lists them.
  virtual const answers::Relation* list() const { return nullptr; }
  /// Makes the tracks and hands over the row. False: `work` was stopped, or there is no list().
  virtual bool use_list(const TraceIndex& /*index*/, Work* /*work*/, const answers::UseRow& /*use*/) const {
    return false;
  }

 protected:
  ~TrackKind() = default;
};

/// The kinds, in the order of their ids: those whose tracks are made late come last.
#define KARST_TRACK_KINDS(X) \
  X(thread_tracks)           \
  X(state_tracks)            \
  X(cpu_tracks)              \
  X(sample_tracks)           \
  X(lock_tracks)             \
  X(request_tracks)          \
  X(frame_tracks)

#define KARST_TRACK_KIND(name) const TrackKind& name();
KARST_TRACK_KINDS(KARST_TRACK_KIND)
#undef KARST_TRACK_KIND

/// Draws lanes of a strip: a slice's row is its source.
void draw_strip(const Strip& strip, const TrackLanes& wanted, TileWriter& tiles);

/// A kind whose tracks come late. `Of` is made late (TraceIndex::make()), and its `tracks` have strips.
template <typename Of>
class LateTrackKind : public TrackKind {
 public:
  bool of_threads() const final { return false; }
  bool is_late() const final { return true; }
  std::optional<TrackFacts> facts(const TraceIndex& index, std::uint32_t number) const final {
    const auto made = index.made<Of>();
    if (made == nullptr || number >= made->tracks.size()) return std::nullopt;
    return facts_of(*made, number);
  }
  void draw(const TraceIndex& index, std::uint32_t number, const TrackLanes& wanted, const FilteredLanes* filtered,
            TileWriter& tiles) const final {
    const auto made = index.made<Of>();
    if (filtered == nullptr && made != nullptr) draw_strip(made->tracks[number].strip, wanted, tiles);
  }

 protected:
  virtual TrackFacts facts_of(const Of& made, std::uint32_t number) const = 0;
  ~LateTrackKind() = default;
};

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
/// The id of a kind's first track.
std::uint32_t first_track(const TraceIndex& index, const TrackKind& kind);

/// All there are, in order of id.
std::vector<Track> tracks_of(const TraceIndex& index, TrackKinds kinds = track_kinds());
/// The track of an id; nothing: there is none.
std::optional<Track> find_track(const TraceIndex& index, std::uint64_t id, TrackKinds kinds = all_track_kinds());

}  // namespace karst::engine
