// SPDX-License-Identifier: MIT
// How a program wants itself shown: colours of calls, and pictures of frames.
#include <utility>

#include "analysis/pictures.h"
#include "engine/api/notes.h"
#include "engine/api/notes_of_thread.h"

namespace karst::engine {

using format::NoteKind;

void Notes::write_colors(Json& json, const TraceIndex& index, const std::vector<std::uint32_t>& threads,
                         TickRange range, std::uint64_t least_ns, Work* work) {
  struct Colored {
    std::uint32_t thread;
    std::uint32_t row;
    std::uint64_t color;
  };
  std::vector<Colored> found;
  std::uint64_t count = 0;
  for (const std::uint32_t number : threads) {
    const ThreadIndex& thread = index.threads()[number];
    if (!thread.has_notes(NoteKind::kColor)) continue;
    const auto notes = threads_.find(index, thread, work);
    if (notes == nullptr || !go_on(work, notes->list(true).size())) return;
    const CallColumns& calls = thread.calls;
    for (const std::uint32_t place : notes->list(true)) {
      const reader::Note& note = notes->calls().notes[place];
      if (!note.is(NoteKind::kColor) || note.row >= calls.size()) continue;
      if (calls.begin[note.row] >= range.end || calls.end(note.row) <= range.begin) continue;
      if (index.trace().clock().to_ns(calls.duration[note.row]) < least_ns || ++count > kMaxNoteMarks) continue;
      found.push_back({number, note.row, analysis::note_bits(notes->calls(), note)});
    }
  }
  const auto calls = [&](const Colored& one) -> const CallColumns& { return index.threads()[one.thread].calls; };
  json.open('{').field("truncated", count > kMaxNoteMarks);
  json.list("thread", found, [](const Colored& one) { return one.thread; });
  json.list("index", found, [](const Colored& one) { return one.row; });
  json.list("begin", found, [&](const Colored& one) { return index.since_origin(calls(one).begin[one.row]); });
  json.list("duration", found,
            [&](const Colored& one) { return index.trace().clock().to_ns(calls(one).duration[one.row]); });
  json.list("depth", found, [&](const Colored& one) { return calls(one).depth[one.row]; });
  json.list("color", found, [](const Colored& one) { return one.color; });
  json.close('}');
}

std::optional<analysis::Picture> Notes::picture(const TraceIndex& index, const FrameTrack& track, std::uint64_t number,
                                                Work* work) {
  std::vector<analysis::RequestWork> frames;
  for (std::size_t at = 0; at < track.strip.calls.size(); ++at)
    frames.push_back({track.strip.source[at], {track.strip.calls.begin[at], track.strip.calls.end(at)}});
  std::optional<analysis::Picture> last;
  for (const ThreadIndex& thread : index.threads()) {
    if (thread.thread->process != track.process || !thread.has_notes(NoteKind::kPicture)) continue;
    const auto notes = threads_.find(index, thread, work);
    if (notes == nullptr || !go_on(work, notes->size())) return std::nullopt;
    const reader::Process& process = index.trace().processes()[track.process];
    for (analysis::Picture& picture : analysis::pictures_in(notes->calls()))
      if (index.trace().function(process, picture.name).name == track.name &&
          analysis::frame_shown(picture, frames) == number && (!last || last->ticks <= picture.ticks))
        last = std::move(picture);
  }
  return last;
}

}  // namespace karst::engine
