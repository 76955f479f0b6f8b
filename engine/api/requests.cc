// SPDX-License-Identifier: MIT
#include "engine/api/requests.h"

#include <algorithm>
#include <span>

#include "answers/requests.h"
#include "engine/api/rows.h"
#include "engine/tiles/tracks.h"

namespace karst::engine {
namespace {

using answers::field;
using answers::Relation;
using answers::Type;

struct TrackRow {
  const RequestTrack& of;
  std::uint32_t id;
};

const Relation& request_tracks_of_page() {
  static const Relation relation{
      "request_tracks",
      "request_track",
      "A row for each process that has requests in time",
      {field<TrackRow>("track", Type::kNumber, "id of its track", [](const TrackRow& r) { return r.id; }),
       field<TrackRow>("process", Type::kProcess, "whose requests they are",
                       [](const TrackRow& r) { return answers::ProcessRef{r.of.process}; }),
       field<TrackRow>("count", Type::kCount, "requests that it is of", [](const TrackRow& r) { return r.of.count; }),
       field<TrackRow>("at_once", Type::kCount,
                       "lanes of requests, below each of them work_lanes of threads that worked on those",
                       [](const TrackRow& r) { return r.of.at_once; }),
       field<TrackRow>("work_lanes", Type::kCount, "below each lane of requests",
                       [](const TrackRow& r) { return r.of.work_lanes; }),
       field<TrackRow>("left_out", Type::kCount, "requests and stretches of work for which there was no lane",
                       [](const TrackRow& r) { return r.of.left_out; })}};
  return relation;
}

struct RequestAnswer {
  const TraceIndex& index;
  const RequestTracks& of;
  std::size_t most;
};

}  // namespace

const Relation& request_answers() {
  static const Relation relation{
      "request_answers",
      "request_answer",
      "What the program told of its requests",
      {field<RequestAnswer>("count", Type::kCount, "how many there are",
                            [](const RequestAnswer& r) { return r.of.requests.size(); }),
       answers::rows<RequestAnswer>("requests", "the longest ones, the longest first", answers::requests(),
                                    [](const RequestAnswer& r, const answers::UseRow& use) {
                                      const answers::Times times = times_of(r.index);
                                      for (const analysis::Request& of :
                                           std::span(r.of.requests).first(std::min(r.most, r.of.requests.size()))) {
                                        const answers::RequestRow row{of, times};
                                        use(&row);
                                      }
                                    }),
       answers::rows<RequestAnswer>("tracks", "a track for each process", request_tracks_of_page(),
                                    [](const RequestAnswer& r, const answers::UseRow& use) {
                                      std::uint32_t id = first_track(r.index, request_tracks());
                                      for (const RequestTrack& track : r.of.tracks) {
                                        const TrackRow row{track, id++};
                                        use(&row);
                                      }
                                    })}};
  return relation;
}

void write_requests(Json& json, const TraceIndex& index, const RequestTracks& requests, std::size_t most) {
  const RequestAnswer answer{index, requests, most};
  json.open('{');
  write_row(json, index, request_answers(), &answer);
  json.close('}');
}

}  // namespace karst::engine
