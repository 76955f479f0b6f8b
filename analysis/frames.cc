// SPDX-License-Identifier: MIT
#include "analysis/frames.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "analysis/notes.h"
#include "analysis/selection.h"
#include "format/note.h"

namespace karst::analysis {

Frames::Frames(const reader::Trace& trace) : begin_(first_ticks(trace)) {
  reader::Calls calls;
  for (const reader::Process& process : trace.processes())
    for (const reader::Thread& thread : process.threads) {
      if (!has_note(trace, thread, format::NoteKind::kFrame) && !has_note(trace, thread, format::NoteKind::kFrameBegin))
        continue;
      calls = reader::rebuild_calls(trace, thread, std::move(calls));
      add(trace, thread, calls);
    }
}

void Frames::add(const reader::Trace& trace, const reader::Thread& thread, const reader::Calls& calls) {
  const auto merge = [](std::vector<std::uint64_t>& into, std::vector<std::uint64_t>& ticks) {
    const auto middle = static_cast<std::ptrdiff_t>(into.size());
    std::sort(ticks.begin(), ticks.end());
    into.insert(into.end(), ticks.begin(), ticks.end());
    std::inplace_merge(into.begin(), into.begin() + middle, into.end());
  };
  std::map<std::uint32_t, Marks> found;  // by the name's id
  for (const reader::Note& note : calls.notes) {
    if (note.is(format::NoteKind::kFrame)) found[note.name].ticks.push_back(note.ticks);
    if (note.is(format::NoteKind::kFrameBegin)) found[note.name].begins.push_back(note.ticks);
  }
  for (auto& [id, of] : found) {
    reader::Note note;
    note.kind = static_cast<std::uint32_t>(format::NoteKind::kFrame);
    note.name = id;
    Marks& marks = marks_[std::string(note_name(trace, thread, note))].try_emplace(thread.process).first->second;
    if (!of.ticks.empty() || marks.function == 0) marks.function = id;
    merge(marks.ticks, of.ticks);
    merge(marks.begins, of.begins);
  }
}

const Frames::Marks* Frames::find(std::uint32_t process, std::string_view name) const {
  const auto named = marks_.find(name);
  if (named == marks_.end()) return nullptr;
  const auto marks = named->second.find(process);
  return marks == named->second.end() || marks->second.ticks.empty() ? nullptr : &marks->second;
}

std::vector<std::string> Frames::names() const {
  std::vector<std::string> names;
  for (const auto& [name, processes] : marks_)
    if (std::any_of(processes.begin(), processes.end(), [](const auto& one) { return !one.second.ticks.empty(); }))
      names.push_back(name);
  return names;
}

std::vector<Frames::Set> Frames::sets() const {
  std::vector<Set> sets;
  for (const auto& [name, processes] : marks_)
    for (const auto& [process, marks] : processes)
      if (!marks.ticks.empty()) sets.push_back({process, name, marks.function, marks.ticks.size()});
  std::sort(sets.begin(), sets.end(), [](const Set& a, const Set& b) {
    const auto key = [](const Set& set) {
      return std::tuple(set.name != kMainFrames, ~set.marks, set.process, set.name);
    };
    return key(a) < key(b);
  });
  return sets;
}

std::vector<RequestWork> Frames::all(std::uint32_t process, std::string_view name) const {
  std::vector<RequestWork> frames;
  const Marks* marks = find(process, name);
  if (marks == nullptr) return frames;
  std::uint64_t begin = begin_;
  auto next = marks->begins.begin();
  for (const std::uint64_t mark : marks->ticks) {
    // The last begin before this end.
    for (; next != marks->begins.end() && *next <= mark; ++next) begin = std::max(begin, *next);
    const std::uint64_t end = std::max(begin, mark);
    frames.push_back({frames.size() + 1, {begin, end}});
    begin = end;
  }
  return frames;
}

bool Frames::first_is_marked(std::uint32_t process, std::string_view name) const {
  const Marks* marks = find(process, name);
  return marks != nullptr && !marks->begins.empty() && marks->begins.front() <= marks->ticks.front();
}

std::vector<RequestWork> Frames::of(std::uint32_t process, std::string_view name) const {
  std::vector<RequestWork> frames = all(process, name);
  std::erase_if(frames, [](const RequestWork& frame) { return frame.range.begin == frame.range.end; });
  return frames;
}

}  // namespace karst::analysis
