// SPDX-License-Identifier: MIT
// What is asked of one wait or holder is found in its lock's lists by bisection.
#include "engine/api/locks.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "analysis/locks.h"
#include "answers/locks.h"
#include "engine/api/rows.h"

namespace karst::engine {
namespace {

using analysis::LockHolder;
using analysis::LockWait;

using answers::Field;
using answers::field;
using answers::field_if_known;
using answers::Relation;
using answers::Type;
using answers::UseRow;
using answers::Value;
using answers::value_of;

/// Null: the trace does not have it.
const ThreadIndex* find_thread(const TraceIndex& index, const reader::Thread* thread) {
  if (thread == nullptr) return nullptr;
  const auto at = std::find_if(index.threads().begin(), index.threads().end(),
                               [&](const ThreadIndex& of) { return of.thread == thread; });
  return at == index.threads().end() ? nullptr : &*at;
}

// What a thread did at a time, whatever it waited for.
std::optional<std::uint32_t> call_at(const TraceIndex& index, const ThreadIndex& thread, std::uint64_t ticks) {
  std::uint32_t row = innermost_at(thread.calls, ticks);
  const std::uint32_t process = thread.thread->process;
  while (row != reader::kNoParent && !analysis::lock_kind(index.trace(), process, thread.calls.function[row]).empty())
    row = thread.calls.parent[row];
  if (row == reader::kNoParent) return std::nullopt;
  return row;
}

// Whether the trace has what a thread did at a time: it may be overwritten, missing, or before what was cut out.
bool has_history(const TraceIndex& index, const ThreadIndex& thread, std::uint64_t ticks) {
  if (index.part() && ticks < index.part()->range.begin) return false;
  const auto within = [&](const Gap& gap) { return gap.begin <= ticks && ticks < gap.end; };
  if (std::any_of(thread.gaps.begin(), thread.gaps.end(), within)) return false;
  if (!thread.thread->excerpt) return true;
  // An excerpt does not say where it begins. Calls that were open then come first, each in the one before; the first
  // exit lies in it for sure.
  const CallColumns& calls = thread.calls;
  std::uint32_t innermost = 0;
  while (innermost + 1 < calls.size() && calls.parent[innermost + 1] == innermost) ++innermost;
  return calls.size() != 0 && ticks >= calls.end(innermost);
}

/// A lock, and what rows about it are looked up in.
struct InLock {
  const TraceIndex& index;
  const LockTracks& locks;
  const LockTrack& track;
  answers::LockContext context;
};

struct WaitRow {
  const InLock& in;
  std::size_t at;  // in the track's row

  const LockWait& of() const { return in.locks.waits[in.track.row.waits[at]]; }
};

struct HolderRow {
  const InLock& in;
  std::size_t at;  // in the track's row

  const LockHolder& of() const { return in.track.row.holders[at]; }
  /// Null: waits alone tell of it.
  const analysis::LockHold* hold() const {
    return of().hold == LockHolder::kNone ? nullptr : &in.locks.holds.holds[of().hold];
  }
};

/// A thread that has a lock at a time.
struct OwnerRow {
  const InLock& in;
  const reader::Thread* of;
  std::uint32_t tid;
  std::uint64_t ticks;
  std::uint32_t owners;
  std::optional<std::size_t> place;  // among the lock's holders

  const ThreadIndex* thread() const { return find_thread(in.index, of); }
  bool is_call_known() const { return thread() != nullptr && has_history(in.index, *thread(), ticks); }
};

template <typename Row>
Field lane_field(std::optional<std::uint32_t> (*lane)(const Row& r)) {
  return field_if_known<Row>("lane", Type::kNumber, "of the lock's track; null: there was no room for it",
                             [lane](const Row& r) { return lane(r); });
}

std::optional<std::uint32_t> lane_of_wait(const WaitRow& r) {
  const std::uint16_t lane = r.in.track.wait_lane[r.at];
  if (lane == analysis::kNoLane) return std::nullopt;
  return r.in.track.holder_lanes + std::uint32_t{lane};
}

std::optional<std::uint32_t> lane_of_holder(const HolderRow& r) {
  const std::uint16_t lane = r.in.track.holder_lane[r.at];
  if (lane == analysis::kNoLane) return std::nullopt;
  return lane;
}

std::uint32_t depth_of_wait(const WaitRow& r) {
  const ThreadIndex* const thread = find_thread(r.in.index, r.of().thread);
  return thread == nullptr ? 0 : thread->calls.depth[r.of().row];
}

const Relation& waits_for_lock() {
  using Row = WaitRow;
  static const Relation relation{
      "waits_for_lock", "wait_for_lock", "A row for each time that a thread waited for the lock",
      answers::joined(
          {answers::fields_of<Row>(answers::some_of(answers::lock_waits(), {"thread", "begin", "duration", "open"}),
                                   [](const Row& r) {
                                     return answers::LockWaitRow{r.in.context, r.of()};
                                   }),
           {field<Row>("index", Type::kNumber, "the wait's place in its thread",
                       [](const Row& r) { return r.of().row; }),
            field<Row>("depth", Type::kNumber, "its level there", depth_of_wait), lane_field<Row>(lane_of_wait)}})};
  return relation;
}

const Relation& lock_holders() {
  using Row = HolderRow;
  static const Relation relation{
      "lock_holders",
      "lock_holder",
      "A row for each time that a thread had the lock",
      {field<Row>("place", Type::kNumber, "among the lock's holders", [](const Row& r) { return r.at; }),
       field<Row>("begin", Type::kTime, "when it took it, or a wait says that it had it",
                  [](const Row& r) { return r.in.context.times.since_start(r.of().begin); }),
       field<Row>("duration", Type::kDuration, "how long it had it, or until anybody began or ended a wait",
                  [](const Row& r) { return r.in.context.times.ns(r.of().end - r.of().begin); }),
       field<Row>("exact", Type::kFlag, "whether it is a hold; else a wait says so, and nobody says until when",
                  [](const Row& r) { return r.hold() != nullptr; }),
       field_if_known<Row>("kind", Type::kText, "what kind of lock it is",
                           [](const Row& r) { return r.hold() == nullptr ? Value() : value_of(r.hold()->kind); }),
       field_if_known<Row>("ended", Type::kText, "how the hold ended",
                           [](const Row& r) {
                             return r.hold() == nullptr ? Value() : value_of(answers::hold_end_word(r.hold()->ended));
                           }),
       lane_field<Row>(lane_of_holder)}};
  return relation;
}

const Relation& lock_owners() {
  using Row = OwnerRow;
  static const Relation relation{
      "lock_owners",
      "lock_owner",
      "A row for each thread that has a lock, and what it did then",
      {field<Row>("tid", Type::kNumber, "its id", [](const Row& r) { return r.tid; }),
       field<Row>("thread", Type::kThread, "that has it", [](const Row& r) { return answers::ThreadRef{r.of}; }),
       field<Row>("call_known", Type::kFlag, "whether the trace has what it did then",
                  [](const Row& r) { return r.is_call_known(); }),
       answers::row<Row>("call", "that it was in; null: in none that is traced, or it is not known", call_lines(),
                         [](const Row& r, const UseRow& use) {
                           if (!r.is_call_known()) return;
                           const auto row = call_at(r.in.index, *r.thread(), r.ticks);
                           if (!row) return;
                           const CallLine line{r.in.index, *r.thread(), *row};
                           use(&line);
                         }),
       field<Row>("owners", Type::kCount, "how many threads had it then", [](const Row& r) { return r.owners; }),
       field_if_known<Row>("place", Type::kNumber, "among the lock's holders; null: it is not there",
                           [](const Row& r) { return value_of(r.place); })}};
  return relation;
}

// The holder that a wait names: the first time during the wait that this thread has it. A wait may name who takes it
// at that moment, so that its hold begins behind the wait's begin.
std::optional<std::size_t> holder_of(const LockTrack& track, const LockWait& wait) {
  const std::vector<LockHolder>& holders = track.row.holders;
  const auto later = std::upper_bound(holders.begin(), holders.end(), wait.begin,
                                      [](std::uint64_t at, const LockHolder& holder) { return at < holder.begin; });
  // A lock has few owners at once: one that began long ago is looked for among the last ones alone, and one that is to
  // come among the next.
  constexpr std::ptrdiff_t kFar = 1000;
  const auto first = later - std::min<std::ptrdiff_t>(kFar, later - holders.begin());
  const auto last = later + std::min<std::ptrdiff_t>(kFar, holders.end() - later);
  for (auto at = first; at != last && at->begin <= wait.begin + wait.duration; ++at)
    if (at->end > wait.begin && at->tid == wait.holder) return static_cast<std::size_t>(at - holders.begin());
  return std::nullopt;
}

/// Either of a wait or of a holder.
struct LockAnswer {
  const InLock& in;
  std::optional<std::size_t> wait, holder;
  std::vector<std::size_t> waiters = {};
  std::uint64_t waiter_count = 0;
};

void use_owner(const LockAnswer& r, const UseRow& use) {
  if (r.wait) {
    const LockWait& wait = WaitRow{r.in, *r.wait}.of();
    const OwnerRow row{r.in,
                       wait.held_in.thread,
                       wait.holder,
                       wait.begin,
                       std::max<std::uint32_t>(1, wait.owners),
                       holder_of(r.in.track, wait)};
    if (wait.holder != 0) use(&row);
  } else if (r.holder) {
    const LockHolder& held = r.in.track.row.holders[*r.holder];
    const OwnerRow row{r.in, held.thread, held.tid, held.begin, 1, r.holder};
    if (held.tid != 0) use(&row);
  }
}

/// Fills in who waited while somebody had it.
void find_waiters(LockAnswer& answer, const LockHolder& held) {
  const std::vector<std::size_t>& waits = answer.in.track.row.waits;
  for (std::size_t at = 0; at < waits.size(); ++at) {
    const LockWait& wait = answer.in.locks.waits[waits[at]];
    if (wait.begin >= held.end) break;
    // Its own thread's wait ends as the hold begins.
    if (wait.begin + wait.duration <= held.begin || wait.thread == held.thread) continue;
    ++answer.waiter_count;
    if (answer.waiters.size() < kMaxWaiters) answer.waiters.push_back(at);
  }
}

void write_answer(Json& json, const LockAnswer& answer) {
  json.open('{');
  write_row(json, answer.in.index, lock_answers(), &answer);
  json.close('}');
}

InLock in_lock(const TraceIndex& index, const LockTracks& locks, std::size_t track) {
  return {index, locks, locks.tracks[track], locks.context(index)};
}

}  // namespace

const Relation& lock_answers() {
  using Row = LockAnswer;
  static const Relation relation{
      "lock_answers",
      "lock_answer",
      "A wait and who had the lock as it began; or who had a lock for a while, and who waited meanwhile",
      {field<Row>("lock", Type::kNumber, "place among the locks that have a track",
                  [](const Row& r) { return &r.in.track - r.in.locks.tracks.data(); }),
       answers::row<Row>("wait", "the one that was asked about", waits_for_lock(),
                         [](const Row& r, const UseRow& use) {
                           if (!r.wait) return;
                           const WaitRow row{r.in, *r.wait};
                           use(&row);
                         }),
       answers::row<Row>("held", "what was asked about", lock_holders(),
                         [](const Row& r, const UseRow& use) {
                           if (!r.holder) return;
                           const HolderRow row{r.in, *r.holder};
                           use(&row);
                         }),
       answers::row<Row>("owner", "who had it; null: not known", lock_owners(), use_owner),
       answers::rows<Row>("waiters", "the first of them, while it was held", waits_for_lock(),
                          [](const Row& r, const UseRow& use) {
                            for (const std::size_t at : r.waiters) {
                              const WaitRow row{r.in, at};
                              use(&row);
                            }
                          }),
       field<Row>("waiter_count", Type::kCount, "of all of them", [](const Row& r) { return r.waiter_count; })}};
  return relation;
}

bool write_wait(Json& json, const TraceIndex& index, const LockTracks& locks, const CallPlace& call) {
  const LockTracks::Place* const place = locks.find(call.thread, call.row);
  if (place == nullptr) return false;
  const InLock in = in_lock(index, locks, place->track);
  write_answer(json, {in, place->at, std::nullopt});
  return true;
}

void write_holder(Json& json, const TraceIndex& index, const LockTracks& locks, std::size_t track, std::size_t holder) {
  const InLock in = in_lock(index, locks, track);
  LockAnswer answer{in, std::nullopt, holder};
  find_waiters(answer, in.track.row.holders[holder]);
  write_answer(json, answer);
}

}  // namespace karst::engine
