// SPDX-License-Identifier: MIT
// Locks: lanes of those who had it, below them lanes of those who waited. A slice's function is a thread. Waits and
// records of holds lie among a thread's notes, so threads that have some are read again if need be.
#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "analysis/locks.h"
#include "engine/index/noted_threads.h"
#include "engine/tiles/lock_tracks.h"
#include "engine/tiles/tracks.h"

namespace karst::engine {
namespace {

using answers::field;
using answers::Relation;
using answers::Type;

struct LockListRow {
  const TraceIndex& index;
  const LockTracks& of;
  std::uint32_t first;  // track
};

struct LockTrackRow {
  const answers::LockRow& lock;
  const LockTrack& of;
  std::uint32_t id;
};

const Relation& lock_track_rows() {
  using Row = LockTrackRow;
  static const Relation relation{
      "lock_tracks", "lock_track", "A row for each lock that has a track",
      answers::joined({{field<Row>("track", Type::kNumber, "id of its track", [](const Row& r) { return r.id; })},
                       answers::fields_of<Row>(answers::some_of(answers::locks(), {"process", "kind", "name", "lock",
                                                                                   "waits", "total", "longest"}),
                                               [](const Row& r) -> const answers::LockRow& { return r.lock; }),
                       {field<Row>("holder_lanes", Type::kCount, "the first lanes, of those who had it",
                                   [](const Row& r) { return r.of.holder_lanes; }),
                        field<Row>("lanes", Type::kCount, "all of them; the others are of those who waited",
                                   [](const Row& r) { return std::uint32_t{r.of.holder_lanes} + r.of.wait_lanes; }),
                        field<Row>("left_out", Type::kCount, "holders and waits for which there was no lane",
                                   [](const Row& r) { return r.of.left_out; })}})};
  return relation;
}

const Relation& lock_lists() {
  using Row = LockListRow;
  static const Relation relation{
      "lock_lists",
      "lock_list",
      "Locks that have a track",
      {field<Row>("holds_known", Type::kFlag, "whether each hold is known; else only waits say who had a lock",
                  [](const Row& r) { return r.of.holds_known; }),
       field<Row>("more_locks", Type::kCount, "locks without a track",
                  [](const Row& r) { return r.of.rows.more_locks; }),
       field<Row>("more_waits", Type::kCount, "waits for those", [](const Row& r) { return r.of.rows.more_waits; }),
       field<Row>("unnamed_waits", Type::kCount, "waits that do not say for which lock",
                  [](const Row& r) { return r.of.rows.unnamed; }),
       answers::rows<Row>("locks", "the one waited for longest first", lock_track_rows(),
                          [](const Row& r, const answers::UseRow& use) {
                            const answers::LockContext context = r.of.context(r.index);
                            const analysis::LockUse no_use;
                            std::uint32_t id = r.first;
                            for (const LockTrack& track : r.of.tracks) {
                              const answers::LockRow lock{context, track.row.lock, no_use};
                              const LockTrackRow row{lock, track, id++};
                              use(&row);
                            }
                          })}};
  return relation;
}

class LockTrackKind final : public LateTrackKind<LockTracks> {
 public:
  std::string_view name() const override { return "lock"; }
  std::uint32_t count(const TraceIndex& /*index*/) const override {
    return kMaxLockTracks;  // ids behind them stay the same when they come
  }
  std::string_view list_name() const override { return "locks"; }
  const Relation* list() const override { return &lock_lists(); }
  bool use_list(const TraceIndex& index, Work* work, const answers::UseRow& use) const override {
    const auto locks = index.make<LockTracks>(work);
    if (locks == nullptr) return false;
    const LockListRow row{index, *locks, first_track(index, *this)};
    use(&row);
    return true;
  }

 private:
  TrackFacts facts_of(const LockTracks& made, std::uint32_t number) const override {
    return {"lock", number, std::uint32_t{made.tracks[number].holder_lanes} + made.tracks[number].wait_lanes};
  }
};

// As places in the index's threads.
std::map<const reader::Thread*, std::uint32_t> numbers_of(const TraceIndex& index) {
  std::map<const reader::Thread*, std::uint32_t> numbers;
  for (std::uint32_t i = 0; i < index.threads().size(); ++i) numbers[index.threads()[i].thread] = i;
  return numbers;
}

bool is_lock_wait(const TraceIndex& index, std::uint32_t process, std::uint32_t function) {
  return analysis::has_holder(analysis::lock_kind(index.trace(), process, function));
}

struct Span {
  std::uint64_t begin, end;
  std::uint32_t thread, source;
  std::uint16_t lane;
  std::uint8_t marks;
};

/// Of a row that is whole. `threads`: the index's, by the reader's; `unknown`: who is not known.
LockTrack make_lock_track(analysis::LockRow row, const LockTracks& of,
                          const std::map<const reader::Thread*, std::uint32_t>& threads, std::uint32_t unknown) {
  const auto number = [&](const reader::Thread* thread) {
    const auto at = threads.find(thread);
    return at == threads.end() ? unknown : at->second;
  };
  using Times = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
  LockTrack track;
  Times held, waited;
  for (const analysis::LockHolder& holder : row.holders) held.emplace_back(holder.begin, holder.end);
  for (const std::size_t wait : row.waits)
    waited.emplace_back(of.waits[wait].begin, of.waits[wait].begin + of.waits[wait].duration);
  track.holder_lane = analysis::lanes_of(held, kMaxHolderLanes);
  track.wait_lane = analysis::lanes_of(waited, kMaxWaitLanes);
  const auto lanes = [&](const std::vector<std::uint16_t>& all) {
    std::uint16_t most = 0;
    for (const std::uint16_t lane : all) {
      if (lane == analysis::kNoLane)
        ++track.left_out;
      else
        most = std::max<std::uint16_t>(most, lane + 1);
    }
    return most;
  };
  track.holder_lanes = std::max<std::uint16_t>(1, lanes(track.holder_lane));
  track.wait_lanes = lanes(track.wait_lane);

  std::vector<Span> spans;
  spans.reserve(held.size() + waited.size());
  for (std::size_t i = 0; i < held.size(); ++i) {
    const analysis::LockHolder& holder = row.holders[i];
    if (track.holder_lane[i] == analysis::kNoLane) continue;
    // What only waits tell, and what nobody let go, may have ended earlier or later.
    const bool known = holder.hold != analysis::LockHolder::kNone &&
                       (of.holds.holds[holder.hold].ended == analysis::HoldEnd::kReleased ||
                        of.holds.holds[holder.hold].ended == analysis::HoldEnd::kReleasedByOther);
    spans.push_back({held[i].first, held[i].second, number(holder.thread), static_cast<std::uint32_t>(i),
                     track.holder_lane[i], known ? std::uint8_t{0} : std::uint8_t{reader::kCallOpenEnd}});
  }
  for (std::size_t i = 0; i < waited.size(); ++i) {
    const analysis::LockWait& wait = of.waits[row.waits[i]];
    if (track.wait_lane[i] == analysis::kNoLane) continue;
    spans.push_back({waited[i].first, waited[i].second, number(wait.thread), wait.row,
                     static_cast<std::uint16_t>(track.holder_lanes + track.wait_lane[i]),
                     wait.open ? std::uint8_t{reader::kCallOpenEnd} : std::uint8_t{0}});
  }
  std::stable_sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.begin < b.begin; });
  if (spans.size() > reader::kMaxRows) spans.resize(reader::kMaxRows);
  for (const Span& span : spans) {
    track.strip.owned.function.push_back(span.thread);
    track.strip.owned.begin.push_back(span.begin);
    track.strip.owned.duration.push_back(span.end - span.begin);
    track.strip.owned.parent.push_back(reader::kNoParent);
    track.strip.owned.depth.push_back(span.lane);
    track.strip.owned.marks.push_back(span.marks);
    track.strip.source.push_back(span.source);
  }
  track.strip.calls = CallColumns(track.strip.owned);
  track.strip.lanes.build(track.strip.calls);
  track.row = std::move(row);
  return track;
}

}  // namespace

const TrackKind& lock_tracks() {
  static const LockTrackKind kKind;
  return kKind;
}

answers::LockContext LockTracks::context(const TraceIndex& index) const {
  return {index.trace(), names, holds_known, {index.trace(), index.origin()}};
}

const LockTracks::Place* LockTracks::find(std::uint32_t thread, std::uint32_t row) const {
  const auto at = std::lower_bound(places.begin(), places.end(), Place{thread, row, 0, 0});
  return at != places.end() && at->thread == thread && at->row == row ? &*at : nullptr;
}

std::vector<std::uint32_t> functions_that_wait(const TraceIndex& index) {
  std::vector<std::uint32_t> found;
  for (std::uint32_t process = 0; process < index.trace().processes().size(); ++process) {
    const auto& of_process = index.functions().of_process(process);
    const auto& functions = index.trace().processes()[process].functions;
    for (std::uint32_t id = 0; id < functions.size() && id < of_process.size(); ++id)
      if (functions[id].note && is_lock_wait(index, process, id) &&
          index.functions().functions()[of_process[id]].occurs)
        found.push_back(of_process[id]);
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

std::shared_ptr<const LockTracks> LockTracks::make(const TraceIndex& index, Work* work) {
  auto made = std::make_shared<LockTracks>(index.trace());
  const reader::Trace& trace = index.trace();
  if (functions_that_wait(index).empty()) return made;
  const bool has_holds = analysis::has_holds(trace);
  analysis::HoldFinder finder(trace);
  const auto is_concerned = [&](const ThreadIndex& thread) {
    return thread.has_notes(format::NoteKind::kArguments) || (has_holds && thread.has_notes(format::NoteKind::kRecord));
  };
  for (const ThreadIndex& thread : index.threads())
    if (is_concerned(thread)) expect(work, thread.calls.size());
  for (const ThreadIndex& thread : index.threads()) {
    if (!is_concerned(thread)) continue;
    const NotedCalls calls = noted_calls(index, thread, work);
    if (calls.calls == nullptr || !go_on(work, thread.calls.size())) return nullptr;
    std::vector<analysis::LockWait> of = analysis::lock_waits(trace, *thread.thread, *calls.calls, nullptr);
    // Calls that were read again are those of the index, unless somebody changed the file meanwhile.
    std::erase_if(of, [&](const analysis::LockWait& wait) { return wait.row >= thread.calls.size(); });
    made->waits.insert(made->waits.end(), of.begin(), of.end());
    if (has_holds) finder.add(*thread.thread, *calls.calls);
  }
  made->holds = finder.take(made->waits);
  made->holds_known = has_holds && !made->holds.stripped;
  if (made->holds_known) analysis::fill_in_holders(made->holds, made->waits);
  const std::map<const reader::Thread*, std::uint32_t> numbers = numbers_of(index);
  analysis::find_holders(trace, made->waits, [&](const reader::Thread& thread) {
    const auto at = numbers.find(&thread);
    return at == numbers.end() ? CallColumns() : index.threads()[at->second].calls;
  });
  made->rows =
      analysis::lock_rows(trace, made->names, made->waits, made->holds_known ? &made->holds : nullptr, kMaxLockTracks);
  const auto unknown = static_cast<std::uint32_t>(index.threads().size());
  for (std::uint32_t number = 0; number < made->rows.rows.size(); ++number) {
    if (is_stopped(work)) return nullptr;
    made->tracks.push_back(make_lock_track(std::move(made->rows.rows[number]), *made, numbers, unknown));
    const analysis::LockRow& row = made->tracks.back().row;
    for (std::uint32_t at = 0; at < row.waits.size(); ++at) {
      const analysis::LockWait& wait = made->waits[row.waits[at]];
      const auto thread = numbers.find(wait.thread);
      if (thread != numbers.end()) made->places.push_back({thread->second, wait.row, number, at});
    }
  }
  made->rows.rows.clear();
  std::sort(made->places.begin(), made->places.end());
  return made;
}

}  // namespace karst::engine
