// A thread's notes are put in order of time once; a range of them is then found by bisection, and only a question with
// a text, kinds or a call looks at each. Of all threads the first ones are kept in a heap as large as the answer.
#include "view/api/notes.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <tuple>

#include "analysis/memory.h"
#include "analysis/notes.h"
#include "analysis/selection.h"

namespace karst::view {
namespace {

using format::NoteKind;

constexpr std::size_t kMostText = format::kMostNoteBytes;  // of a name or a value that is told
constexpr std::size_t kMostMarkText = 200;
constexpr int kPlotDecimals = 6;

constexpr std::string_view kGroupNames[kNoteGroups] = {"message", "value",   "frame", "request", "text",
                                                       "record",  "picture", "other", "call",    "color"};

// Those that belong to calls, and are listed when they are asked for.
bool is_values(std::uint32_t kind) { return (kListedGroups >> static_cast<unsigned>(group_of(kind)) & 1U) == 0; }

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

std::string_view name_of(NoteGroup group) { return kGroupNames[static_cast<std::size_t>(group)]; }

std::optional<NoteGroup> note_group_named(std::string_view name) {
  const auto* const at = std::find(std::begin(kGroupNames), std::end(kGroupNames), name);
  if (at == std::end(kGroupNames)) return std::nullopt;
  return static_cast<NoteGroup>(at - std::begin(kGroupNames));
}

NoteGroup group_of(std::uint32_t kind) {
  switch (static_cast<NoteKind>(kind)) {
    case NoteKind::kMessage:
    case NoteKind::kLog:
      return NoteGroup::kMessage;
    case NoteKind::kInteger:
    case NoteKind::kNumber:
      return NoteGroup::kValue;
    case NoteKind::kFrame:
    case NoteKind::kFrameBegin:
      return NoteGroup::kFrame;
    case NoteKind::kPicture:
    case NoteKind::kPicturePart:
      return NoteGroup::kPicture;
    case NoteKind::kColor:
      return NoteGroup::kColor;
    case NoteKind::kRequestBegin:
    case NoteKind::kRequestEnd:
    case NoteKind::kRequest:
      return NoteGroup::kRequest;
    case NoteKind::kText:
      return NoteGroup::kText;
    case NoteKind::kRecord:
      return NoteGroup::kRecord;
    case NoteKind::kArguments:
    case NoteKind::kReturned:
      return NoteGroup::kCall;
    case NoteKind::kFiber:
      break;
  }
  return NoteGroup::kOther;
}

void write_note_counts(Json& json, const ThreadIndex& thread) {
  std::uint64_t counts[kNoteGroups] = {};
  std::uint64_t all = 0;
  for (std::uint32_t kind = 0; kind < thread.notes.size(); ++kind) {
    if (group_of(kind) == NoteGroup::kCall || kind == static_cast<std::uint32_t>(NoteKind::kPicturePart)) continue;
    counts[static_cast<std::size_t>(group_of(kind))] += thread.notes[kind];
    all += thread.notes[kind];
  }
  if (all == 0) return;
  json.key("notes").open('{');
  for (std::size_t group = 0; group < kNoteGroups; ++group)
    if (counts[group] != 0) json.field(kGroupNames[group], counts[group]);
  json.close('}');
}

class Notes::OfThread {
 public:
  explicit OfThread(NotedCalls calls) : calls_(std::move(calls)) {
    const std::vector<reader::Note>& notes = calls_.calls->notes;
    for (std::uint32_t i = 0; i < notes.size(); ++i)
      if (is_values(notes[i].kind))
        values_.push_back(i);
      else if (!analysis::is_aside(notes[i]))
        order_.push_back(i);
    const auto earlier = [&](std::uint32_t a, std::uint32_t b) { return notes[a].ticks < notes[b].ticks; };
    // Unless a clock ran backwards they are in order.
    for (std::vector<std::uint32_t>* list : {&order_, &values_})
      if (!std::is_sorted(list->begin(), list->end(), earlier)) std::stable_sort(list->begin(), list->end(), earlier);
    calls_.keep_notes_only();
  }

  const reader::Calls& calls() const { return *calls_.calls; }
  std::size_t size() const { return order_.size(); }
  const reader::Note& operator[](std::size_t at) const { return calls().notes[order_[at]]; }
  /// Places of those that are listed, or of calls' values, in `calls().notes`.
  const std::vector<std::uint32_t>& list(bool values) const { return values ? values_ : order_; }
  /// In such a list: the first one that is not before `ticks`.
  std::size_t first_at(const std::vector<std::uint32_t>& list, std::uint64_t ticks) const {
    const auto at =
        std::partition_point(list.begin(), list.end(), [&](std::uint32_t i) { return calls().notes[i].ticks < ticks; });
    return static_cast<std::size_t>(at - list.begin());
  }
  std::size_t bytes() const {
    return (order_.capacity() + values_.capacity()) * sizeof(std::uint32_t) + calls_.bytes();
  }

 private:
  NotedCalls calls_;
  std::vector<std::uint32_t> order_;   // of those that are listed, by time
  std::vector<std::uint32_t> values_;  // the same of calls' values
};

Notes::Notes() = default;
Notes::~Notes() = default;

namespace {

bool has_kind(const ThreadIndex& thread, NoteKind kind) { return thread.notes[static_cast<std::size_t>(kind)] != 0; }

bool has_values(const ThreadIndex& thread) {
  return has_kind(thread, NoteKind::kInteger) || has_kind(thread, NoteKind::kNumber);
}

bool is_value(const reader::Note& note) { return group_of(note.kind) == NoteGroup::kValue && note.name != 0; }

// What one plot has in a pixel.
struct PlotPixel {
  std::uint64_t count = 0;
  double least = 0, most = 0, last = 0;
  std::uint64_t last_ticks = 0;

  void add(double value, std::uint64_t ticks) {
    least = count == 0 ? value : std::min(least, value);
    most = count == 0 ? value : std::max(most, value);
    if (count == 0 || ticks >= last_ticks) {
      last = value;
      last_ticks = ticks;
    }
    ++count;
  }
};

}  // namespace

std::shared_ptr<const FrameTracks> Notes::frames(const TraceIndex& index, Work* work) {
  if (auto known = index.frames()) return known;
  analysis::Frames frames(analysis::first_ticks(index.trace()));
  for (const ThreadIndex& thread : index.threads()) {
    if (!has_kind(thread, NoteKind::kFrame) && !has_kind(thread, NoteKind::kFrameBegin)) continue;
    const auto notes = threads_.find(index, thread, work);
    if (notes == nullptr || !go_on(work, notes->size())) return nullptr;
    frames.add(index.trace(), *thread.thread, notes->calls());
  }
  index.set_frames(std::make_shared<FrameTracks>(make_frame_tracks(frames)));
  return index.frames();
}

std::shared_ptr<const std::vector<Series>> Notes::series_of(const TraceIndex& index, Work* work) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto at = series_.find(&index); at != series_.end()) return at->second;
  }
  const auto frames = this->frames(index, work);
  if (frames == nullptr) return nullptr;
  std::map<std::uint32_t, analysis::MemoryFinder> memory;  // by process
  for (const ThreadIndex& thread : index.threads()) {
    if (!has_kind(thread, NoteKind::kRecord)) continue;
    const auto notes = threads_.find(index, thread, work);
    if (notes == nullptr || !go_on(work, notes->size())) return nullptr;
    memory.try_emplace(thread.thread->process, index.trace())
        .first->second.add(*thread.thread, notes->calls(), nullptr);
  }
  auto made = std::make_shared<std::vector<Series>>();
  const Clock& clock = index.trace().clock();
  for (const FrameTrack& track : frames->tracks) {
    Series series{track.process, track.function, SeriesKind::kFrames, {}};
    const CallColumns& calls = track.strip.calls;
    for (std::size_t at = 0; at < calls.size(); ++at)
      if (track.is_marked(at))
        series.samples.push_back({calls.end(at), static_cast<double>(clock.to_ns(calls.duration[at])) / 1e6});
    if (!series.samples.empty()) made->push_back(std::move(series));
  }
  for (auto& [process, finder] : memory) {
    Series series{process, 0, SeriesKind::kMemory, {}};
    for (const analysis::MemoryStep& step : finder.take(std::numeric_limits<std::uint64_t>::max()).steps)
      series.samples.push_back({step.ticks, step.bytes / (1 << 20)});
    if (!series.samples.empty()) made->push_back(std::move(series));
  }
  const std::lock_guard lock(mutex_);
  return series_[&index] = std::move(made);
}

std::vector<Notes::Plot> Notes::plots(const TraceIndex& index, Work* work) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto at = plots_.find(&index); at != plots_.end()) return at->second;
  }
  std::map<std::pair<std::uint32_t, std::uint32_t>, PlotPixel> found;
  for (const ThreadIndex& thread : index.threads()) {
    if (!has_values(thread)) continue;
    const auto notes = threads_.find(index, thread, work);
    if (notes == nullptr || !go_on(work, notes->size())) return {};
    for (std::size_t at = 0; at < notes->size(); ++at) {
      const reader::Note& note = (*notes)[at];
      const double value = is_value(note) ? analysis::note_number(notes->calls(), note) : NAN;
      if (std::isfinite(value)) found[{thread.thread->process, note.name}].add(value, note.ticks);
    }
  }
  std::vector<Plot> plots;
  plots.reserve(found.size());
  for (const auto& [key, sum] : found)
    plots.push_back({key.first, key.second, SeriesKind::kValue, sum.count, sum.least, sum.most, {}});
  std::map<std::uint32_t, std::map<std::string_view, analysis::PlotLook>> looks;  // by process
  for (Plot& plot : plots) {
    const reader::Process& process = index.trace().processes()[plot.process];
    auto of = looks.find(plot.process);
    if (of == looks.end()) of = looks.emplace(plot.process, analysis::plot_looks(process)).first;
    const auto look = of->second.find(index.trace().function(process, plot.name).name);
    if (look != of->second.end()) plot.look = look->second;
  }
  const auto all = series_of(index, work);
  if (all == nullptr) return {};
  for (const Series& series : *all) {
    PlotPixel sum;
    for (const Series::Sample& sample : series.samples) sum.add(sample.value, sample.ticks);
    plots.push_back({series.process, series.name, series.kind, sum.count, sum.least, sum.most, {}});
  }
  if (plots.size() > kMaxPlots) {
    std::stable_sort(plots.begin(), plots.end(), [](const Plot& a, const Plot& b) { return a.count > b.count; });
    plots.resize(kMaxPlots);
  }
  const auto key = [&](const Plot& plot) {
    return std::tuple(plot.process, plot.kind,
                      std::string_view(index.trace().function(index.trace().processes()[plot.process], plot.name).name),
                      plot.name);
  };
  std::sort(plots.begin(), plots.end(), [&](const Plot& a, const Plot& b) { return key(a) < key(b); });
  const std::lock_guard lock(mutex_);
  plots_[&index] = plots;
  return plots;
}

void Notes::write_plots(Json& json, const TraceIndex& index, const std::vector<Plot>& plots,
                        const std::vector<std::uint32_t>& wanted, double begin, double end, std::uint32_t width,
                        Work* work) {
  std::vector<std::vector<PlotPixel>> pixels(wanted.size(), std::vector<PlotPixel>(width));
  std::vector<PlotPixel> before(wanted.size());
  const auto pixel_of = [&](double time) {
    return std::min<std::size_t>(width - 1, static_cast<std::size_t>((time - begin) / (end - begin) * width));
  };
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> place;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const Plot& plot = plots[wanted[i]];
    if (plot.kind == SeriesKind::kValue) {
      place[{plot.process, plot.name}] = i;
      continue;
    }
    const auto all = series_of(index, work);
    if (all == nullptr) return;
    const auto series = std::find_if(all->begin(), all->end(), [&](const Series& one) {
      return one.process == plot.process && one.name == plot.name && one.kind == plot.kind;
    });
    if (series == all->end()) continue;
    const auto first =
        std::partition_point(series->samples.begin(), series->samples.end(),
                             [&](const Series::Sample& sample) { return index.since_origin(sample.ticks) < begin; });
    if (first != series->samples.begin()) before[i].add((first - 1)->value, (first - 1)->ticks);
    for (auto at = first; at != series->samples.end(); ++at) {
      const double time = index.since_origin(at->ticks);
      if (time >= end) break;
      pixels[i][pixel_of(time)].add(at->value, at->ticks);
    }
  }
  for (const ThreadIndex& thread : index.threads()) {
    if (!has_values(thread)) continue;
    const auto notes = threads_.find(index, thread, work);
    if (notes == nullptr) return;
    const auto find_plot = [&](const reader::Note& note) {
      return is_value(note) ? place.find({thread.thread->process, note.name}) : place.end();
    };
    // Its first note that is in the picture.
    const auto time_of = [&](std::size_t at) { return index.since_origin((*notes)[at].ticks); };
    std::size_t first = 0;
    for (std::size_t low = 0, high = notes->size(); low < high; first = low) {
      const std::size_t middle = low + (high - low) / 2;
      if (time_of(middle) < begin) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    for (std::size_t at = first; at < notes->size() && time_of(at) < end; ++at) {
      if ((at - first) % kWorkStep == kWorkStep - 1 && !go_on(work, kWorkStep)) return;
      const reader::Note& note = (*notes)[at];
      const auto of = find_plot(note);
      const double value = of == place.end() ? NAN : analysis::note_number(notes->calls(), note);
      if (!std::isfinite(value)) continue;
      pixels[of->second][pixel_of(time_of(at))].add(value, note.ticks);
    }
    // What each was when the picture begins.
    std::vector<bool> known(wanted.size());
    std::size_t left = wanted.size();
    for (std::size_t at = first; at != 0 && left != 0; --at) {
      if ((first - at) % kWorkStep == kWorkStep - 1 && !go_on(work, kWorkStep)) return;
      const reader::Note& note = (*notes)[at - 1];
      const auto of = find_plot(note);
      if (of == place.end() || known[of->second]) continue;
      const double value = analysis::note_number(notes->calls(), note);
      if (!std::isfinite(value)) continue;
      known[of->second] = true;
      --left;
      before[of->second].add(value, note.ticks);
    }
  }
  json.open('{').key("plots").open('[');
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    json.open('{').field("plot", wanted[i]).key("before");
    if (before[i].count == 0) {
      json.null();
    } else {
      json.value(before[i].last, kPlotDecimals);
    }
    std::vector<std::uint32_t> at;
    for (std::uint32_t pixel = 0; pixel < width; ++pixel)
      if (pixels[i][pixel].count != 0) at.push_back(pixel);
    json.list("at", at, [](std::uint32_t pixel) { return pixel; });
    const auto numbers = [&](const char* name, double PlotPixel::*of) {
      json.key(name).open('[');
      for (const std::uint32_t pixel : at) json.value(pixels[i][pixel].*of, kPlotDecimals);
      json.close(']');
    };
    json.list("count", at, [&](std::uint32_t pixel) { return pixels[i][pixel].count; });
    numbers("min", &PlotPixel::least);
    numbers("max", &PlotPixel::most);
    numbers("last", &PlotPixel::last);
    json.close('}');
  }
  json.close(']').close('}');
}

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
    if (note.name == 0 || group_of(note.kind) != NoteGroup::kMessage) return std::nullopt;
    return analysis::color_of(index_.trace().function(index_.trace().processes()[thread.thread->process], note.name));
  }

  std::string line_of(const Of& of, const reader::Note& note) const {
    return analysis::note_line(index_.trace(), *index_.threads()[of.number].thread, of.notes->calls(), note);
  }

  bool is_wanted(const Of& of, const reader::Note& note) const {
    if ((question_.groups >> static_cast<unsigned>(group_of(note.kind)) & 1U) == 0) return false;
    if (question_.within && (note.row < rows_.first || note.row >= rows_.second)) return false;
    if (text_.empty()) return true;
    const auto has = [&](std::string_view line) {
      return std::search(line.begin(), line.end(), text_.begin(), text_.end(),
                         [](char a, char b) { return lower(a) == b; }) != line.end();
    };
    const std::string_view bytes = of.notes->calls().bytes_of(note);
    const auto kind = static_cast<NoteKind>(note.kind);
    // As note_line(), without a copy.
    if (kind == NoteKind::kText || (kind == NoteKind::kMessage && !bytes.empty())) return has(bytes);
    // The line of a call's values has its function's name, which is not what it says.
    if (is_values(note.kind))
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
    json_.field("kind", analysis::kind_of(note)).field("group", name_of(group_of(note.kind)));
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
    if (!has_kind(thread, NoteKind::kColor)) continue;
    const auto notes = threads_.find(index, thread, work);
    if (notes == nullptr || !go_on(work, notes->list(true).size())) return;
    const CallColumns& calls = thread.calls;
    for (const std::uint32_t place : notes->list(true)) {
      const reader::Note& note = notes->calls().notes[place];
      if (static_cast<NoteKind>(note.kind) != NoteKind::kColor || note.row >= calls.size()) continue;
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
    if (thread.thread->process != track.process || !has_kind(thread, NoteKind::kPicture)) continue;
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

}  // namespace karst::view
