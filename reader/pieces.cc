// SPDX-License-Identifier: MIT
// A Rebuilder that sends its rows away in pieces (pieces.h), so that the columns hold the open calls and the latest
// rows alone. A cut lies kHeldBack rows behind the newest one, as the newest rows may still change: short ones are left
// out, and zones move up (move_up()). The callers of the row at the cut stay, and get the numbers 0, 1, ...
#include "reader/pieces.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "reader/held_times.h"
#include "reader/rebuilder.h"
#include "reader/sending.h"

namespace karst::reader {
namespace {

constexpr std::size_t kHeldBack = 64;  // rows that move_up() looks at
constexpr std::size_t kDeepest = std::numeric_limits<std::uint16_t>::max();

/// True where the walker may begin anew: no mark has words behind it that begin a call.
bool begins_call(format::Event event) { return event != 0 && !format::event_is_exit(event); }

/// So many events from `at` on, up to `most` and to the next one that begins a call.
std::size_t events_of_part(std::span<const format::Event> events, std::size_t at, std::size_t most) {
  if (events.size() - at <= most) return events.size() - at;
  std::size_t end = at + most;
  while (end < events.size() && !begins_call(__atomic_load_n(&events[end], __ATOMIC_RELAXED))) ++end;
  return end - at;
}

/// Rows as they are called behind a cut.
class NewRows {
 public:
  NewRows(const std::vector<std::uint32_t>& open, std::size_t cut) : open_(open), cut_(cut) {}
  /// kNoParent: it is gone, or is none.
  std::uint32_t of(std::uint32_t row) const {
    if (row == kNoParent) return row;
    if (row >= cut_) return static_cast<std::uint32_t>(row - cut_ + open_.size());
    const auto at = std::lower_bound(open_.begin(), open_.end(), row);
    return at != open_.end() && *at == row ? static_cast<std::uint32_t>(at - open_.begin()) : kNoParent;
  }
  /// So many of the first `count` rows are still there.
  std::size_t count(std::size_t count) const {
    if (count >= cut_) return count - cut_ + open_.size();
    return static_cast<std::size_t>(std::lower_bound(open_.begin(), open_.end(), count) - open_.begin());
  }
  template <typename T>
  void move(Column<T>& column, std::size_t rows) const {
    T* const data = column.data();
    for (std::size_t i = 0; i < open_.size(); ++i) data[i] = data[open_[i]];
    std::copy(data + cut_, data + rows, data + open_.size());
  }

 private:
  const std::vector<std::uint32_t>& open_;
  const std::size_t cut_;
};

/// Takes the first `count` notes out, with their bytes.
void drop_notes(Calls& calls, std::size_t count) {
  const std::uint64_t bytes = count < calls.notes.size() ? calls.notes[count].bytes : calls.note_bytes.size();
  calls.note_bytes.erase(0, bytes);
  calls.notes.erase(calls.notes.begin(), calls.notes.begin() + static_cast<std::ptrdiff_t>(count));
  for (Note& note : calls.notes) note.bytes -= bytes;
}

}  // namespace

Piece whole_piece(const Calls& calls) {
  return {calls, static_cast<std::uint32_t>(calls.size()), {}, 0, 0, calls.notes.size(), false};
}

Piece last_piece(const Calls& calls) { return {calls, 0, {}, 0, 0, 0, true}; }

void Rebuilder::send_pieces(PieceUse use, std::size_t rows, bool has_gaps) {
  sending_ = std::make_unique<Sending>();
  sending_->use = std::move(use);
  sending_->rows = std::max<std::size_t>(rows, 1);
  sending_->may_overlap = has_gaps;
}

void Rebuilder::know_begins(std::vector<SegmentBegin> begins) {
  sending_->begins = std::move(begins);
  sending_->knows_begins = true;
}

std::vector<Rebuilder::SegmentBegin> Rebuilder::begins() { return std::move(sending_->begins); }

void Rebuilder::begin_sending(std::uint32_t inherited, std::uint8_t inherited_marks) {
  Sending& s = *sending_;
  s.carried = s.parted = 0;
  s.is_first_segment = calls_.events == 0;
  root_ = kNoParent;
  root_depth_ = s.left_unentered = 0;
  if (s.knows_begins && s.segment < s.begins.size() && !s.begins[s.segment].calls.empty()) {
    put_unentered(s.begins[s.segment]);
    s.left_unentered = root_depth_ = rows_;
    root_ = static_cast<std::uint32_t>(rows_ - 1);
  }
  s.inherited_from = rows_;
  s.inherited = inherited;
  s.inherited_marks = inherited_marks;
}

/// As rows 0, 1, ..., outermost first.
void Rebuilder::put_unentered(const SegmentBegin& begin) {
  rows_ = begin.calls.size();
  reserve_rows(0);
  for (std::size_t row = 0; row < rows_; ++row) {
    const Unentered& call = begin.calls[rows_ - 1 - row];
    calls_.function[row] = call.function;
    calls_.begin[row] = begin.first;
    calls_.duration[row] = call.end > begin.first ? call.end - begin.first : 0;
    calls_.parent[row] = row == 0 ? kNoParent : static_cast<std::uint32_t>(row - 1);
    calls_.depth[row] = static_cast<std::uint16_t>(std::min(row, kDeepest));
    calls_.marks[row] = static_cast<std::uint8_t>(kCallOpenBegin | call.marks);
  }
}

/// The innermost of those whose enter is not known has ended.
void Rebuilder::end_unentered() {
  Sending& s = *sending_;
  if (!s.knows_begins) return;
  open_begins_.clear();
  if (s.left_unentered == 0) return;  // others wrote to the file since they were looked for
  root_depth_ = --s.left_unentered;
  root_ = root_depth_ == 0 ? kNoParent : static_cast<std::uint32_t>(root_depth_ - 1);
}

/// Room for so many more, and no more than that where memory may be given back.
void Rebuilder::reserve_rows(std::size_t more) {
  reserved_ = rows_ + more;
  const auto make_room = [&](auto& column) {
    column.set_size(0);
    if (reserved_ > column.capacity()) column.reserve(reserved_ + reserved_ / 2);
    column.set_size(rows_);
  };
  make_room(calls_.function);
  make_room(calls_.begin);
  make_room(calls_.duration);
  make_room(calls_.parent);
  make_room(calls_.depth);
  make_room(calls_.marks);
}

void Rebuilder::walk_and_send(const BlockView& block) {
  Sending& s = *sending_;
  const std::uint64_t seen = seen_;
  std::size_t events = 0;
  for (std::size_t at = 0; at < block.events.size();) {
    const std::size_t count = events_of_part(block.events, at, s.rows);
    reserve_rows(count);
    events += count - walk_some(block.events.data() + at, count, block.ticks);
    seen_ = seen;  // what it allows itself goes by whole blocks
    at += count;
    // Each cut costs as much as is open, and as many places as are known.
    const std::size_t least = std::max(s.rows, 2 * (s.carried + memory_.places().size()));
    if (rows_ > s.carried + kHeldBack + least) send(rows_ - kHeldBack);
  }
  seen_ = seen + events;
  calls_.events += events;
}

void Rebuilder::end_sending() {
  Sending& s = *sending_;
  send(rows_);
  if (!s.knows_begins) {
    s.begins.resize(s.segment + 1);
    s.begins.back() = {std::move(open_begins_), first_};
    open_begins_.clear();
    if (s.use && !s.begins.back().calls.empty()) {
      put_unentered(s.begins.back());
      s.holder.reset();  // they begin before what was sent
      s.carried = s.parted = s.inherited = 0;
      send(rows_);
      s.begins.back().calls = {};
    }
  }
  ++s.segment;
}

void Rebuilder::send(std::size_t cut) {
  Sending& s = *sending_;
  s.open.clear();
  if (cut < rows_)
    for (std::uint32_t row = calls_.parent[cut]; row != kNoParent; row = calls_.parent[row]) s.open.push_back(row);
  std::reverse(s.open.begin(), s.open.end());
  for (; s.inherited != 0 && s.inherited_from < rows_; --s.inherited)
    calls_.marks[s.inherited_from++] |= s.inherited_marks;
  if (s.use)
    use_piece(cut);
  else
    drop_notes(calls_, calls_.notes.size());
  forget_rows(cut);
}

void Rebuilder::use_piece(std::size_t cut) {
  Sending& s = *sending_;
  if (s.is_first_segment) calls_.first_ticks = first_;
  const auto set_size = [this](auto&... columns) { (columns.set_size(rows_), ...); };
  set_size(calls_.function, calls_.begin, calls_.duration, calls_.parent, calls_.depth, calls_.marks);
  count_oddities();
  if (calls_.unknown_ids != 0 || !calls_.notes.empty()) bound_ids();
  const auto later = std::find_if(calls_.notes.begin(), calls_.notes.end(),
                                  [cut](const Note& note) { return note.row != kNoParent && note.row >= cut; });
  const auto notes = static_cast<std::size_t>(later - calls_.notes.begin());
  // Times that were sent before are in order, so those of what is carried are held already.
  if (!s.holder && (s.may_overlap || switching_ || calls_.out_of_order != 0)) {
    s.holder.emplace(calls_.first_ticks);
    s.holder->hold(calls_, 0, s.carried);
  }
  if (s.holder) {
    s.holder->hold(calls_, s.carried, cut);
    s.holder->end_up_to(calls_, s.open.empty() ? kNoParent : s.open.back());
    s.holder->hold_notes(calls_, notes);
  }
  s.real.clear();
  for (const std::uint32_t row : s.open) {
    s.real.push_back(calls_.duration[row]);
    calls_.duration[row] = ~calls_.begin[row];
  }
  s.use({calls_, static_cast<std::uint32_t>(cut), s.open, static_cast<std::uint32_t>(s.carried),
         static_cast<std::uint32_t>(s.parted), notes, false},
        calls_);
  for (std::size_t i = 0; i < s.open.size(); ++i) calls_.duration[s.open[i]] = s.real[i];
  if (s.holder) s.holder->number_rows_anew();
  drop_notes(calls_, notes);
}

void Rebuilder::forget_rows(std::size_t cut) {
  Sending& s = *sending_;
  const NewRows rows(s.open, cut);
  // A call stays, however short, when calls within it were sent.
  std::size_t parted = 0;
  for (std::size_t i = 0; i < s.open.size(); ++i) {
    const std::size_t next = i + 1 < s.open.size() ? s.open[i + 1] : cut;
    if (next != s.open[i] + std::size_t{1} || s.open[i] < s.parted) parted = i + 1;
  }
  // Places that are named by a call that is gone. One that was cut stands for its caller's (standing()).
  std::unordered_map<std::uint32_t, walk::Place> known;
  const auto place_of = [&](walk::Place place) {
    std::vector<std::uint32_t> passed;
    while (place.depth != 0 && place.serial != kNoParent) {
      if (const std::uint32_t row = rows.of(place.serial); row != kNoParent) {
        place.serial = row;
        break;
      }
      if (const auto at = known.find(place.serial); at != known.end()) {
        place = at->second;
        break;
      }
      passed.push_back(place.serial);
      const bool stands = switching_ && call_is_cut(calls_.marks[place.serial]);
      place = stands ? walk::Place{place.depth - 1, calls_.parent[place.serial]} : walk::Place{place.depth, kNoParent};
    }
    for (const std::uint32_t row : passed) known.insert_or_assign(row, place);
    return place;
  };
  memory_.each_place([&](walk::Place& place) { place = place_of(place); });
  moved_.clear();
  for (std::size_t i = 0; i < top_; ++i) memory_.stack()[i].serial = rows.of(memory_.stack()[i].serial);
  for (Note& note : calls_.notes) note.row = rows.of(note.row);
  for (std::size_t row = cut; row < rows_; ++row) calls_.parent[row] = rows.of(calls_.parent[row]);
  const auto move = [&](auto&... columns) { (rows.move(columns, rows_), ...); };
  move(calls_.function, calls_.begin, calls_.duration, calls_.parent, calls_.depth, calls_.marks);
  for (std::size_t i = 0; i < s.open.size(); ++i)
    calls_.parent[i] = i == 0 ? kNoParent : static_cast<std::uint32_t>(i - 1);
  keep_rows_ = std::max(parted, rows.count(keep_rows_));
  s.inherited_from = rows.count(s.inherited_from);
  rows_ = rows.count(rows_);
  s.carried = s.open.size();
  s.parted = parted;
}

Calls Rebuilder::finish_pieces(std::uint64_t missing_blocks) {
  rows_ = 0;
  reserve_rows(0);
  count_oddities();
  calls_.missing_blocks = missing_blocks;
  if (sending_->use) sending_->use(last_piece(calls_), calls_);
  return std::move(calls_);
}

}  // namespace karst::reader
