// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "analysis/lock_rows.h"
#include "engine/index/noted_threads.h"
#include "engine/tiles/request_tracks.h"
#include "engine/tiles/tracks.h"

namespace karst::engine {
namespace {

// api/requests lists them: an answer about all requests.
class RequestTrackKind final : public LateTrackKind<RequestTracks> {
 public:
  std::string_view name() const override { return "request"; }
  std::uint32_t count(const TraceIndex& /*index*/) const override {
    return kMaxRequestTracks;  // ids behind them stay the same when they come
  }

 private:
  TrackFacts facts_of(const RequestTracks& made, std::uint32_t number) const override {
    return {"requests", number, made.tracks[number].lanes()};
  }
};

/// A thread works on a request.
struct RequestPiece {
  std::uint32_t thread = 0;  ///< of the index
  std::uint32_t process = 0;
  std::uint64_t id = 0;
  columns::TickRange range;
};

struct RequestSlice {
  std::uint64_t begin, end;
  std::uint32_t function, source;
  std::uint16_t lane;
  std::uint8_t marks;
};

/// By place in `places`: the longest first take the lowest lane that is free all the time; kNoLane: none is.
std::vector<std::uint16_t> lanes_for_the_longest(const std::vector<analysis::Request>& requests,
                                                 const std::vector<std::uint32_t>& places) {
  std::vector<std::size_t> longest(places.size());
  std::iota(longest.begin(), longest.end(), std::size_t{0});
  std::sort(longest.begin(), longest.end(), [&](std::size_t a, std::size_t b) { return places[a] < places[b]; });
  std::vector<std::uint16_t> lanes(places.size(), analysis::kNoLane);
  std::array<std::map<std::uint64_t, std::uint64_t>, kMostAtOnce> taken;  // by lane: ends by begins
  for (const std::size_t i : longest) {
    const std::uint64_t begin = requests[places[i]].begin;
    const std::uint64_t end = std::max(requests[places[i]].end, begin + 1);
    const auto is_free = [&](const std::map<std::uint64_t, std::uint64_t>& of) {
      const auto next = of.lower_bound(begin);
      return (next == of.end() || next->first >= end) && (next == of.begin() || std::prev(next)->second <= begin);
    };
    const auto at = std::find_if(taken.begin(), taken.end(), is_free);
    if (at == taken.end()) continue;
    (*at)[begin] = end;
    lanes[i] = static_cast<std::uint16_t>(at - taken.begin());
  }
  return lanes;
}

/// Of one process: `places` of its requests, in order of begin, and of each its pieces, likewise.
RequestTrack track_of(const std::vector<analysis::Request>& requests, const std::vector<std::uint32_t>& places,
                      std::map<std::uint32_t, std::vector<RequestPiece>>& pieces) {
  RequestTrack track;
  track.process = requests[places.front()].process;
  track.count = places.size();
  const std::vector<std::uint16_t> lane = lanes_for_the_longest(requests, places);
  std::map<std::uint32_t, std::vector<std::uint16_t>> work_lane;  // by place
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (lane[i] == analysis::kNoLane) {
      ++track.left_out;
      continue;
    }
    track.at_once = std::max<std::uint16_t>(track.at_once, lane[i] + 1);
    std::vector<std::pair<std::uint64_t, std::uint64_t>> work;
    for (const RequestPiece& piece : pieces[places[i]]) work.emplace_back(piece.range.begin, piece.range.end);
    std::vector<std::uint16_t>& found = work_lane[places[i]] = analysis::lanes_of(work, kMostWorkLanes);
    for (const std::uint16_t one : found) {
      track.left_out += one == analysis::kNoLane ? 1 : 0;
      if (one != analysis::kNoLane) track.work_lanes = std::max<std::uint16_t>(track.work_lanes, one + 1);
    }
  }
  std::vector<RequestSlice> slices;
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (lane[i] == analysis::kNoLane) continue;
    const analysis::Request& request = requests[places[i]];
    const auto first = static_cast<std::uint16_t>(lane[i] * (1 + track.work_lanes));
    const int open = (request.begun ? 0 : reader::kCallOpenBegin) | (request.ended ? 0 : reader::kCallOpenEnd);
    slices.push_back({request.begin, request.end, 0, places[i], first, static_cast<std::uint8_t>(open)});
    const std::vector<RequestPiece>& work = pieces[places[i]];
    const std::vector<std::uint16_t>& lanes = work_lane[places[i]];
    for (std::size_t w = 0; w < work.size(); ++w)
      if (lanes[w] != analysis::kNoLane)
        slices.push_back({work[w].range.begin, work[w].range.end, work[w].thread, places[i],
                          static_cast<std::uint16_t>(first + 1 + lanes[w]), 0});
  }
  std::stable_sort(slices.begin(), slices.end(),
                   [](const RequestSlice& a, const RequestSlice& b) { return a.begin < b.begin; });
  if (slices.size() > reader::kMaxRows) slices.resize(reader::kMaxRows);
  for (const RequestSlice& slice : slices) {
    track.strip.owned.function.push_back(slice.function);
    track.strip.owned.begin.push_back(slice.begin);
    track.strip.owned.duration.push_back(slice.end > slice.begin ? slice.end - slice.begin : 0);
    track.strip.owned.parent.push_back(reader::kNoParent);
    track.strip.owned.depth.push_back(slice.lane);
    track.strip.owned.marks.push_back(slice.marks);
    track.strip.source.push_back(slice.source);
  }
  track.strip.calls = CallColumns(track.strip.owned);
  track.strip.lanes.build(track.strip.calls);
  return track;
}

/// Takes both in any order.
RequestTracks tracks_of_all(std::vector<analysis::Request> requests, std::vector<RequestPiece> pieces) {
  RequestTracks made;
  std::stable_sort(requests.begin(), requests.end(),
                   [](const analysis::Request& a, const analysis::Request& b) { return a.duration() > b.duration(); });
  made.requests = std::move(requests);
  std::map<std::uint32_t, std::vector<std::uint32_t>> places;  // by process
  for (std::uint32_t i = 0; i < made.requests.size(); ++i) places[made.requests[i].process].push_back(i);
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::vector<std::uint32_t>> numbered;  // by process and number
  for (auto& [process, of] : places) {
    std::stable_sort(of.begin(), of.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return made.requests[a].begin < made.requests[b].begin; });
    for (const std::uint32_t place : of) numbered[{process, made.requests[place].id}].push_back(place);
  }
  std::stable_sort(pieces.begin(), pieces.end(),
                   [](const RequestPiece& a, const RequestPiece& b) { return a.range.begin < b.range.begin; });
  std::map<std::uint32_t, std::vector<RequestPiece>> of_request;
  for (const RequestPiece& piece : pieces) {
    const auto known = numbered.find({piece.process, piece.id});
    if (known == numbered.end()) continue;
    // A number that begins again is another request. What a thread does for one before its begin or behind its end is
    // none of its time.
    auto at =
        std::upper_bound(known->second.begin(), known->second.end(), piece.range.begin,
                         [&](std::uint64_t begin, std::uint32_t place) { return begin < made.requests[place].begin; });
    if (at != known->second.begin()) --at;
    for (; at != known->second.end() && made.requests[*at].begin < piece.range.end; ++at) {
      RequestPiece part = piece;
      part.range.begin = std::max(piece.range.begin, made.requests[*at].begin);
      part.range.end = std::min(piece.range.end, made.requests[*at].end);
      if (part.range.begin < part.range.end) of_request[*at].push_back(part);
    }
  }
  for (const auto& [process, of] : places) {
    if (made.tracks.size() == kMaxRequestTracks) break;
    made.tracks.push_back(track_of(made.requests, of, of_request));
  }
  return made;
}

}  // namespace

const TrackKind& request_tracks() {
  static const RequestTrackKind kKind;
  return kKind;
}

std::shared_ptr<const RequestTracks> RequestTracks::make(const TraceIndex& index, Work* work) {
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
  return std::make_shared<RequestTracks>(tracks_of_all(finder.take(), std::move(pieces)));
}

}  // namespace karst::engine
