// SPDX-License-Identifier: MIT
#include "reader/tracing_times.h"

#include <algorithm>
#include <cstddef>

#include "format/event.h"
#include "format/note.h"
#include "reader/trace.h"

namespace karst::reader {
namespace {

using format::Event;
using format::Mark;

/// What came between the thread and its next block.
bool keeps_the_thread(format::Overhead why) {
  return why == format::Overhead::kMemory || why == format::Overhead::kTaking;
}

/// The note's time is when that was over. A handler may have come in between and have put words of its own before it.
void add_one(const BlockView& block, std::size_t near, std::vector<TracingTime>& times) {
  constexpr std::uint32_t kMostWords = format::note_words(sizeof(std::uint64_t));
  const auto word = [&](std::size_t i) {
    return i < block.events.size() ? __atomic_load_n(&block.events[i], __ATOMIC_RELAXED) : Event{0};
  };
  for (std::size_t at = 0; at < std::min(near, block.events.size()); ++at) {
    const Event mark = word(at), head_word = word(at + 1);
    if (!format::event_is(mark, Mark::kNote) || !format::event_is(head_word, Mark::kNoteHead)) continue;
    const format::NoteHead head = format::note_head(head_word);
    if (head.kind != format::NoteKind::kOverhead || head.words > kMostWords) continue;
    std::uint64_t said = 0;
    for (std::uint32_t i = 0; i < head.words; ++i) {
      const Event payload = word(at + 2 + i);
      if (!format::event_is(payload, Mark::kNoteWord)) return;
      said |= format::note_payload(payload) << (8 * format::kNoteBytesInWord * i);
    }
    if (!keeps_the_thread(static_cast<format::Overhead>(said & 0xff))) continue;
    const std::uint64_t end = format::event_ticks(mark, block.ticks), took = format::overhead_ticks(said);
    const std::uint64_t last = times.empty() ? 0 : times.back().end;
    const std::uint64_t begin = std::max(end > took ? end - took : 0, last);
    if (begin < end) times.push_back({begin, end});
  }
}

}  // namespace

void add_tracing_times(std::span<const StoredBlock> blocks, EventReader& read, std::vector<TracingTime>& times) {
  constexpr std::size_t kNear = 16;  // the note lies at the begin of a block of the process
  constexpr std::uint32_t kOverhead = std::uint32_t{1} << static_cast<std::uint32_t>(format::NoteKind::kOverhead);
  const std::size_t before = times.size();
  for (const StoredBlock& block : blocks)
    if (block.may_have_notes(kOverhead)) add_one(read(block), block.is_packed() ? block.size() : kNear, times);
  if (before == 0 || before == times.size()) return;
  std::sort(times.begin(), times.end(), [](const TracingTime& a, const TracingTime& b) { return a.begin < b.begin; });
}

}  // namespace karst::reader
