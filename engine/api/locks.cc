// SPDX-License-Identifier: MIT
// What is asked of one wait or holder is found in its lock's lists by bisection.
#include "engine/api/locks.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

#include "analysis/locks.h"
#include "answers/locks.h"
#include "format/lock.h"

namespace karst::engine {
namespace {

using analysis::LockHolder;
using analysis::LockWait;

std::uint64_t whole_ns(const TraceIndex& index, std::uint64_t ticks) { return index.trace().clock().to_ns(ticks); }

std::int64_t number_of(const TraceIndex& index, const reader::Thread* thread) {
  if (thread == nullptr) return -1;
  const auto at = std::find_if(index.threads().begin(), index.threads().end(),
                               [&](const ThreadIndex& of) { return of.thread == thread; });
  return at == index.threads().end() ? -1 : at - index.threads().begin();
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

// Who has it, and what that thread did at a time.
void write_who(Json& json, const TraceIndex& index, const reader::Thread* of, std::uint32_t tid, std::uint64_t ticks) {
  const std::int64_t number = number_of(index, of);
  json.field("tid", tid).field("thread", number);
  if (number < 0) return;
  const ThreadIndex& thread = index.threads()[static_cast<std::size_t>(number)];
  const bool known = has_history(index, thread, ticks);
  json.field("call_known", known);
  if (!known) return;
  const auto row = call_at(index, thread, ticks);
  if (!row) return;
  json.field("index", *row).field("function", index.function_of(thread, *row));
  json.field("call_begin", index.since_origin(thread.calls.begin[*row]));
  json.field("call_duration", whole_ns(index, thread.calls.duration[*row])).field("depth", thread.calls.depth[*row]);
}

void write_wait_facts(Json& json, const TraceIndex& index, const LockTrack& track, std::size_t at,
                      const LockWait& wait) {
  const std::int64_t thread = number_of(index, wait.thread);
  json.field("thread", thread).field("index", wait.row).field("begin", index.since_origin(wait.begin));
  json.field("duration", whole_ns(index, wait.duration)).field("open", wait.open);
  json.field("kind", analysis::lock_kind(index.trace(), wait.thread->process, wait.zone));
  if (track.wait_lane[at] != analysis::kNoLane)
    json.field("lane", track.holder_lanes + std::uint32_t{track.wait_lane[at]});
  if (thread >= 0) json.field("depth", index.threads()[static_cast<std::size_t>(thread)].calls.depth[wait.row]);
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

}  // namespace

bool write_wait(Json& json, const TraceIndex& index, const LockTracks& locks, const CallPlace& call) {
  const LockTracks::Place* const place = locks.find(call.thread, call.row);
  if (place == nullptr) return false;
  const LockTrack& track = locks.tracks[place->track];
  const LockWait& wait = locks.waits[track.row.waits[place->at]];
  json.open('{').field("lock", place->track).key("wait").open('{');
  write_wait_facts(json, index, track, place->at, wait);
  json.close('}').key("holder");
  if (wait.holder == 0) {
    json.null();
  } else {
    json.open('{');
    write_who(json, index, wait.held_in.thread, wait.holder, wait.begin);
    json.field("owners", std::max<std::uint32_t>(1, wait.owners));
    if (const auto holder = holder_of(track, wait)) json.field("holder", *holder);
    json.close('}');
  }
  json.close('}');
  return true;
}

void write_holder(Json& json, const TraceIndex& index, const LockTracks& locks, std::size_t track, std::size_t holder) {
  const LockTrack& of = locks.tracks[track];
  const LockHolder& held = of.row.holders[holder];
  const bool known = held.hold != LockHolder::kNone;
  json.open('{').field("lock", track).key("held").open('{').field("holder", holder);
  if (of.holder_lane[holder] != analysis::kNoLane) json.field("lane", of.holder_lane[holder]);
  json.field("begin", index.since_origin(held.begin)).field("duration", whole_ns(index, held.end - held.begin));
  json.field("exact", known);
  if (known) {
    const analysis::LockHold& hold = locks.holds.holds[held.hold];
    json.field("kind", hold.kind).field("ended", answers::hold_end_word(hold.ended));
  }
  json.close('}').key("holder");
  if (held.tid == 0) {
    json.null();
  } else {
    json.open('{');
    write_who(json, index, held.thread, held.tid, held.begin);
    json.close('}');
  }
  // Waits that overlap it.
  std::vector<std::size_t> waiters;
  std::uint64_t count = 0;
  const std::vector<std::size_t>& waits = of.row.waits;
  for (std::size_t at = 0; at < waits.size(); ++at) {
    const LockWait& wait = locks.waits[waits[at]];
    if (wait.begin >= held.end) break;
    // Its own thread's wait ends as the hold begins.
    if (wait.begin + wait.duration <= held.begin || wait.thread == held.thread) continue;
    ++count;
    if (waiters.size() < kMaxWaiters) waiters.push_back(at);
  }
  json.field("waiter_count", count).key("waiters").open('[');
  for (const std::size_t at : waiters) {
    json.open('{');
    write_wait_facts(json, index, of, at, locks.waits[waits[at]]);
    json.close('}');
  }
  json.close(']').close('}');
}

}  // namespace karst::engine
