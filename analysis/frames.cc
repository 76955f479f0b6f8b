#include "analysis/frames.h"

#include <algorithm>
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
      for (const reader::Note& note : calls.notes)
        if (note.kind == static_cast<std::uint32_t>(format::NoteKind::kFrame))
          marks_[std::string(note_name(trace, thread, note))][thread.process].push_back(note.ticks);
    }
  for (auto& [name, processes] : marks_)
    for (auto& [process, marks] : processes) std::sort(marks.begin(), marks.end());
}

std::vector<std::string> Frames::names() const {
  std::vector<std::string> names;
  for (const auto& [name, processes] : marks_) names.push_back(name);
  return names;
}

std::vector<RequestWork> Frames::of(std::uint32_t process, std::string_view name) const {
  std::vector<RequestWork> frames;
  const auto named = marks_.find(name);
  if (named == marks_.end()) return frames;
  const auto marks = named->second.find(process);
  if (marks == named->second.end()) return frames;
  std::uint64_t begin = begin_;
  std::uint64_t number = 0;
  for (const std::uint64_t mark : marks->second) {
    ++number;
    if (mark > begin) frames.push_back({number, {begin, mark}});
    begin = std::max(begin, mark);
  }
  return frames;
}

}  // namespace karst::analysis
