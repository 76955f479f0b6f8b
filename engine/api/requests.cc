#include "engine/api/requests.h"

#include <algorithm>
#include <span>
#include <vector>

#include "analysis/requests.h"
#include "answers/requests.h"
#include "engine/index/noted_threads.h"
#include "engine/api/rows.h"
#include "engine/tiles/tracks.h"

namespace karst::engine {

std::shared_ptr<const RequestTracks> Requests::of(const TraceIndex& index, Work* work) {
  if (auto known = index.requests()) return known;
  const std::lock_guard lock(making_);
  if (auto known = index.requests()) return known;
  const reader::Trace& trace = index.trace();
  analysis::RequestFinder finder(trace, nullptr, std::nullopt, false);
  std::vector<RequestPiece> pieces;
  expect(work, index.calls());
  for (std::uint32_t number = 0; number < index.threads().size(); ++number) {
    const ThreadIndex& thread = index.threads()[number];
    if (!go_on(work, thread.calls.size())) return nullptr;
    if (!analysis::tells_of_requests(trace, *thread.thread)) continue;
    const NotedCalls noted = noted_calls(index, thread, work);
    if (noted.calls == nullptr) return nullptr;
    finder.add(*thread.thread, *noted.calls, *noted.calls);
    for (const analysis::RequestWork& piece : analysis::work_on_requests(*noted.calls))
      pieces.push_back({number, thread.thread->process, piece.id, piece.range});
  }
  index.set_requests(std::make_shared<RequestTracks>(make_request_tracks(finder.take(), std::move(pieces))));
  return index.requests();
}

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
  std::uint32_t id = 0;
  for (const TrackKind* kind : all_track_kinds()) {
    if (kind == &request_tracks()) break;
    id += kind->count(index);
  }
  for (const RequestTrack& track : requests.tracks) {
    json.open('{').field("track", id++).field("process", track.process).field("count", track.count);
    json.field("at_once", track.at_once).field("work_lanes", track.work_lanes).field("left_out", track.left_out);
    json.close('}');
  }
  json.close(']').close('}');
}

}  // namespace karst::engine
