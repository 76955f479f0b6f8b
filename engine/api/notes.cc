// SPDX-License-Identifier: MIT
// A thread's notes are put in order of time once; a range of them is then found by bisection, and only a question with
// a text, kinds or a call looks at each. Of all threads the first ones are kept in a heap as large as the answer.
#include "engine/api/notes.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <tuple>

#include "analysis/notes.h"
#include "engine/api/notes_of_thread.h"

namespace karst::engine {
namespace {

constexpr std::size_t kMostText = format::kMostNoteBytes;  // of a name or a value that is told
constexpr std::size_t kMostMarkText = 200;

// Names come from the trace, and may have any length.
std::string shortened(std::string_view text, std::size_t most) {
  if (text.size() <= most) return std::string(text);
  while (most != 0 && (static_cast<unsigned char>(text[most]) & 0xc0U) == 0x80) --most;
  return std::string(text.substr(0, most)) + "\u2026";
}

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string lowered(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), lower);
  return text;
}

}  // namespace

std::optional<std::uint32_t> note_group_named(std::string_view word) {
  for (std::size_t group = 0; group < format::kNoteGroups; ++group)
    if (word == format::kNoteGroupWords[group]) return 1U << group;
  return std::nullopt;
}

Notes::Notes() = default;
Notes::~Notes() = default;

namespace {
bool wants_values(const Notes::Question& question) { return (question.groups & ~kListedGroups) != 0; }
}  // namespace

// One question: what it finds, and how that is written.
class Notes::Finder {
 public:
  Finder(Json& json, const TraceIndex& index, const Question& question, Work* work)
      : json_(json), index_(index), question_(question), text_(lowered(question.text)), work_(work) {
    if (!question.within) return;
    const CallColumns& calls = index.threads()[question.within->thread].calls;
    rows_ = {question.within->row, subtree_end(calls, question.within->row)};
  }

  /// False: `work` was stopped.
  bool look_at(std::uint32_t number, const std::shared_ptr<const OfThread>& notes) {
    const auto look = [&](bool values) {
      const std::vector<std::uint32_t>& list = notes->list(values);
      const std::size_t first = notes->first_at(list, question_.range.begin);
      const std::size_t last = std::max(first, notes->first_at(list, question_.range.end));
      of_.push_back({number, notes, &list});
      return question_.width != 0 ? add_marks(first, last) : add_notes(first, last);
    };
    return ((question_.groups & kListedGroups) == 0 || look(false)) && (!wants_values(question_) || look(true));
  }

  void write_notes() {
    std::sort(found_.begin(), found_.end(), Before{question_.newest});
    json_.open('{').field("count", count_).key("notes").open('[');
    for (const Found& one : found_) write_note(of_[one.of], of_[one.of][one.at], kMostText);
    json_.close(']').close('}');
  }
  void write_marks() {
    json_.open('{').field("count", count_).field("truncated", truncated_).key("marks").open('[');
    for (const Mark& mark : marks_) write_note(of_[mark.of], of_[mark.of][mark.at], kMostMarkText, &mark);
    json_.close(']').close('}');
  }

 private:
  struct Of {
    std::uint32_t number;
    std::shared_ptr<const OfThread> notes;
    const std::vector<std::uint32_t>* list;  // of `notes`

    const reader::Note& operator[](std::size_t at) const { return notes->calls().notes[(*list)[at]]; }
  };
  struct Found {
    std::uint64_t ticks;
    std::uint32_t of;  // in of_, which is in the order of threads that was asked for
    std::uint32_t at;
  };
  // In the order of the answer.
  struct Before {
    bool newest;
    bool operator()(const Found& a, const Found& b) const {
      const auto key = [](const Found& one) { return std::tuple(one.ticks, one.of, one.at); };
      return newest ? key(b) < key(a) : key(a) < key(b);
    }
  };
  struct Mark {
    std::uint32_t of;
    std::uint32_t at;
    std::uint64_t count;
    std::uint64_t last;  // ticks
  };

  bool filters() const { return !text_.empty() || question_.groups != kListedGroups || question_.within; }

  // A message's.
  std::optional<std::uint32_t> color_of(const ThreadIndex& thread, const reader::Note& note) const {
    if (note.name == 0 || format::kind_of_note(note.kind).group != format::NoteGroup::kMessage) return std::nullopt;
    return analysis::color_of(index_.trace().function(index_.trace().processes()[thread.thread->process], note.name));
  }

  std::string line_of(const Of& of, const reader::Note& note) const {
    return analysis::note_line(index_.trace(), *index_.threads()[of.number].thread, of.notes->calls(), note);
  }

  bool is_wanted(const Of& of, const reader::Note& note) const {
    const format::KindOfNote& kind = format::kind_of_note(note.kind);
    if ((question_.groups >> static_cast<unsigned>(kind.group) & 1U) == 0) return false;
    if (question_.within && (note.row < rows_.first || note.row >= rows_.second)) return false;
    if (text_.empty()) return true;
    const auto has = [&](std::string_view line) {
      return std::search(line.begin(), line.end(), text_.begin(), text_.end(),
                         [](char a, char b) { return lower(a) == b; }) != line.end();
    };
    const std::string_view bytes = of.notes->calls().bytes_of(note);
    // As note_line(), without a copy.
    if (kind.bytes == format::NoteBytes::kText && !bytes.empty()) return has(bytes);
    // The line of a call's values has its function's name, which is not what it says.
    if (kind.is_of_call())
      return has(analysis::note_value(index_.trace(), *index_.threads()[of.number].thread, of.notes->calls(), note));
    return has(line_of(of, note));
  }

  void add(const Found& one) {
    if (found_.size() == question_.limit) {
      if (found_.empty() || !Before{question_.newest}(one, found_.front())) return;
      std::pop_heap(found_.begin(), found_.end(), Before{question_.newest});
      found_.pop_back();
    }
    found_.push_back(one);
    std::push_heap(found_.begin(), found_.end(), Before{question_.newest});
  }

  bool add_notes(std::size_t first, std::size_t last) {
    const auto number = static_cast<std::uint32_t>(of_.size() - 1);
    const Of& of = of_.back();
    const auto found = [&](std::size_t at) { return Found{of[at].ticks, number, static_cast<std::uint32_t>(at)}; };
    if (!filters()) {
      count_ += last - first;
      const std::size_t some = std::min(last - first, question_.limit);
      for (std::size_t i = 0; i < some; ++i) add(found(question_.newest ? last - 1 - i : first + i));
      return go_on(work_, last - first);
    }
    for (std::size_t at = first; at < last; ++at) {
      if ((at - first) % kWorkStep == kWorkStep - 1 && !go_on(work_, kWorkStep)) return false;
      if (!is_wanted(of, of[at])) continue;
      ++count_;
      add(found(at));
    }
    return true;
  }

  bool add_marks(std::size_t first, std::size_t last) {
    const auto number = static_cast<std::uint32_t>(of_.size() - 1);
    const Of& of = of_.back();
    const double pixels = question_.width / (question_.end - question_.begin);
    double pixel = -1;
    for (std::size_t at = first; at < last; ++at) {
      if ((at - first) % kWorkStep == kWorkStep - 1 && !go_on(work_, kWorkStep)) return false;
      const reader::Note& note = of[at];
      if (!is_wanted(of, note)) continue;
      const double here = std::floor(std::max(0.0, index_.since_origin(note.ticks) - question_.begin) * pixels);
      if (here != pixel) {
        if (marks_.size() == kMaxNoteMarks) {
          truncated_ = true;
          return true;
        }
        pixel = here;
        marks_.push_back({number, static_cast<std::uint32_t>(at), 0, 0});
      }
      ++marks_.back().count;
      marks_.back().last = note.ticks;
      ++count_;
    }
    return true;
  }

  // `mark`: that it is the first one of; null: it is one of a list.
  void write_note(const Of& of, const reader::Note& note, std::size_t most, const Mark* mark = nullptr) {
    const ThreadIndex& thread = index_.threads()[of.number];
    json_.open('{').field("time", index_.since_origin(note.ticks)).field("thread", of.number);
    const format::KindOfNote& kind = format::kind_of_note(note.kind);
    json_.field("kind", kind.word).field("group", format::kNoteGroupWords[static_cast<std::size_t>(kind.group)]);
    if (mark != nullptr) {
      json_.field("count", mark->count).field("last", index_.since_origin(mark->last));
    } else {
      const std::string_view name = analysis::note_name(index_.trace(), *thread.thread, note);
      if (!name.empty()) json_.field("name", shortened(name, most));
      const std::string value = analysis::note_value(index_.trace(), *thread.thread, of.notes->calls(), note);
      if (!value.empty()) json_.field("value", shortened(value, most));
    }
    json_.field("line", shortened(line_of(of, note), most));
    if (const auto color = color_of(thread, note)) json_.field("color", *color);
    if (note.row < thread.calls.size())
      json_.field("index", note.row).field("function", index_.function_of(thread, note.row));
    json_.close('}');
  }

  Json& json_;
  const TraceIndex& index_;
  const Question& question_;
  const std::string text_;
  Work* work_;
  std::pair<std::uint32_t, std::uint32_t> rows_{};
  std::vector<Of> of_;
  std::vector<Found> found_;  // a heap, the last one in front
  std::vector<Mark> marks_;
  std::uint64_t count_ = 0;
  bool truncated_ = false;
};

void Notes::write(Json& json, const TraceIndex& index, const Question& question, Work* work) {
  Finder finder(json, index, question, work);
  const auto notes_of = [&](std::uint32_t number) -> std::uint64_t {
    const ThreadIndex& thread = index.threads()[number];
    if (question.within && question.within->thread != number) return 0;
    return wants_values(question) ? std::accumulate(thread.notes.begin(), thread.notes.end(), std::uint64_t{0})
                                  : thread.listed_notes();
  };
  for (const std::uint32_t number : question.threads)
    if (const std::uint64_t count = notes_of(number); count != 0) expect(work, count);
  for (const std::uint32_t number : question.threads) {
    if (notes_of(number) == 0) continue;
    const auto notes = threads_.find(index, index.threads()[number], work);
    if (notes == nullptr || !finder.look_at(number, notes)) return;
  }
  if (question.width != 0) {
    finder.write_marks();
  } else {
    finder.write_notes();
  }
}

}  // namespace karst::engine
