// SPDX-License-Identifier: MIT
#include "analysis/selection.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

#include "analysis/notes.h"
#include "analysis/requests.h"
#include "format/event.h"

namespace karst::analysis {
namespace {

constexpr std::size_t kMostListed = 20;  // in an error message

bool is_number(const std::string& text, std::uint32_t& number) {
  const char* end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && last == end;
}

void list(std::string& text, std::size_t& listed, const std::string& item) {
  if (listed < kMostListed) text += (listed == 0 ? "" : ", ") + item;
  if (listed == kMostListed) text += ", ...";
  ++listed;
}

}  // namespace

Result<std::vector<const reader::Thread*>> select_threads(const reader::Trace& trace, const Selection& selection) {
  std::uint32_t pid = 0;
  if (!selection.process.empty() && !is_number(selection.process, pid)) {
    return Error{fmt::format("'{}' is not a process id", selection.process)};
  }
  std::uint32_t tid = 0;
  const bool by_tid = is_number(selection.thread, tid);
  std::uint32_t not_tid = 0;
  const bool by_not_tid = is_number(selection.not_thread, not_tid);
  bool any_left_out = false;

  std::vector<const reader::Thread*> found;
  bool any_process = false;
  std::string there_is;
  std::size_t listed = 0;
  for (const reader::Process& process : trace.processes()) {
    if (!selection.process.empty() && process.pid != pid) continue;
    any_process = true;
    for (const reader::Thread& thread : process.threads) {
      // A thread may be named like a number: both ways of meaning it count.
      const bool asked = selection.thread.empty() || thread.name == selection.thread || (by_tid && thread.tid == tid);
      const bool left_out = !selection.not_thread.empty() &&
                            (thread.name == selection.not_thread || (by_not_tid && thread.tid == not_tid));
      any_left_out |= left_out;
      if (asked && !left_out) {
        found.push_back(&thread);
      } else {
        list(there_is, listed, fmt::format("{} ({})", thread.name, thread.tid));
      }
    }
  }
  if (!any_process && !selection.process.empty()) {
    for (const reader::Process& process : trace.processes()) {
      list(there_is, listed, fmt::format("{} ({})", process.pid, process.name));
    }
    return Error{fmt::format("{} has no process {}; it has {}", trace.name(), selection.process, there_is)};
  }
  if (!selection.not_thread.empty() && !any_left_out) {
    for (const reader::Thread* thread : found)
      list(there_is, listed, fmt::format("{} ({})", thread->name, thread->tid));
    return Error{fmt::format("{} has no thread named or numbered '{}' to leave out; it has {}", trace.name(),
                             selection.not_thread, there_is.empty() ? "none" : there_is)};
  }
  if (found.empty() && any_left_out)
    return Error{fmt::format("no thread of {} is left without '{}'", trace.name(), selection.not_thread)};
  if (found.empty() && !selection.thread.empty()) {
    return Error{fmt::format("{} has no thread named or numbered '{}'; it has {}", trace.name(), selection.thread,
                             there_is.empty() ? "none" : there_is)};
  }
  return found;
}

FunctionSet::FunctionSet(const reader::Trace& trace, std::function<bool(std::string_view)> keep)
    : trace_(&trace), keep_(std::move(keep)), member_(trace.processes().size()) {
  for (std::size_t p = 0; p < member_.size(); ++p) {
    const reader::Process& process = trace.processes()[p];
    member_[p].resize(process.functions.size());
    for (std::uint32_t id = 1; id < process.functions.size(); ++id) {
      member_[p][id] = keep_(trace.function(process, id).name) ? 1 : 0;
      size_ += member_[p][id];
    }
  }
}

bool FunctionSet::contains_unknown(std::uint32_t process, std::uint32_t id) const {
  return keep_(trace_->function(trace_->processes()[process], id).name);
}

std::uint64_t first_ticks(const reader::Trace& trace) {
  std::uint64_t first = std::numeric_limits<std::uint64_t>::max();
  for (const reader::Process& process : trace.processes()) {
    for (const reader::Thread& thread : process.threads) {
      const auto blocks = trace.blocks(thread);
      if (!blocks.empty()) first = std::min(first, blocks.front().ticks);
    }
  }
  if (first != std::numeric_limits<std::uint64_t>::max()) return first;
  for (const auto* const samples : {&trace.samples().samples, &trace.samples().waits})
    if (samples->size() != 0) first = std::min(first, (*samples)[0].ticks);
  return first == std::numeric_limits<std::uint64_t>::max() ? 0 : first;
}

std::uint64_t last_ticks(const reader::Trace& trace) {
  std::uint64_t last = 0;
  for (const reader::Process& process : trace.processes()) {
    for (const reader::Thread& thread : process.threads) {
      const auto blocks = trace.blocks(thread);
      if (blocks.empty()) continue;
      last = std::max({last, blocks.back().ticks, blocks.back().last_ticks()});
    }
  }
  if (last != 0) return last;
  for (const auto* const samples : {&trace.samples().samples, &trace.samples().waits})
    if (samples->size() != 0) last = std::max(last, samples->back().ticks + 1);
  return last;
}

namespace {

// Makes a call end at the range's edges.
void clip(reader::Calls& calls, std::uint32_t row, columns::TickRange range) {
  const std::uint64_t begin = calls.begin[row];
  const std::uint64_t end = begin + calls.duration[row];
  std::uint8_t& marks = calls.marks[row];
  if (begin < range.begin) marks |= reader::kCallOpenBegin;
  if (end > range.end) {
    // How it ended is of another time.
    constexpr std::uint8_t kEnds = reader::kCallUnwound | reader::kCallJumped | reader::kCallTail;
    marks = static_cast<std::uint8_t>((marks & ~kEnds) | reader::kCallOpenEnd);
  }
  calls.begin[row] = std::clamp(begin, range.begin, range.end);
  calls.duration[row] = std::clamp(end, range.begin, range.end) - calls.begin[row];
}

bool is_in(const reader::Calls& calls, std::uint32_t row, columns::TickRange range) {
  const std::uint64_t begin = calls.begin[row];
  return begin < range.end && (begin >= range.begin || begin + calls.duration[row] > range.begin);
}

}  // namespace

void filter_calls(reader::Calls& calls, std::uint32_t process, const CallFilter& filter) {
  if (filter.request) cut_to_request(calls, *filter.request);
  if (!filter.range && filter.below == nullptr && filter.min_ticks == 0 && filter.without == nullptr) return;
  const std::vector<std::uint32_t> owners = rows_of_values(calls);
  const auto count = static_cast<std::uint32_t>(calls.size());
  constexpr std::uint32_t kGone = reader::kNoParent;
  std::vector<std::uint32_t> place(count, kGone);  // of each row, among those that stay
  const bool has_nearest = !calls.notes.empty() || filter.without != nullptr;
  std::vector<std::uint32_t> nearest(has_nearest ? count : 0, kGone);  // the same, or its caller's
  std::vector<bool> left_out(filter.without != nullptr ? count : 0);   // nothing but its function is
  std::vector<bool> below(count), shorter(count);  // in a call that is asked for; too short, or in such a one
  std::uint32_t kept = 0;
  for (std::uint32_t row = 0; row < count; ++row) {
    const std::uint32_t parent = calls.parent[row];  // columns are moved to the front: its own may be overwritten
    const bool has_parent = parent != reader::kNoParent;
    below[row] = filter.below == nullptr || (has_parent && below[parent]) ||
                 filter.below->contains(process, calls.function[row]);
    shorter[row] = (has_parent && shorter[parent]) ||
                   (calls.time(row) < filter.min_ticks && !reader::call_is_open(calls.marks[row]));
    if (!nearest.empty() && has_parent) nearest[row] = nearest[parent];
    if (!below[row] || shorter[row] || (filter.range && !is_in(calls, row, *filter.range))) continue;
    if (filter.without != nullptr && filter.without->contains(process, calls.function[row])) {
      left_out[row] = true;
      continue;
    }
    const std::uint32_t to = place[row] = kept++;
    if (!nearest.empty()) nearest[row] = to;
    const bool parent_is_left_out = has_parent && !left_out.empty() && left_out[parent];
    const std::uint32_t caller = parent_is_left_out ? nearest[parent] : has_parent ? place[parent] : kGone;
    calls.function[to] = calls.function[row];
    calls.begin[to] = calls.begin[row];
    calls.duration[to] = calls.duration[row];
    if (calls.taken.size() != 0) calls.taken[to] = calls.taken[row];
    calls.marks[to] = calls.marks[row];
    calls.parent[to] = caller;
    constexpr std::uint16_t kDeepest = std::numeric_limits<std::uint16_t>::max();
    const std::uint16_t depth = caller == kGone ? kDeepest : calls.depth[caller];
    calls.depth[to] = caller == kGone     ? std::uint16_t{0}
                      : depth == kDeepest ? kDeepest
                                          : static_cast<std::uint16_t>(depth + 1);
    if (filter.range) clip(calls, to, *filter.range);
  }
  calls.function.resize(kept);
  calls.begin.resize(kept);
  calls.duration.resize(kept);
  calls.marks.resize(kept);
  if (calls.taken.size() != 0) calls.taken.resize(kept);
  calls.parent.resize(kept);
  calls.depth.resize(kept);
  // A note belongs to the innermost of its calls that stays; but one of values goes with its call.
  std::size_t stay = 0;
  for (std::size_t i = 0; i < calls.notes.size(); ++i) {
    reader::Note note = calls.notes[i];
    const bool inside = note.row != reader::kNoParent;
    const bool is_of_call = !owners.empty() && owners[i] != reader::kNoParent;
    if (is_of_call && place[owners[i]] == kGone) continue;
    if (!is_of_call && filter.below != nullptr && (!inside || !below[note.row])) continue;
    if (filter.range && (note.ticks < filter.range->begin || note.ticks >= filter.range->end)) continue;
    if (inside) note.row = nearest[note.row];
    calls.notes[stay++] = note;
  }
  calls.notes.resize(stay);
  if (!filter.range) return;
  calls.first_ticks = std::clamp(calls.first_ticks, filter.range->begin, filter.range->end);
  calls.last_ticks = std::clamp(calls.last_ticks, filter.range->begin, filter.range->end);
}

}  // namespace karst::analysis
