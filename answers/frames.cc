// SPDX-License-Identifier: MIT
#include "answers/frames.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/selection.h"
#include "base/text.h"
#include "columns/table.h"

namespace karst::answers {
namespace {

constexpr std::size_t kSlowestFrames = 10;

Field percentile_of_frames(std::string key, std::string sentence, std::uint64_t percent, int rank) {
  return field<FrameSetRow>(std::move(key), Type::kDuration, std::move(sentence),
                            [percent](const FrameSetRow& r) { return columns::percentile(r.ns, percent); },
                            {.rank = rank});
}

Field begin_of_frame() {
  return field<FrameRow>("begin", Type::kTime, "after the trace's first event",
                         [](const FrameRow& r) { return r.of.begin_ns; });
}
Field duration_of_frame() {
  return field<FrameRow>("duration", Type::kDuration, "how long it took", [](const FrameRow& r) { return r.of.ns; });
}
Field number_of_frame() {
  return field<FrameRow>("number", Type::kNumber, "from 1 on", [](const FrameRow& r) { return r.of.number; },
                         {.title = "frame"});
}

std::string words_of_over(const FrameSetRow& r) {
  return fmt::format("{} {:>6}", count_text(r.over), percent_text(r.over, r.frames.size()));
}

/// Places of the slowest ones, those first.
std::vector<std::size_t> slowest_of(const std::vector<FrameSetRow::Frame>& frames) {
  std::vector<std::size_t> slow(frames.size());
  for (std::size_t i = 0; i < frames.size(); ++i) slow[i] = i;
  const auto most = static_cast<std::ptrdiff_t>(std::min(kSlowestFrames, slow.size()));
  std::partial_sort(slow.begin(), slow.begin() + most, slow.end(), [&](std::size_t a, std::size_t b) {
    return frames[a].ns != frames[b].ns ? frames[a].ns > frames[b].ns : a < b;
  });
  slow.resize(static_cast<std::size_t>(most));
  return slow;
}

}  // namespace

FrameSetRow frame_set(const reader::Trace& trace, const analysis::Frames& frames, const analysis::Frames::Set& of,
                      const std::optional<columns::TickRange>& range, std::uint64_t target_ns) {
  FrameSetRow set{of.name, of.process, {}, {}, 0, 0, {}};
  const std::uint64_t start = analysis::first_ticks(trace);
  const bool first_is_marked = frames.first_is_marked(of.process, of.name);
  for (const analysis::RequestWork& frame : frames.all(of.process, of.name)) {
    const bool is_in = !range || (frame.range.begin >= range->begin && frame.range.end <= range->end);
    if (!is_in || (frame.id == 1 && !first_is_marked)) continue;
    const std::uint64_t ns = trace.clock().to_ns(frame.range.end - frame.range.begin);
    set.frames.push_back({frame.id, trace.clock().to_ns(frame.range.begin - start), ns});
    set.ns.push_back(ns);
    set.sum_ns += ns;
    set.over += ns > target_ns ? 1 : 0;
  }
  set.slow = slowest_of(set.frames);
  return set;
}

const Relation& slowest_frames() {
  static const Relation relation{"slowest_frames",
                                 "slowest_frame",
                                 "A row for each of the slowest frames",
                                 {duration_of_frame(), begin_of_frame(), number_of_frame()}};
  return relation;
}

const Relation& frames() {
  static const Relation relation{
      "frames",
      "frame",
      "A row for each frame",
      {field<FrameRow>("name", Type::kText, "what the program calls it", [](const FrameRow& r) { return r.in.name; }),
       field<FrameRow>("process", Type::kProcess, "whose it is",
                       [](const FrameRow& r) { return ProcessRef{r.in.process}; }),
       number_of_frame(), begin_of_frame(), duration_of_frame()}};
  return relation;
}

const Relation& frame_sets() {
  using Row = FrameSetRow;
  static const Relation relation{
      "frame_sets",
      "frame_set",
      "A row for each name of frames of a process",
      {field<Row>("count", Type::kCount, "how many there are", [](const Row& r) { return r.frames.size(); },
                  {.title = "frames"}),
       field<Row>("mean", Type::kDuration, "how long they took", [](const Row& r) { return r.mean(); }, {.rank = 2}),
       percentile_of_frames("p50", "half of them took no longer", 50, 1),
       percentile_of_frames("p90", "9 of 10 took no longer", 90, 4),
       percentile_of_frames("p99", "99 of 100 took no longer", 99, 3),
       field<Row>("max", Type::kDuration, "the longest of them",
                  [](const Row& r) { return r.frames[r.slow.front()].ns; }, {.title = "longest"}),
       field<Row>("over", Type::kCount, "that took longer than the target", [](const Row& r) { return r.over; },
                  {.words = words<Row>(words_of_over)}),
       field<Row>("process", Type::kProcess, "whose they are", [](const Row& r) { return ProcessRef{r.process}; }),
       rows<Row>("slowest", "the slowest ones", slowest_frames(),
                 [](const Row& r, const UseRow& use) {
                   for (const std::size_t at : r.slow) {
                     const FrameRow row{r, r.frames[at]};
                     use(&row);
                   }
                 }),
       field<Row>("name", Type::kText, "what the program calls them", [](const Row& r) { return r.name; })},
      nullptr,
      {},
      "frames"};
  return relation;
}

}  // namespace karst::answers
