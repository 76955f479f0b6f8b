// Pieces of a thread's calls say what all of its calls say, wherever they are cut and whatever the events are.
#include "reader/pieces.h"

#include <gtest/gtest.h>

#include <random>

#include "format/note.h"
#include "reader/switches.h"
#include "test/reader/small_trace.h"
#include "write/trace_writer.h"

namespace karst::test {
namespace {

using format::Event;
using format::Mark;
using reader::Calls;
using reader::kNoParent;
using reader::Piece;

struct Row {
  std::uint32_t function;
  std::uint64_t begin, duration;
  std::uint32_t parent, depth;
  unsigned marks;
  bool operator==(const Row&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Row& row) {
  return out << "{" << row.function << ", " << row.begin << ", " << row.duration << ", "
             << static_cast<std::int32_t>(row.parent) << ", " << row.depth << ", " << row.marks << "}";
}
struct SaidNote {
  std::uint64_t ticks;
  std::uint32_t row, name, kind;
  std::string bytes;
  bool operator==(const SaidNote&) const = default;
};
std::ostream& operator<<(std::ostream& out, const SaidNote& note) {
  return out << note.ticks << " in " << static_cast<std::int32_t>(note.row) << ": " << note.name << " " << note.bytes;
}

Row row_of(const Calls& calls, std::size_t row) {
  return {calls.function[row], calls.begin[row], calls.duration[row],
          calls.parent[row],   calls.depth[row], calls.marks[row]};
}

SaidNote note_of(const Calls& calls, const reader::Note& note) {
  return {note.ticks, note.row, note.name, note.kind, std::string(calls.bytes_of(note))};
}

std::vector<std::uint64_t> sums(const Calls& c) {
  return {c.events,        c.out_of_order, c.unmatched_exits, c.missing_exits, c.unknown_ids, c.missing_blocks,
          c.strange_jumps, c.short_calls,  c.ignored,         c.beyond_limit,  c.first_ticks, c.last_ticks};
}

struct All {
  std::vector<Row> rows;
  std::vector<SaidNote> notes;
  std::vector<std::uint64_t> sums;
};

All whole(const reader::Trace& trace, const reader::Thread& thread) {
  const Calls calls = reader::rebuild_calls(trace, thread);
  All all{{}, {}, sums(calls)};
  for (std::size_t row = 0; row < calls.size(); ++row) all.rows.push_back(row_of(calls, row));
  for (const reader::Note& note : calls.notes) all.notes.push_back(note_of(calls, note));
  return all;
}

/// Puts pieces together again.
class Joiner {
 public:
  void add(const Piece& piece) {
    if (piece.last) {
      all_.sums = sums(piece.calls);
      return;
    }
    ++pieces_;
    ASSERT_EQ(piece.carried, numbers_.size());
    ASSERT_LE(piece.end, piece.calls.size());
    for (std::uint32_t row = piece.carried; row < piece.end; ++row) {
      numbers_.push_back(static_cast<std::uint32_t>(rows_.size()));
      rows_.emplace_back();
    }
    reader::each_sent(piece, [&](std::uint32_t row) {
      Row sent = row_of(piece.calls, row);
      if (sent.parent != kNoParent) sent.parent = numbers_.at(sent.parent);
      EXPECT_FALSE(rows_[numbers_[row]].has_value());
      rows_[numbers_[row]] = sent;
    });
    for (std::size_t i = 0; i < piece.notes; ++i) {
      all_.notes.push_back(note_of(piece.calls, piece.calls.notes[i]));
      std::uint32_t& row = all_.notes.back().row;
      if (row != kNoParent) row = numbers_.at(row);
    }
    std::vector<std::uint32_t> open;
    for (const std::uint32_t row : piece.open) open.push_back(numbers_.at(row));
    numbers_ = std::move(open);
  }
  /// Without rows that were open between pieces and were left out then, as they were short.
  All take() {
    std::vector<std::uint32_t> number(rows_.size(), kNoParent);
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      if (!rows_[row]) continue;
      number[row] = static_cast<std::uint32_t>(all_.rows.size());
      all_.rows.push_back(*rows_[row]);
      std::uint32_t& parent = all_.rows.back().parent;
      if (parent != kNoParent) parent = number[parent];
    }
    for (SaidNote& note : all_.notes)
      if (note.row != kNoParent) note.row = number[note.row];
    return std::move(all_);
  }
  std::size_t pieces() const { return pieces_; }

 private:
  All all_;
  std::vector<std::optional<Row>> rows_;
  std::vector<std::uint32_t> numbers_;  // of the rows at hand
  std::size_t pieces_ = 0;
};

std::size_t compare(const reader::Trace& trace, std::size_t rows) {
  std::size_t pieces = 0;
  Calls used;
  for (const reader::Process& process : trace.processes()) {
    for (const reader::Thread& thread : process.threads) {
      Joiner joiner;
      reader::PieceOptions options;
      options.rows = rows;
      used = each_piece(
          trace, thread, options, [&](const Piece& piece, Calls&) { joiner.add(piece); }, std::move(used));
      const All expected = whole(trace, thread), found = joiner.take();
      EXPECT_EQ(found.rows, expected.rows);
      EXPECT_EQ(found.notes, expected.notes);
      EXPECT_EQ(found.sums, expected.sums);
      pieces += joiner.pieces();
    }
  }
  return pieces;
}

/// Makes events that may be anything, though many of them fit.
class Events {
 public:
  Events(std::uint32_t seed, unsigned odd) : random_(seed), odd_(odd) {}

  std::vector<Event> make(std::size_t count) {
    std::vector<Event> events;
    while (events.size() < count) add(events);
    return events;
  }
  std::uint64_t ticks() const { return ticks_; }

 private:
  std::uint32_t below(std::uint32_t most) { return static_cast<std::uint32_t>(random_() % most); }

  void add(std::vector<Event>& events) {
    ticks_ += below(4) == 0 ? below(300) : below(20);
    if (below(1000) < odd_) return add_odd(events);
    if (below(2) == 0 && stack_.size() < 200) {
      stack_.push_back(1 + below(17));
      events.push_back(enter(ticks_, stack_.back()));
    } else if (!stack_.empty()) {
      events.push_back(leave(ticks_, stack_.back()));
      stack_.pop_back();
    } else {
      events.push_back(leave(ticks_, 1 + below(4)));
    }
  }

  void add_odd(std::vector<Event>& events) {
    const Event place = format::make_place(std::uint64_t{1 + below(6)} << 4);
    switch (below(10)) {
      case 0:
        return events.push_back(0);
      case 1:
        return events.push_back(leave(ticks_, 1 + below(20)));
      case 2:
        events.push_back(format::make_mark(ticks_, Mark::kUnwound));
        if (!stack_.empty()) return events.push_back(leave(ticks_, stack_.back())), stack_.pop_back();
        return;
      case 3:
        return events.push_back(format::make_place(std::uint64_t{1 + below(6)} << 4, Mark::kSetPlace));
      case 4:
        events.push_back(format::make_mark(ticks_, Mark::kJumped));
        return events.push_back(place);
      case 5:
        events.push_back(format::make_mark(ticks_, Mark::kSwitched));
        events.push_back(place);
        return events.push_back(format::make_place(std::uint64_t{1 + below(6)} << 4));
      case 6:
        events.push_back(format::make_mark(ticks_, Mark::kNote));
        events.push_back(format::make_note_head({format::NoteKind::kText, below(20), 1}));
        return events.push_back(format::make_note_word(below(1 << 16)));
      case 7:
        return events.push_back(enter(ticks_ - std::min<std::uint64_t>(ticks_, below(500)), 1 + below(8)));
      case 8:  // many calls end, or nobody sees it
        return stack_.resize(below(static_cast<std::uint32_t>(stack_.size()) + 1));
      default:
        return events.push_back(Event{random_()} << 32 | random_());
    }
  }

  std::mt19937 random_;
  const unsigned odd_;
  std::uint64_t ticks_ = 1000;
  std::vector<std::uint32_t> stack_;
};

/// Ids 5 to 8 are the second ids of 1 to 4, 11 to 15 loose zones.
std::vector<reader::Function> functions() {
  std::vector<reader::Function> functions;
  for (std::uint32_t id = 1; id <= 16; ++id) {
    reader::Function f;
    f.id = id;
    f.tail_exit = id > 4 && id < 9;
    f.tail_return = id == 6;
    f.address = 0x1000 + (f.tail_exit ? id - 4 : id) * 16;
    f.note = id > 10;
    functions.push_back(f);
  }
  return functions;
}

reader::Trace random_trace(std::uint32_t seed, Bytes& bytes) {
  std::mt19937 random(seed);
  const auto one_in = [&random](unsigned n) { return random() % n == 0; };
  auto writer = writing::TraceWriter::to_memory(bytes);
  reader::Process process;
  process.min_duration_ticks = one_in(3) ? 15 : 0;
  writer.add_processes({&process, 1});
  writer.add_functions(0, functions());
  writer.add_symbols(0, functions());
  reader::Thread thread;
  thread.inherited = one_in(4) ? static_cast<std::uint32_t>(random() % 300) : 0;
  writer.add_threads(0, {&thread, 1});
  writer.add_mode(process);
  std::vector<reader::Switch> switches;
  for (std::uint64_t at = 1500; one_in(4) && at < 40000; at += 1 + random() % 9000)
    switches.push_back({at, at + random() % 50, static_cast<std::uint32_t>(random() % 6),
                        static_cast<std::uint32_t>(1 + random() % 3), one_in(2), 0});
  writer.add_switches(0, switches);
  Events events(seed, one_in(3) ? 0 : one_in(2) ? 30 : 300);
  std::uint64_t sequence = one_in(2) ? 0 : 7;
  for (int i = 0; i < 6; ++i) {
    const auto block = events.make(1 + random() % 900);
    writer.add_block(0, 0, sequence, 0, block);
    sequence += one_in(8) ? 3 : 1;
  }
  EXPECT_TRUE(writer.finish().ok());
  auto trace = reader::Trace::open_memory(bytes, "t");
  EXPECT_TRUE(trace.ok());
  return std::move(*trace);
}

TEST(Pieces, AddUpToTheWholeWhateverTheEventsAre) {
  std::size_t pieces = 0;
  for (std::uint32_t seed = 0; seed < 400 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Bytes bytes;
    const reader::Trace trace = random_trace(seed, bytes);
    for (const std::size_t rows : {1, 7, 100, 1 << 15}) {
      SCOPED_TRACE(rows);
      pieces += compare(trace, rows);
    }
  }
  EXPECT_GT(pieces, 20000U);
}

TEST(Pieces, WithoutATreeEachCallComesOnce) {
  for (std::uint32_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    Bytes bytes;
    const reader::Trace trace = random_trace(seed, bytes);
    const reader::Thread& thread = trace.processes().at(0).threads.at(0);
    reader::PieceOptions options;
    options.rows = 10;
    options.is_tree = false;
    std::map<std::pair<std::uint32_t, unsigned>, std::uint64_t> expected, found;
    each_piece(trace, thread, options, [&](const Piece& piece, Calls&) {
      each_sent(piece, [&](std::uint32_t row) { ++found[{piece.calls.function[row], piece.calls.marks[row]}]; });
    });
    for (const Row& row : whole(trace, thread).rows) ++expected[{row.function, row.marks}];
    EXPECT_EQ(found, expected);
  }
}

TEST(Pieces, HaveNoMoreRowsThanWereAskedForAndAreOpen) {
  Bytes bytes;
  auto writer = writing::TraceWriter::to_memory(bytes);
  writer.add_functions(0, functions());
  std::vector<Event> events;
  for (std::uint64_t at = 0; at < 50; ++at) events.push_back(enter(at, 1));
  for (std::uint64_t at = 0; at < 100'000; ++at) {
    events.push_back(enter(100 + 2 * at, 2));
    events.push_back(leave(101 + 2 * at, 2));
  }
  writer.add_block(0, 0, 0, 0, events);
  ASSERT_TRUE(writer.finish().ok());
  const auto trace = reader::Trace::open_memory(bytes, "t");
  ASSERT_TRUE(trace.ok());
  std::size_t most = 0, pieces = 0;
  reader::PieceOptions options;
  options.rows = 1000;
  each_piece(*trace, trace->processes().at(0).threads.at(0), options, [&](const Piece& piece, Calls& calls) {
    most = std::max(most, calls.function.capacity());
    pieces += piece.last ? 0 : 1;
  });
  EXPECT_LE(most, 5000U);
  EXPECT_GT(pieces, 50U);
}

TEST(Pieces, OfAThreadWithoutEventsIsOneTheLast) {
  Bytes bytes;
  auto writer = writing::TraceWriter::to_memory(bytes);
  const reader::Thread thread;
  writer.add_threads(0, {&thread, 1});
  ASSERT_TRUE(writer.finish().ok());
  const auto trace = reader::Trace::open_memory(bytes, "t");
  ASSERT_TRUE(trace.ok());
  std::vector<bool> last;
  each_piece(*trace, trace->processes().at(0).threads.at(0), {},
             [&](const Piece& piece, Calls&) { last.push_back(piece.last); });
  EXPECT_EQ(last, std::vector<bool>{true});
}

}  // namespace
}  // namespace karst::test
