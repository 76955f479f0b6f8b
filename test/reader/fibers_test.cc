// Fibers: what becomes of the events of threads that work on them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "format/note.h"
#include "reader/trace.h"
#include "test/reader/small_trace.h"
#include "write/trace_writer.h"

namespace karst::test {
namespace {

using format::Event;
using format::Mark;
using reader::Calls;

constexpr std::uint32_t kSuspended = 9;

using Words = std::vector<Event>;

void add(Words& words, std::initializer_list<Words> parts) {
  for (const Words& part : parts) words.insert(words.end(), part.begin(), part.end());
}
Words in(std::uint64_t ticks, std::uint32_t id) { return {enter(ticks, id)}; }
Words out(std::uint64_t ticks, std::uint32_t id) { return {leave(ticks, id)}; }

Words fiber(std::uint64_t ticks, std::uint64_t left, std::uint64_t entered, const std::string& name = {}) {
  constexpr std::uint64_t kLow = (std::uint64_t{1} << 40) - 1;
  std::vector<std::uint64_t> payloads{left & kLow, left >> 40, entered & kLow, entered >> 40};
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (i % 5 == 0) payloads.push_back(0);
    payloads.back() |= std::uint64_t{static_cast<unsigned char>(name[i])} << (i % 5 * 8);
  }
  Words words{
      format::make_mark(ticks, Mark::kNote),
      format::make_note_head({format::NoteKind::kFiber, kSuspended, static_cast<std::uint32_t>(payloads.size())})};
  for (const std::uint64_t payload : payloads) words.push_back(format::make_note_word(payload));
  return words;
}

Words switched(std::uint64_t ticks, std::uint64_t from, std::uint64_t to) {
  return {format::make_mark(ticks, Mark::kSwitched), format::make_place(from), format::make_place(to)};
}

struct Piece {
  std::uint64_t sequence;
  Words words;
};

std::uint64_t ticks_of(const Words& words) {
  return words.empty() || !format::event_has_time(words[0]) ? 1 : format::event_ticks(words[0], 0);
}

/// Functions 1 to 8, and that of fibers' notes.
class Program {
 public:
  std::vector<std::vector<Piece>> threads;
  std::vector<reader::Switch> switches;

  reader::Trace open() {
    bytes_.clear();
    auto writer = writing::TraceWriter::to_memory(bytes_);
    reader::Module code;
    reader::Module fibers;
    fibers.index = 1;
    fibers.path = format::kFibersModule;
    writer.add_modules(0, std::vector{code, fibers});
    std::vector<reader::Function> functions;
    for (std::uint32_t id = 1; id <= kSuspended; ++id) {
      reader::Function f;
      f.id = id;
      f.note = id == kSuspended;
      f.module = f.note ? 1 : 0;
      f.name = f.note ? format::kSuspended : fmt::format("f{}", id);
      functions.push_back(f);
    }
    writer.add_functions(0, functions);
    writer.add_symbols(0, functions);
    if (!switches.empty()) writer.add_switches(0, switches);
    std::vector<reader::Thread> table;
    for (std::uint32_t i = 0; i < threads.size(); ++i) {
      reader::Thread thread;
      thread.index = i;
      thread.tid = 100 + i;
      thread.name = fmt::format("t{}", i);
      thread.joined_ticks = 1;
      table.push_back(thread);
    }
    writer.add_threads(0, table);
    for (std::uint32_t i = 0; i < threads.size(); ++i)
      for (const Piece& piece : threads[i]) writer.add_block(0, i, piece.sequence, ticks_of(piece.words), piece.words);
    EXPECT_TRUE(writer.finish().ok());
    auto trace = reader::Trace::open_memory(bytes_, "t");
    EXPECT_TRUE(trace.ok());
    return std::move(*trace);
  }

  /// "NAME: FUNCTION BEGIN+DURATION MARKS, ..." of each lane, deeper calls behind more dots.
  std::vector<std::string> lanes() {
    const reader::Trace trace = open();
    std::vector<std::string> lines;
    const reader::Process& process = trace.processes()[0];
    for (const reader::Thread& thread : process.threads) {
      const Calls calls = reader::rebuild_calls(trace, thread);
      std::string line = thread.name + ":";
      for (std::size_t row = 0; row < calls.size(); ++row)
        line += fmt::format(" {}{} {}+{}{}{},", std::string(calls.depth[row], '.'),
                            trace.function(process, calls.function[row]).name, calls.begin[row], calls.duration[row],
                            (calls.marks[row] & reader::kCallOpenBegin) != 0 ? "<" : "",
                            (calls.marks[row] & reader::kCallOpenEnd) != 0 ? ">" : "");
      if (line.back() == ',') line.pop_back();
      if (calls.unmatched_exits + calls.missing_exits != 0) line += " odd";
      lines.push_back(line);
    }
    return lines;
  }

 private:
  Bytes bytes_;
};

using Lanes = std::vector<std::string>;

Lanes told_of_fibers(const reader::Trace& trace) {
  Lanes told;
  for (const reader::Problem& problem : trace.problems())
    if (problem.message.find("fiber") != std::string::npos) told.push_back(problem.message);
  return told;
}

TEST(Fibers, GoOnInAnotherThread) {
  Words first;
  add(first, {in(10, 1), fiber(20, 0, 7, "A"), in(30, 2), in(40, 3), fiber(50, 7, 0), out(60, 1)});
  Words second;
  add(second, {in(70, 1), fiber(80, 0, 7, "A"), out(90, 3), out(100, 2), fiber(110, 7, 0), out(120, 1)});
  Program program;
  program.threads = {{{0, first}}, {{0, second}}};
  EXPECT_EQ(program.lanes(), (Lanes{"t0: f1 10+50, .[fiber A] 20+30", "t1: f1 70+50, .[fiber A] 80+30",
                                    "A: f2 30+70, .f3 40+50, ..[suspended] 50+30"}));
  const reader::Trace trace = program.open();
  EXPECT_EQ(told_of_fibers(trace), Lanes());
  const reader::Thread& lane = trace.processes()[0].threads.back();
  EXPECT_TRUE(lane.fiber);
  EXPECT_EQ(lane.tid, reader::kFirstFiberTid);
}

TEST(Fibers, GoFromOneToTheNextAndEnd) {
  Words words;
  add(words, {fiber(10, 0, 7, "A"), in(20, 1), fiber(30, 7, 8, "B"), in(40, 2), out(50, 2), fiber(60, 8, 7, "A"),
              in(70, 3), out(80, 3), fiber(90, 7, 0)});
  Program program;
  program.threads = {{{0, words}}};
  // One whose calls have ended waits for nothing; one that has some open is suspended to the end.
  EXPECT_EQ(program.lanes(), (Lanes{"t0: [fiber A] 10+20, [fiber B] 30+30, [fiber A] 60+30",
                                    "A: f1 20+70>, .[suspended] 30+30, .f3 70+10, .[suspended] 90+0>", "B: f2 40+10"}));
}

TEST(Fibers, ANumberThatIsUsedAgainIsAnotherFiber) {
  Words words;
  add(words, {fiber(10, 0, 7, "A"), in(20, 1), out(30, 1), fiber(40, 7, 0), fiber(50, 0, 7, "B"), in(60, 1),
              fiber(70, 7, 0), fiber(80, 0, 7, "C"), out(90, 1), fiber(95, 7, 0)});
  Program program;
  program.threads = {{{0, words}}};
  // B has calls open when it gets another name: it is the same.
  EXPECT_EQ(program.lanes(), (Lanes{"t0: [fiber A] 10+30, [fiber B] 50+20, [fiber C] 80+15", "A: f1 20+10",
                                    "B: f1 60+30, .[suspended] 70+10"}));
}

TEST(Fibers, WithoutNamesAreTheirNumbers) {
  Words words;
  add(words, {fiber(10, 0, 0xfedcba9876543210, ""), in(20, 1), out(30, 1), fiber(40, 0xfedcba9876543210, 0)});
  Program program;
  program.threads = {{{0, words}}};
  EXPECT_EQ(program.lanes(), (Lanes{"t0: [fiber] 10+30", "fiber 0xfedcba9876543210: f1 20+10"}));
}

TEST(Fibers, TheOldestNoteTellsWhoseCallsTheRingKept) {
  Words words;
  add(words, {out(10, 3), out(20, 2), fiber(30, 7, 0), in(40, 1), out(50, 1), fiber(60, 0, 7, "A"), out(70, 1),
              fiber(80, 7, 0)});
  Program program;
  program.threads = {{{5, words}}};
  EXPECT_EQ(program.lanes(), (Lanes{"t0: [fiber A] 10+20<, f1 40+10, [fiber A] 60+20",
                                    "A: f1 10+60<, .f2 10+10<, ..f3 10+0<, .[suspended] 30+30"}));
}

TEST(Fibers, WhereEventsAreLostNothingIsTakenForWhole) {
  Words first;
  add(first, {fiber(10, 0, 7, "A"), in(20, 1), fiber(30, 7, 0)});
  Words behind;
  add(behind, {fiber(60, 0, 7, "A"), in(70, 2), out(80, 2), out(90, 1), fiber(95, 7, 0)});
  Words elsewhere;
  add(elsewhere, {in(35, 4), out(40, 4)});
  Words after;
  add(after, {in(50, 4), out(55, 4)});
  Program program;
  program.threads = {{{0, first}, {1, behind}}, {{0, elsewhere}, {1, after}}};
  EXPECT_EQ(program.lanes().back(), "A: f1 20+70, .[suspended] 30+30, .f2 70+10");
  program.threads = {{{0, first}, {1, behind}}, {{0, elsewhere}, {3, after}}};
  EXPECT_EQ(program.lanes().back(), "A: f1 20+10>, f1 60+30<, .f2 70+10");
  program.threads = {{{0, first}, {2, behind}}};
  EXPECT_EQ(program.lanes().back(), "A: f1 20+10>, f1 60+30<, .f2 70+10");
}

TEST(Fibers, BehindATimeWithoutTracingTheNextNoteTells) {
  Words words;
  add(words, {fiber(10, 0, 7, "A"), in(20, 1), in(60, 2), out(70, 2), fiber(80, 8, 0), fiber(90, 0, 8, "B"), in(95, 3),
              out(96, 3), fiber(97, 8, 0)});
  Program program;
  program.threads = {{{0, words}}};
  program.switches = {{30, 31, 0, 0, false, 0}, {40, 41, 0, 0, true, 0}};
  const Lanes lanes = program.lanes();
  ASSERT_EQ(lanes.size(), 3U);
  EXPECT_EQ(lanes[1], "A: f1 20+10>");
  EXPECT_EQ(lanes[2], "B: f2 60+10, [suspended] 80+10, f3 95+1");
}

TEST(Fibers, ASwitchOfStacksBesideANoteIsTheSame) {
  Program program;
  Words words;
  add(words, {in(5, 1), fiber(10, 0, 7, "A"), switched(11, 0x1000, 0x2000), in(20, 2), switched(29, 0x2100, 0x1000),
              fiber(30, 7, 0), switched(35, 0x1000, 0x2100), fiber(40, 0, 7, "A"), out(50, 2), fiber(60, 7, 0),
              switched(61, 0x2000, 0x1000), out(70, 1)});
  program.threads = {{{0, words}}};
  EXPECT_EQ(program.lanes(),
            (Lanes{"t0: f1 5+65, .[fiber A] 10+20, .[fiber A] 40+20", "A: f2 20+30, .[suspended] 30+10"}));
}

TEST(Fibers, GoOnBehindAPad) {
  Words words;
  add(words, {fiber(10, 0, 7, "A"), in(20, 1), in(30, 2), {format::make_mark(1, Mark::kPad)}});
  Words behind;
  add(behind, {out(50, 2), fiber(60, 7, 0)});
  Program program;
  program.threads = {{{0, words}, {2, behind}}};
  EXPECT_EQ(program.lanes(), (Lanes{"t0: [fiber A] 10+20>, [fiber A] 50+10<", "A: f1 20+10>, .f2 30+0>, f2 50+0<"}));
}

TEST(Fibers, HaveLeftAThreadThatTellsOfItLateOrNever) {
  for (const bool never : {false, true}) {
    Words words;
    add(words, {fiber(10, 0, 7, "A"), in(20, 1)});
    if (!never) add(words, {fiber(60, 7, 0), in(70, 2), out(80, 2)});
    Words other;
    add(other, {fiber(30, 0, 7, "A"), out(50, 1), fiber(55, 7, 0)});
    Program program;
    program.threads = {{{0, words}}, {{0, other}}};
    EXPECT_TRUE(told_of_fibers(program.open()).empty());
    Lanes expected = {"t0: [fiber A] 10+20, f2 70+10", "t1: [fiber A] 30+25", "A: f1 20+30, .[suspended] 30+0"};
    if (never) expected = {"t0: [fiber A] 10+10", expected[1], "A: f1 20+30, .[suspended] 20+10"};
    EXPECT_EQ(program.lanes(), expected);
  }
}

TEST(Fibers, InTwoThreadsAtATimeAreToldOf) {
  Words words;
  add(words, {fiber(10, 0, 7, "A"), in(20, 1), out(50, 1), fiber(60, 7, 0)});
  Words other;
  add(other, {fiber(30, 0, 7, "A"), in(40, 2), out(55, 2), fiber(70, 7, 0)});
  Program program;
  program.threads = {{{0, words}}, {{0, other}}};
  const reader::Trace trace = program.open();
  EXPECT_EQ(told_of_fibers(trace), Lanes{"a fiber worked in two threads at the same time"});
}

// Bytes of an attacker's: any words in any order, notes that end too soon, numbers that cannot be.
TEST(Fibers, SurviveAnything) {
  for (unsigned seed = 0; seed < 3000; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&random](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
    Program program;
    std::uint64_t calls = 0;
    for (std::uint32_t t = below(3) + 1; t != 0; --t) {
      std::vector<Piece> pieces;
      std::uint64_t sequence = below(2);
      std::uint64_t ticks = 10;
      for (std::uint32_t b = below(4); b != 0; --b, sequence += 1 + below(4) / 3) {
        Words words;
        for (std::uint32_t i = below(60); i != 0; --i) {
          ticks += below(20);
          if (below(50) == 0) ticks += below(2) == 0 ? std::uint64_t{1} << 40 : 0;
          switch (below(9)) {
            case 0:
            case 1:
            case 2:
              add(words, {fiber(ticks, below(4), below(4), below(2) == 0 ? "" : std::string(below(12), 'n'))});
              break;
            case 3:
              add(words, {switched(ticks, below(4) * 16, below(4) * 16)});
              break;
            case 4:
              words.push_back((std::uint64_t{random()} << 32 | random()) | (below(2) == 0 ? 0x7fff00 : 0));
              break;
            case 5:
              words.push_back(0);
              break;
            case 6:
              if (!words.empty()) words.resize(words.size() - below(2));
              break;
            default:
              add(words, {below(2) == 0 ? in(ticks, 1 + below(10)) : out(ticks, 1 + below(10))});
          }
        }
        calls += words.size();
        pieces.push_back({sequence, words});
      }
      program.threads.push_back(pieces);
    }
    if (below(3) == 0) program.switches = {{20, 21, 0, 0, false, 0}, {60 + below(50), 120, 0, 0, true, 0}};
    const reader::Trace trace = program.open();
    for (const reader::Thread& thread : trace.processes()[0].threads) {
      std::uint64_t events = 0;
      std::uint64_t sequence = 0;
      for (const reader::StoredBlock& block : trace.blocks(thread)) {
        EXPECT_FALSE(thread.fiber && block.size() == 0);
        EXPECT_TRUE(events == 0 || block.sequence > sequence);
        sequence = block.sequence;
        events += block.size();
      }
      EXPECT_LE(events, 4 * calls + 4);
      const Calls rebuilt = reader::rebuild_calls(trace, thread);
      EXPECT_LE(rebuilt.size(), 4 * calls + 4);
    }
  }
}

}  // namespace
}  // namespace karst::test
