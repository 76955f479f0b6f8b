// SPDX-License-Identifier: MIT
#include "analysis/requests.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "analysis/notes.h"
#include "analysis/parts.h"
#include "analysis/tracing_cost.h"
#include "analysis/waits.h"
#include "columns/scope.h"

namespace karst::analysis {

using format::NoteKind;

std::vector<RequestWork> work_on_requests(const reader::Calls& calls) {
  std::vector<RequestWork> work;
  std::uint64_t id = 0, since = 0;
  const auto until = [&](std::uint64_t ticks) {
    if (id != 0 && ticks > since) work.push_back({id, {since, ticks}});
  };
  for (const reader::Note& note : calls.notes) {
    if (!note.is(NoteKind::kRequest)) continue;
    const std::uint64_t ticks = std::max(note.ticks, since);  // a damaged trace's time may go back
    until(ticks);
    id = note_bits(calls, note);
    since = ticks;
  }
  // What happens at the very last tick is in it.
  until(calls.last_ticks + 1);
  return work;
}

namespace {

constexpr std::uint32_t bit_of(NoteKind kind) { return std::uint32_t{1} << static_cast<std::uint32_t>(kind); }

// Whether a note of the thread, of one of some kinds, is one: is_one(kind, number).
template <typename IsOne>
bool any_note(const reader::Trace& trace, const reader::Thread& thread, std::uint32_t kinds, IsOne&& is_one) {
  reader::EventReader read = trace.event_reader();
  for (const reader::StoredBlock& stored : trace.blocks(thread)) {
    if (!stored.may_have_notes(kinds)) continue;
    const reader::BlockView block = read(stored);
    for (std::size_t i = 0; i < block.events.size(); ++i) {
      if (!event_is(block.events[i], format::Mark::kNoteHead)) continue;
      const format::NoteHead head = format::note_head(block.events[i]);
      if (block.events.size() - i <= head.words) continue;
      std::uint64_t number = 0;
      for (std::uint32_t word = head.words; word != 0; --word)
        number = number << (8 * format::kNoteBytesInWord) | format::note_payload(block.events[i + word]);
      if (is_one(head.kind, number)) return true;
    }
  }
  return false;
}

}  // namespace

bool worked_on(const reader::Trace& trace, const reader::Thread& thread, std::uint64_t id) {
  return any_note(trace, thread, bit_of(NoteKind::kRequest),
                  [id](NoteKind kind, std::uint64_t number) { return kind == NoteKind::kRequest && number == id; });
}

bool tells_of_requests(const reader::Trace& trace, const reader::Thread& thread) {
  constexpr std::uint32_t kRequests =
      bit_of(NoteKind::kRequest) | bit_of(NoteKind::kRequestBegin) | bit_of(NoteKind::kRequestEnd);
  return any_note(trace, thread, kRequests, [](NoteKind kind, std::uint64_t) {
    return kind == NoteKind::kRequest || kind == NoteKind::kRequestBegin || kind == NoteKind::kRequestEnd;
  });
}

bool has_note(const reader::Trace& trace, const reader::Thread& thread, NoteKind kind) {
  return any_note(trace, thread, bit_of(kind), [kind](NoteKind its, std::uint64_t) { return its == kind; });
}

namespace {

// Makes rows of parts of calls.
class Cutter {
 public:
  explicit Cutter(const reader::Calls& from) : from_(from), place_(from.size(), reader::kNoParent) {}

  /// Ranges in order of time, each for a request.
  void add(columns::TickRange range, std::uint64_t id) {
    const columns::RowRange rows = columns::rows_in(columns::CallColumns(from_), range);
    columns::each_row(rows, [&](std::uint32_t row) {
      if (row >= rows.first || from_.begin[row] + from_.duration[row] > range.begin)
        add(row, range, id);
      else
        place_[row] = reader::kNoParent;
    });
    for (; note_ < from_.notes.size() && from_.notes[note_].ticks < range.end; ++note_) {
      reader::Note note = from_.notes[note_];
      if (note.ticks < range.begin) continue;
      if (note.row != reader::kNoParent) note.row = place_[note.row];
      notes_.push_back(note);
    }
  }

  void take(reader::Calls& calls) {
    calls.function = std::move(function_);
    calls.begin = std::move(begin_);
    calls.duration = std::move(duration_);
    calls.parent = std::move(parent_);
    calls.depth = std::move(depth_);
    calls.marks = std::move(marks_);
    calls.notes = std::move(notes_);
  }

 private:
  void add(std::uint32_t row, columns::TickRange range, std::uint64_t id) {
    const std::uint64_t begin = from_.begin[row], end = begin + from_.duration[row];
    std::uint8_t marks = from_.marks[row];
    if (begin < range.begin) marks |= reader::kCallOpenBegin;
    // Only a call that goes on behind a range, or began before it, can be in two.
    if ((begin < range.begin || end > range.end) && !seen_.emplace(row, id).second) marks |= reader::kCallResumed;
    if (end > range.end) {
      constexpr std::uint8_t kEnds = reader::kCallUnwound | reader::kCallJumped | reader::kCallTail;
      marks = static_cast<std::uint8_t>((marks & ~kEnds) | reader::kCallOpenEnd);
    }
    const std::uint32_t parent = from_.parent[row] == reader::kNoParent ? reader::kNoParent : place_[from_.parent[row]];
    place_[row] = static_cast<std::uint32_t>(function_.size());
    constexpr std::uint16_t kDeepest = std::numeric_limits<std::uint16_t>::max();
    const std::uint16_t above = parent == reader::kNoParent ? std::uint16_t{0} : depth_[parent];
    function_.push_back(from_.function[row]);
    begin_.push_back(std::max(begin, range.begin));
    duration_.push_back(range.clip(begin, end));
    parent_.push_back(parent);
    depth_.push_back(parent == reader::kNoParent || above == kDeepest ? above : static_cast<std::uint16_t>(above + 1));
    marks_.push_back(marks);
  }

  const reader::Calls& from_;
  std::vector<std::uint32_t> place_;                        // of each row that the latest range has, among the new ones
  std::set<std::pair<std::uint32_t, std::uint64_t>> seen_;  // rows and requests
  std::size_t note_ = 0;
  reader::Column<std::uint32_t> function_, parent_;
  reader::Column<std::uint64_t> begin_, duration_;
  reader::Column<std::uint16_t> depth_;
  reader::Column<std::uint8_t> marks_;
  std::vector<reader::Note> notes_;
};

}  // namespace

void cut_to_request(reader::Calls& calls, std::uint64_t id) {
  Cutter cutter(calls);
  std::optional<columns::TickRange> all;
  for (const RequestWork& work : work_on_requests(calls)) {
    if (work.id != id) continue;
    cutter.add(work.range, id);
    all = columns::TickRange{all ? all->begin : work.range.begin, work.range.end};
  }
  cutter.take(calls);
  if (!all) all = columns::TickRange{calls.last_ticks, calls.last_ticks};
  calls.first_ticks = std::max(calls.first_ticks, all->begin);
  calls.last_ticks = std::min(calls.last_ticks, all->end);
}

void cut_at_requests(reader::Calls& calls, const std::vector<RequestWork>& work) {
  Cutter cutter(calls);
  std::uint64_t since = 0;
  for (const RequestWork& one : work) {
    if (one.range.begin > since) cutter.add({since, one.range.begin}, 0);
    cutter.add(one.range, one.id);
    since = one.range.end;
  }
  cutter.add({since, columns::TickRange{}.end}, 0);
  cutter.take(calls);
}

// ---- adding up ---------------------------------------------------------------------------------------------------

namespace {

struct SelfTime {
  std::uint32_t function;
  std::uint64_t ticks;  // of calls without what they called; may wrap below 0 meanwhile
};

// Adds up by function, without sorting what may be many calls of few functions. Memory: 8 bytes for each id up to the
// greatest.
class SelfSums {
 public:
  void add(std::uint32_t function, std::uint64_t ticks) {
    if (function >= sums_.size()) sums_.resize(function + std::size_t{1});
    if (sums_[function] == 0) touched_.push_back(function);
    sums_[function] += ticks;
  }
  /// One for each function whose sum is not 0; what comes next begins anew.
  std::vector<SelfTime> take() {
    std::vector<SelfTime> result;
    for (const std::uint32_t function : touched_)  // it may be here twice
      if (const std::uint64_t ticks = std::exchange(sums_[function], 0); ticks != 0)
        result.push_back({function, ticks});
    touched_.clear();
    return result;
  }

 private:
  std::vector<std::uint64_t> sums_;  // by function
  std::vector<std::uint32_t> touched_;
};

// What one thread did for a request in one go.
struct Piece {
  columns::TickRange range;
  const reader::Thread* thread;
  std::uint64_t calls = 0;
  std::uint64_t cost = 0;
  reader::StateTimes states;
  std::vector<SelfTime> self;  // by function
};

struct Notes {
  std::vector<std::uint64_t> begins, ends;
  std::vector<Piece> pieces;
};

}  // namespace

struct RequestFinder::Impl {
  const reader::Trace& trace;
  const FunctionSet* functions;
  std::optional<columns::TickRange> range;
  bool raw;
  StateThreads states{trace};
  SelfSums sums;                                                       // of the piece at hand
  std::map<std::pair<std::uint32_t, std::uint64_t>, Notes> by_number;  // and process

  bool counts(const reader::Thread& thread, std::uint32_t function) const {
    return functions == nullptr || functions->contains(thread.process, function);
  }

  Piece piece_of(const reader::Thread& thread, const reader::Calls& calls, columns::TickRange work) {
    Piece piece{work, &thread, 0, 0, {}, {}};
    const reader::Process& process = trace.processes()[thread.process];
    const CostOfCalls cost(process.cost);
    std::uint64_t taken = 0;
    const columns::CallColumns columns(calls);
    const columns::RowRange rows = columns::rows_in(columns, work);
    const auto add = [&](std::uint32_t row, std::uint64_t ticks) {
      if (counts(thread, calls.function[row])) sums.add(calls.function[row], ticks);
    };
    columns::each_row(rows, [&](std::uint32_t row) {
      const std::uint64_t ticks = work.clip(calls.begin[row], calls.begin[row] + calls.duration[row]);
      const bool fresh = row >= rows.first && columns::is_counted(calls.marks[row]);
      const std::uint64_t inside = fresh && !raw ? cost.inside(columns, row) : 0;
      const std::uint64_t outside = fresh && !raw ? cost.outside() : 0;
      taken += inside + outside;
      if (fresh && counts(thread, calls.function[row])) ++piece.calls;
      // Of what a call costs, `inside` is in its own time and the rest in its caller's.
      add(row, ticks - inside / format::kCallCostUnit);
      if (calls.parent[row] != reader::kNoParent) add(calls.parent[row], 0 - ticks - outside / format::kCallCostUnit);
    });
    piece.self = sums.take();
    piece.cost = std::min(taken / format::kCallCostUnit, work.end - work.begin);
    if (const reader::ThreadStates* of = states.states_of(thread); of != nullptr) {
      piece.states = of->between(work.begin, work.end);
      columns::take_cost_out(piece.states, piece.cost);
    }
    return piece;
  }

  // One for each function.
  static void add_up(std::vector<SelfTime>& self) {
    std::sort(self.begin(), self.end(), [](const SelfTime& a, const SelfTime& b) { return a.function < b.function; });
    std::size_t count = 0;
    for (const SelfTime& one : self) {
      if (count != 0 && self[count - 1].function == one.function)
        self[count - 1].ticks += one.ticks;
      else
        self[count++] = one;
    }
    self.resize(count);
    self.shrink_to_fit();
  }

  Request add_up(std::uint32_t process, std::uint64_t id, const std::vector<const Piece*>& pieces) const {
    Request request;
    request.process = process;
    request.id = id;
    std::vector<const reader::Thread*> threads;
    std::vector<SelfTime> self;
    for (const Piece* piece : pieces) {
      request.worked += piece->range.end - piece->range.begin - piece->cost;
      request.calls += piece->calls;
      threads.push_back(piece->thread);
      self.insert(self.end(), piece->self.begin(), piece->self.end());
      if (trace.states().empty()) continue;
      if (!request.states) request.states.emplace();
      request.states->running += piece->states.running;
      request.states->runnable += piece->states.runnable;
      request.states->blocked += piece->states.blocked;
      request.states->unknown += piece->states.unknown;
    }
    std::sort(threads.begin(), threads.end());
    request.threads = static_cast<std::uint32_t>(std::unique(threads.begin(), threads.end()) - threads.begin());
    add_up(self);
    for (const SelfTime& one : self) {
      if (static_cast<std::int64_t>(one.ticks) <= static_cast<std::int64_t>(request.most_ticks)) continue;
      request.most_in = one.function;
      request.most_ticks = one.ticks;
    }
    return request;
  }

  // The request of that number that begins in [from, to), unless nothing of it is known.
  void add_request(std::uint32_t process, std::uint64_t id, const Notes& notes, std::uint64_t from, std::uint64_t to,
                   std::vector<Request>& requests) const {
    const auto before = [](const Piece& piece, std::uint64_t ticks) { return piece.range.begin < ticks; };
    std::vector<const Piece*> pieces;
    const auto first = std::lower_bound(notes.pieces.begin(), notes.pieces.end(), from, before);
    for (auto piece = first; piece != notes.pieces.end() && piece->range.begin < to; ++piece) pieces.push_back(&*piece);
    const auto begin = std::lower_bound(notes.begins.begin(), notes.begins.end(), from);
    // An end at the very begin of the next one is this one's.
    const auto behind = std::upper_bound(notes.ends.begin(), notes.ends.end(), to);
    const bool begun = begin != notes.begins.end() && *begin < to;
    const bool ended = behind != notes.ends.begin() && (*(behind - 1) > from || from == 0);
    if (!begun && !ended && pieces.empty()) return;
    Request request = add_up(process, id, pieces);
    request.begun = begun;
    request.ended = ended;
    if (ended) request.end = *(behind - 1);
    if (begun) {
      request.begin = *begin;
    } else {
      request.begin = pieces.empty() ? request.end : pieces.front()->range.begin;
      if (ended) request.begin = std::min(request.begin, request.end);
    }
    if (!ended) {
      request.end = request.begin;
      for (const Piece* piece : pieces) request.end = std::max(request.end, piece->range.end);
    }
    request.end = std::max(request.end, request.begin);
    request.idle = idle_of(request.begin, request.end, pieces);
    requests.push_back(request);
  }

  // Ticks of [begin, end) in none of `pieces`, which are in order of their begin.
  static std::uint64_t idle_of(std::uint64_t begin, std::uint64_t end, const std::vector<const Piece*>& pieces) {
    std::uint64_t idle = 0, until = begin;
    for (const Piece* piece : pieces) {
      if (piece->range.begin > until) idle += std::min(piece->range.begin, end) - std::min(until, end);
      until = std::max(until, piece->range.end);
    }
    return idle + (end > until ? end - until : 0);
  }
};

RequestFinder::RequestFinder(const reader::Trace& trace, const FunctionSet* functions,
                             std::optional<columns::TickRange> range, bool raw)
    : impl_(new Impl{.trace = trace, .functions = functions, .range = range, .raw = raw, .sums = {}, .by_number = {}}) {
}
RequestFinder::~RequestFinder() = default;

void RequestFinder::add(const reader::Thread& thread, const reader::Calls& notes, const reader::Calls& calls) {
  for (const reader::Note& note : notes.notes) {
    const bool begin = note.is(NoteKind::kRequestBegin);
    if (!begin && !note.is(NoteKind::kRequestEnd)) continue;
    Notes& of = impl_->by_number[{thread.process, note_bits(notes, note)}];
    (begin ? of.begins : of.ends).push_back(note.ticks);
  }
  for (const RequestWork& work : work_on_requests(notes)) {
    columns::TickRange part = work.range;
    if (impl_->range) part = {std::max(part.begin, impl_->range->begin), std::min(part.end, impl_->range->end)};
    if (part.begin >= part.end) continue;
    impl_->by_number[{thread.process, work.id}].pieces.push_back(impl_->piece_of(thread, calls, part));
  }
}

std::vector<Request> RequestFinder::take() {
  std::vector<Request> requests;
  for (auto& [key, notes] : impl_->by_number) {
    std::sort(notes.begins.begin(), notes.begins.end());
    std::sort(notes.ends.begin(), notes.ends.end());
    std::sort(notes.pieces.begin(), notes.pieces.end(),
              [](const Piece& a, const Piece& b) { return a.range.begin < b.range.begin; });
    // The times from which on it is the next of that number: those begins that an end lies before.
    std::vector<std::uint64_t> starts{0};
    for (const std::uint64_t begin : notes.begins) {
      const auto end = std::upper_bound(notes.ends.begin(), notes.ends.end(), starts.back());
      if (end != notes.ends.end() && *end <= begin) starts.push_back(begin);
    }
    for (std::size_t i = 0; i < starts.size(); ++i)
      impl_->add_request(key.first, key.second, notes, starts[i],
                         i + 1 < starts.size() ? starts[i + 1] : std::numeric_limits<std::uint64_t>::max(), requests);
  }
  return requests;
}

}  // namespace karst::analysis
