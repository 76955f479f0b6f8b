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
      if (!has_note(trace, thread, format::NoteKind::kFrame)) continue;
      calls = reader::rebuild_calls(trace, thread, std::move(calls));
      add(trace, thread, calls);
    }
}

void Frames::add(const reader::Trace& trace, const reader::Thread& thread, const reader::Calls& calls) {
  std::map<std::uint32_t, std::vector<std::uint64_t>> found;  // by the name's id
  for (const reader::Note& note : calls.notes)
    if (note.kind == static_cast<std::uint32_t>(format::NoteKind::kFrame)) found[note.name].push_back(note.ticks);
  for (auto& [id, ticks] : found) {
    reader::Note note;
    note.kind = static_cast<std::uint32_t>(format::NoteKind::kFrame);
    note.name = id;
    Marks& marks = marks_[std::string(note_name(trace, thread, note))].try_emplace(thread.process).first->second;
    marks.function = id;
    const auto middle = static_cast<std::ptrdiff_t>(marks.ticks.size());
    std::sort(ticks.begin(), ticks.end());
    marks.ticks.insert(marks.ticks.end(), ticks.begin(), ticks.end());
    std::inplace_merge(marks.ticks.begin(), marks.ticks.begin() + middle, marks.ticks.end());
  }
}

std::vector<std::string> Frames::names() const {
  std::vector<std::string> names;
  for (const auto& [name, processes] : marks_) names.push_back(name);
  return names;
}

std::vector<Frames::Set> Frames::sets() const {
  std::vector<Set> sets;
  for (const auto& [name, processes] : marks_)
    for (const auto& [process, marks] : processes) sets.push_back({process, name, marks.function, marks.ticks.size()});
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
  const auto named = marks_.find(name);
  if (named == marks_.end()) return frames;
  const auto marks = named->second.find(process);
  if (marks == named->second.end()) return frames;
  std::uint64_t begin = begin_;
  for (const std::uint64_t mark : marks->second.ticks) {
    const std::uint64_t end = std::max(begin, mark);
    frames.push_back({frames.size() + 1, {begin, end}});
    begin = end;
  }
  return frames;
}

std::vector<RequestWork> Frames::of(std::uint32_t process, std::string_view name) const {
  std::vector<RequestWork> frames = all(process, name);
  std::erase_if(frames, [](const RequestWork& frame) { return frame.range.begin == frame.range.end; });
  return frames;
}

}  // namespace karst::analysis
