// SPDX-License-Identifier: MIT
#include "reader/fiber_runs.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "format/event.h"
#include "format/note.h"

namespace karst::reader {
namespace {

using format::Event;
using format::Mark;

Event word_at(std::span<const Event> words, std::size_t at) {
  return at < words.size() ? __atomic_load_n(&words[at], __ATOMIC_RELAXED) : 0;
}

struct FiberMark {
  WordPlace begin;
  std::size_t words = 0;
  std::uint64_t ticks = 0;
  format::FiberNote note{};
  std::string name;
};

/// The note that begins at a word, if it is one of fibers and whole.
std::optional<FiberMark> mark_at(const BlockView& block, std::size_t at) {
  const Event mark = word_at(block.events, at);
  const Event head_word = word_at(block.events, at + 1);
  if (!format::event_is(mark, Mark::kNote) || !format::event_is(head_word, Mark::kNoteHead)) return std::nullopt;
  const format::NoteHead head = format::note_head(head_word);
  if (head.kind != format::NoteKind::kFiber) return std::nullopt;
  std::vector<std::uint64_t> payloads(std::max(head.words, format::kFiberNameWord));
  for (std::uint32_t i = 0; i < head.words; ++i) {
    const Event word = word_at(block.events, at + 2 + i);
    if (!format::event_is(word, Mark::kNoteWord)) return std::nullopt;
    payloads[i] = format::note_payload(word);
  }
  FiberMark found;
  found.words = 2 + head.words;
  found.ticks = format::event_ticks(mark, block.ticks);
  found.note = format::fiber_note([&](std::uint32_t i) { return payloads[i]; });
  for (std::uint32_t i = format::kFiberNameWord; i < head.words; ++i)
    for (std::uint32_t b = 0; b < format::kNoteBytesInWord; ++b)
      found.name.push_back(static_cast<char>(payloads[i] >> (8 * b) & 0xff));
  while (!found.name.empty() && found.name.back() == '\0') found.name.pop_back();
  return found;
}

class RunFinder {
 public:
  RunFinder(std::span<const StoredBlock> blocks, std::span<const Switch> switches) : blocks_(blocks) {
    for (const Switch& s : switches)
      if (s.on) switched_on_.push_back(s.end_ticks);
    std::sort(switched_on_.begin(), switched_on_.end());
  }

  FiberRuns find() {
    for (std::size_t first = 0; first < blocks_.size();) {
      std::size_t end = first + 1;
      while (end < blocks_.size() && blocks_[end].sequence == blocks_[end - 1].next_sequence) ++end;
      stretch(first, end);
      first = end;
    }
    if (!any_) found_ = {};
    return std::move(found_);
  }

 private:
  /// Blocks without a gap between them.
  void stretch(std::size_t first, std::size_t end) {
    constexpr std::uint32_t kFiberNotes = std::uint32_t{1} << static_cast<std::uint32_t>(format::NoteKind::kFiber);
    FiberRun run;
    run.begin = {first, 0};
    run.begin_ticks = blocks_[first].first_ticks();
    run.first = true;
    for (std::size_t block = first; block < end; ++block) {
      if (!blocks_[block].may_have_notes(kFiberNotes)) continue;
      const BlockView view = read_(blocks_[block]);
      for (std::size_t i = 0; i < view.events.size(); ++i) {
        if (!format::event_is(word_at(view.events, i), Mark::kNote)) continue;
        std::optional<FiberMark> mark = mark_at(view, i);
        if (!mark) continue;
        mark->begin = {block, i};
        i += mark->words - 1;
        any_ = true;
        run = next(run, *mark);
      }
    }
    run.end = {end - 1, blocks_[end - 1].size()};
    run.end_ticks = std::max(run.begin_ticks, blocks_[end - 1].last_ticks());
    run.last = true;
    found_.runs.push_back(run);
  }

  /// Ends `run` at the mark; returns the one that begins there.
  FiberRun next(FiberRun run, const FiberMark& mark) {
    run.end = mark.begin;
    run.end_ticks = std::max(mark.ticks, run.begin_ticks);
    run.left = true;
    if (mark.note.left_known && mark.note.left != run.fiber) {
      if (run.entered) {
        FiberRun before = run;
        before.left = false;
        const std::uint64_t since = last_switched_on(run.begin_ticks, run.end_ticks);
        before.end = since != 0 ? first_at(since, run.begin, run.end) : run.begin;
        before.end_ticks = std::max(run.begin_ticks, since);
        found_.runs.push_back(before);
        run.begin = before.end;
        run.begin_ticks = before.end_ticks;
        run.entered = run.first = false;
      }
      run.fiber = mark.note.left;
      run.name = FiberRun::kNoName;
    }
    found_.runs.push_back(run);
    FiberRun begun;
    begun.fiber = mark.note.entered;
    begun.begin = {mark.begin.block, mark.begin.word + mark.words};
    begun.begin_ticks = run.end_ticks;
    begun.entered = true;
    if (!mark.name.empty()) {
      const auto [at, fresh] = names_.try_emplace(mark.name, found_.names.size());
      if (fresh) found_.names.push_back(mark.name);
      begun.name = at->second;
    }
    return begun;
  }

  std::uint64_t last_switched_on(std::uint64_t from, std::uint64_t to) const {
    const auto behind = std::upper_bound(switched_on_.begin(), switched_on_.end(), to);
    return behind != switched_on_.begin() && behind[-1] > from ? behind[-1] : 0;
  }

  /// The first word in a range that has a time not before `ticks`.
  WordPlace first_at(std::uint64_t ticks, WordPlace from, WordPlace to) {
    for (; from.block < to.block || (from.block == to.block && from.word < to.word); ++from.word) {
      const BlockView block = look_back_(blocks_[from.block]);
      if (from.word == block.events.size()) {
        from = {from.block + 1, ~std::size_t{0}};
        continue;
      }
      const Event event = word_at(block.events, from.word);
      if (tells_time(event) && format::event_ticks(event, block.ticks) >= ticks) return from;
    }
    return to;
  }

  std::span<const StoredBlock> blocks_;
  EventReader read_{nullptr};
  EventReader look_back_{nullptr};  // while the other one reads on
  std::vector<std::uint64_t> switched_on_;
  FiberRuns found_;
  std::unordered_map<std::string, std::size_t> names_;
  bool any_ = false;
};

}  // namespace

FiberRuns find_fiber_runs(std::span<const StoredBlock> blocks, std::span<const Switch> switches) {
  return RunFinder(blocks, switches).find();
}

}  // namespace karst::reader
