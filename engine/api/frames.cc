// SPDX-License-Identifier: MIT
// Durations are in the track's strip, so an answer takes a look at all frames of one name, however many there are.
#include "engine/api/frames.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "columns/table.h"
#include "engine/api/answers.h"
#include "engine/api/rows.h"

namespace karst::engine {
namespace {

using answers::Field;
using answers::field;
using answers::Relation;
using answers::Type;
using answers::UseRow;

std::uint64_t frame_ns(const TraceIndex& index, const FrameTrack& track, std::size_t at) {
  return index.trace().clock().to_ns(track.strip.calls.duration[at]);
}

struct FrameAnswer {
  const TraceIndex& index;
  const FrameTrack& track;
  std::uint64_t over = 0;
  columns::Histogram durations;
  std::vector<std::size_t> slowest;
  std::optional<std::size_t> frame, previous, next;
  const std::optional<analysis::Picture>& picture;
};

struct FrameLine {
  const FrameAnswer& in;
  std::size_t at;

  const CallColumns& calls() const { return in.track.strip.calls; }
};

const Relation& frame_lines() {
  using Row = FrameLine;
  static const Relation relation{
      "frame_lines",
      "frame_line",
      "A row for each frame",
      {field<Row>("number", Type::kNumber, "from 1 on, where the history begins",
                  [](const Row& r) { return r.in.track.strip.source[r.at]; }),
       field<Row>("begin", Type::kTime, "when it begins",
                  [](const Row& r) { return r.in.index.since_origin(r.calls().begin[r.at]); }),
       field<Row>("duration", Type::kDuration, "how long it took",
                  [](const Row& r) { return frame_ns(r.in.index, r.in.track, r.at); }),
       field<Row>("marked", Type::kFlag, "whether both ends have a mark: nobody marked where the first frame begins",
                  [](const Row& r) { return r.in.track.is_marked(r.at); })}};
  return relation;
}

Field frame_at(std::string key, std::string sentence, std::optional<std::size_t> FrameAnswer::*of) {
  return answers::row<FrameAnswer>(std::move(key), std::move(sentence), frame_lines(),
                                   [of](const FrameAnswer& r, const UseRow& use) {
                                     if (!(r.*of)) return;
                                     const FrameLine line{r, *(r.*of)};
                                     use(&line);
                                   });
}

const Relation& frame_pictures() {
  using Row = analysis::Picture;
  static const Relation relation{
      "frame_pictures",
      "frame_picture",
      "What a frame showed, compressed as BC1 has it",
      {field<Row>("width", Type::kCount, "in pixels", [](const Row& r) { return r.width; }),
       field<Row>("height", Type::kCount, "in pixels", [](const Row& r) { return r.height; }),
       answers::list<Row>("words", Type::kNumber,
                          "two for each 4 times 4 pixels, line by line; the first byte of each in the lowest bits",
                          [](const Row& r, const auto& use) {
                            std::vector<std::uint32_t> words(r.blocks.size() / sizeof(std::uint32_t));
                            std::memcpy(words.data(), r.blocks.data(), words.size() * sizeof(std::uint32_t));
                            for (const std::uint32_t word : words) use(word);
                          })}};
  return relation;
}

}  // namespace

std::optional<std::size_t> frame_numbered(const FrameTrack& track, std::uint64_t number) {
  const auto& numbers = track.strip.source;
  const auto at = std::lower_bound(numbers.begin(), numbers.end(), number);
  if (at == numbers.end() || *at != number) return std::nullopt;
  return static_cast<std::size_t>(at - numbers.begin());
}

const Relation& frame_answers() {
  using Row = FrameAnswer;
  static const Relation relation{
      "frame_answers",
      "frame_answer",
      "All frames of a name, and one of them",
      {field<Row>("over", Type::kCount, "that took longer than the target", [](const Row& r) { return r.over; }),
       answers::row<Row>("durations", "of those that have marks at both ends", histograms(),
                         [](const Row& r, const UseRow& use) { each_histogram(r.index, r.durations, use); }),
       answers::rows<Row>("slowest", "the slowest of those", frame_lines(),
                          [](const Row& r, const UseRow& use) {
                            for (const std::size_t at : r.slowest) {
                              const FrameLine line{r, at};
                              use(&line);
                            }
                          }),
       frame_at("frame", "the one; null: none was asked about", &Row::frame),
       frame_at("previous", "the last one over the target before it", &Row::previous),
       frame_at("next", "the first one over the target after it", &Row::next),
       answers::row<Row>("picture", "of the one", frame_pictures(), [](const Row& r, const UseRow& use) {
         if (r.picture) use(&*r.picture);
       })}};
  return relation;
}

void write_frame(Json& json, const TraceIndex& index, const FrameTrack& track, double target_ns,
                 std::optional<std::size_t> at, const std::optional<analysis::Picture>& picture) {
  FrameAnswer answer{index, track, 0, {}, {}, at, {}, {}, picture};
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
  answer.over = over;
  answer.durations = columns::histogram_of(durations);
  answer.slowest = std::move(slowest);
  answer.previous = previous;
  answer.next = next;
  json.open('{');
  write_row(json, index, frame_answers(), &answer);
  json.close('}');
}

}  // namespace karst::engine
