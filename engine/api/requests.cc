#include "engine/api/requests.h"

#include <algorithm>
#include <span>
#include <vector>

#include "answers/requests.h"
#include "engine/api/rows.h"
#include "engine/tiles/tracks.h"

namespace karst::engine {

void write_requests(Json& json, const TraceIndex& index, const RequestTracks& requests, std::size_t most) {
  const answers::Times times(index.trace());
  std::vector<answers::RequestRow> of;
  for (const analysis::Request& request : std::span(requests.requests).first(std::min(most, requests.requests.size())))
    of.push_back({request, times});
  std::vector<const void*> rows;
  rows.reserve(of.size());
  for (const answers::RequestRow& row : of) rows.push_back(&row);
  json.open('{').field("count", requests.requests.size()).key("requests").open('{');
  write_rows(json, index, answers::requests(), rows);
  json.close('}').key("tracks").open('[');
  std::uint32_t id = first_track(index, request_tracks());
  for (const RequestTrack& track : requests.tracks) {
    json.open('{').field("track", id++).field("process", track.process).field("count", track.count);
    json.field("at_once", track.at_once).field("work_lanes", track.work_lanes).field("left_out", track.left_out);
    json.close('}');
  }
  json.close(']').close('}');
}

}  // namespace karst::engine
