#include "view/api/requests.h"

#include <string>
#include <vector>

#include "analysis/requests.h"
#include "view/api/noted_threads.h"
#include "view/tiles/tracks.h"

namespace karst::view {

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
  json.open('{').field("count", requests.requests.size()).key("requests").open('[');
  for (std::size_t i = 0; i < requests.requests.size() && i < most; ++i) {
    const analysis::Request& request = requests.requests[i];
    json.open('{');
    analysis::write_request(json, index.trace(), index.origin(), request);
    const auto& functions = index.functions().of_process(request.process);
    const bool known = request.most_in != 0 && request.most_in < functions.size();
    // As text, too: JavaScript's numbers hold 53 bits of it.
    json.field("id", std::to_string(request.id))
        .field("process", request.process)
        .field("begin", index.since_origin(request.begin));
    json.field("function", known ? std::int64_t{functions[request.most_in]} : std::int64_t{-1}).close('}');
  }
  json.close(']').key("tracks").open('[');
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

}  // namespace karst::view
