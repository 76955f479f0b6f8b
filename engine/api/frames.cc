// Durations are in the track's strip, so an answer takes a look at all frames of one name, however many there are.
#include "engine/api/frames.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "columns/table.h"
#include "engine/api/answers.h"

namespace karst::engine {
namespace {

std::uint64_t frame_ns(const TraceIndex& index, const FrameTrack& track, std::size_t at) {
  return index.trace().clock().to_ns(track.strip.calls.duration[at]);
}

void write_one(Json& json, const TraceIndex& index, const FrameTrack& track, std::size_t at) {
  json.open('{').field("number", track.strip.source[at]);
  json.field("begin", index.since_origin(track.strip.calls.begin[at]));
  json.field("duration", frame_ns(index, track, at)).field("marked", track.is_marked(at)).close('}');
}

}  // namespace

std::optional<std::size_t> frame_numbered(const FrameTrack& track, std::uint64_t number) {
  const auto& numbers = track.strip.source;
  const auto at = std::lower_bound(numbers.begin(), numbers.end(), number);
  if (at == numbers.end() || *at != number) return std::nullopt;
  return static_cast<std::size_t>(at - numbers.begin());
}

void write_frame(Json& json, const TraceIndex& index, const FrameTrack& track, double target_ns,
                 std::optional<std::size_t> at, const std::optional<analysis::Picture>& picture) {
  const CallColumns& calls = track.strip.calls;
  const auto is_over = [&](std::size_t i) {
    return track.is_marked(i) && static_cast<double>(frame_ns(index, track, i)) > target_ns;
  };
  std::vector<std::size_t> slowest;
  std::vector<std::uint64_t> durations;
  std::optional<std::size_t> previous, next;
  std::uint64_t over = 0;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (!track.is_marked(i)) continue;
    slowest.push_back(i);
    durations.push_back(calls.duration[i]);
    if (!is_over(i)) continue;
    ++over;
    if (at && i < *at) previous = i;
    if ((!at || i > *at) && !next) next = i;
  }
  const auto most = static_cast<std::ptrdiff_t>(std::min(kSlowestFrames, slowest.size()));
  std::partial_sort(slowest.begin(), slowest.begin() + most, slowest.end(), [&](std::size_t a, std::size_t b) {
    return calls.duration[a] != calls.duration[b] ? calls.duration[a] > calls.duration[b] : a < b;
  });
  slowest.resize(static_cast<std::size_t>(most));
  json.open('{').field("over", over).key("durations");
  write_histogram(json, index.trace().clock(), 0, columns::histogram_of(durations));
  json.key("slowest").open('[');
  for (const std::size_t i : slowest) write_one(json, index, track, i);
  json.close(']');
  const auto one = [&](const char* name, std::optional<std::size_t> place) {
    json.key(name);
    if (place) {
      write_one(json, index, track, *place);
    } else {
      json.null();
    }
  };
  one("frame", at);
  one("previous", previous);
  one("next", next);
  if (picture) {
    // In words of four bytes, the first byte in the lowest bits.
    std::vector<std::uint32_t> words(picture->blocks.size() / sizeof(std::uint32_t));
    std::memcpy(words.data(), picture->blocks.data(), words.size() * sizeof(std::uint32_t));
    json.key("picture").open('{').field("width", picture->width).field("height", picture->height);
    json.list("words", words, [](std::uint32_t word) { return word; }).close('}');
  }
  json.close('}');
}

}  // namespace karst::engine
