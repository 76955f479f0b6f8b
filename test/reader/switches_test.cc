// Switches of functions: what a reader makes of events that are missing for a reason. Random programs whose sites are
// switched one by one, as a traced process does it, against what the programs really did.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>

#include "reader/trace.h"
#include "test/reader/small_trace.h"
#include "write/trace_writer.h"

namespace karst::test {
namespace {

using format::Event;
using format::Mark;
using namespace reader;

constexpr std::uint32_t kFunctions = 6;
constexpr std::uint64_t kForever = ~std::uint64_t{0};

struct Block {
  std::uint64_t sequence;
  std::vector<Event> events;
};

Calls rebuild(const std::vector<Block>& blocks, const std::vector<Switch>& switches, std::uint64_t exited = 0) {
  Bytes bytes;
  auto writer = writing::TraceWriter::to_memory(bytes);
  std::vector<Function> functions;
  for (std::uint32_t id = 1; id <= 2 * kFunctions; ++id) {
    Function f;
    f.id = id;
    f.tail_exit = id > kFunctions;  // 7 is the second id of 1, and so on
    f.address = 0x1000 + (id - 1) % kFunctions * 16;
    functions.push_back(f);
  }
  writer.add_functions(0, functions);
  Thread thread;
  thread.exited_ticks = exited;
  writer.add_threads(0, {&thread, 1});
  writer.add_switches(0, switches);
  for (const Block& block : blocks) writer.add_block(0, 0, block.sequence, 0, block.events);
  EXPECT_TRUE(writer.finish().ok());
  const auto trace = Trace::open_memory(bytes, "t");
  EXPECT_TRUE(trace.ok());
  return rebuild_calls(*trace, trace->processes().at(0).threads.at(0));
}

struct Row {
  std::uint32_t function;
  std::uint64_t begin;
  std::uint64_t end;
  std::uint32_t depth;
  unsigned marks;
  bool operator==(const Row&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Row& r) {
  return out << "{" << r.function << ", " << r.begin << "-" << r.end << ", " << r.depth << ", " << r.marks << "}";
}
std::vector<Row> rows(const Calls& calls) {
  std::vector<Row> result;
  for (std::size_t i = 0; i < calls.size(); ++i)
    result.push_back(
        {calls.function[i], calls.begin[i], calls.begin[i] + calls.duration[i], calls.depth[i], calls.marks[i]});
  return result;
}
using Rows = std::vector<Row>;

Switch off(std::uint64_t begin, std::uint64_t end, std::uint32_t first, std::uint32_t count = 1) {
  return {begin, end, first, count, false, 0};
}
Switch on(std::uint64_t begin, std::uint64_t end, std::uint32_t first, std::uint32_t count = 1) {
  return {begin, end, first, count, true, 0};
}

TEST(Switches, ACallThatIsOpenWhenItsFunctionIsSwitchedOffIsCutThere) {
  const auto calls =
      rebuild({{0, {enter(10, 1), enter(20, 2), enter(50, 3), leave(60, 3), leave(70, 1)}}}, {off(30, 40, 2)});
  EXPECT_EQ(rows(calls), (Rows{{1, 10, 70, 0, 0}, {2, 20, 30, 1, kCallCut}, {3, 50, 60, 1, 0}}));
  EXPECT_EQ(calls.missing_exits + calls.unmatched_exits, 0U);
}

TEST(Switches, ACutCallLastsAtLeastAsLongAsTheCallsInIt) {
  const auto calls = rebuild({{0,
                               {enter(10, 1), enter(20, 2), enter(25, 3), enter(50, 4), leave(60, 4), leave(65, 3),
                                enter(70, 4), leave(75, 4), leave(80, 1)}}},
                             {off(30, 40, 2)});
  EXPECT_EQ(
      rows(calls),
      (Rows{{1, 10, 80, 0, 0}, {2, 20, 65, 1, kCallCut}, {3, 25, 65, 2, 0}, {4, 50, 60, 3, 0}, {4, 70, 75, 1, 0}}));
}

TEST(Switches, EventsWithinAChangeAndWhileOffSayNothing) {
  // An enter, an exit of a call before, an exit long after: what a site that is late or a slow hook leaves behind.
  const auto calls = rebuild(
      {{0, {enter(10, 1), enter(20, 2), leave(31, 2), enter(35, 2), leave(45, 2), leave(50, 1)}}}, {off(30, 40, 2)});
  EXPECT_EQ(rows(calls), (Rows{{1, 10, 50, 0, 0}, {2, 20, 30, 1, kCallCut}}));
  EXPECT_EQ(calls.ignored, 3U);
}

TEST(Switches, AnExitWhoseEnterWasNotTracedIsNoCall) {
  const auto calls = rebuild({{0, {enter(10, 1), enter(70, 2), leave(80, 2), leave(90, 2), leave(95, 1)}}},
                             {off(30, 40, 2), on(50, 60, 2)});
  EXPECT_EQ(rows(calls), (Rows{{1, 10, 95, 0, 0}, {2, 70, 80, 1, 0}}));
  EXPECT_EQ(calls.unmatched_exits, 0U);
  // Nothing else is open.
  EXPECT_EQ(rows(rebuild({{0, {enter(10, 1), leave(20, 1), leave(90, 2)}}}, {off(30, 40, 2), on(50, 60, 2)})).size(),
            1U);
  // Tracing came on late; the thread's first event is such an exit.
  EXPECT_EQ(rows(rebuild({{0, {leave(90, 2), enter(92, 2), leave(93, 2)}}}, {on(50, 60, 0)})),
            (Rows{{2, 92, 93, 0, 0}}));
}

TEST(Switches, AChangeOfAllFunctionsAndOneWithoutEnd) {
  const auto calls = rebuild({{0, {enter(10, 1), enter(20, 2), enter(100, 3), leave(110, 3), leave(120, 2)}}},
                             {off(30, 40, 0), on(90, 95, 0), off(130, 0, 0)}, 200);
  EXPECT_EQ(rows(calls), (Rows{{1, 10, 30, 0, kCallCut}, {2, 20, 30, 1, kCallCut}, {3, 100, 110, 0, 0}}));
  const auto late = rebuild({{0, {enter(10, 1), enter(20, 2), enter(50, 2)}}}, {on(30, 0, 2)});
  EXPECT_EQ(rows(late), (Rows{{1, 10, 30, 0, kCallOpenEnd}, {2, 20, 30, 1, kCallCut}}));
}

TEST(Switches, WhoSitsInACallWhenTracingIsSwitchedOffIsCutThereNotAtTheThreadsEnd) {
  const auto calls = rebuild({{0, {enter(10, 1), enter(20, 2)}}}, {off(1000, 1001, 0)}, 5000);
  EXPECT_EQ(rows(calls), (Rows{{1, 10, 1000, 0, kCallCut}, {2, 20, 1000, 1, kCallCut}}));
}

TEST(Switches, APlaceSetInACutCallCountsForTheNextOuterOne) {
  const Event set = format::make_place(0x7ffd00001000, Mark::kSetPlace);
  const Event place = format::make_place(0x7ffd00001000);
  // 2 sets the place and is cut; 3 calls 4, which jumps out of both.
  const auto calls =
      rebuild({{0,
                {enter(10, 1), enter(20, 2), set, enter(50, 3), enter(55, 4), format::make_mark(60, Mark::kJumped),
                 place, enter(70, 3), leave(75, 3), leave(80, 1)}}},
              {off(30, 40, 2)});
  EXPECT_EQ(rows(calls), (Rows{{1, 10, 80, 0, 0},
                               {2, 20, 30, 1, kCallCut},
                               {3, 50, 60, 1, kCallJumped},
                               {4, 55, 60, 2, kCallJumped},
                               {3, 70, 75, 1, 0}}));
  EXPECT_EQ(calls.strange_jumps, 0U);
}

TEST(Switches, ACallOnAStackThatWaitsDoesNotGoOnWhenItWasCut) {
  const Event a = format::make_place(0x7f0000001000);
  const Event b = format::make_place(0x7f0000002000);
  const auto switched = [](std::uint64_t ticks) { return format::make_mark(ticks, Mark::kSwitched); };
  // 1 goes to a new stack, on which 2 calls 3; back, while 2 is switched off, and there again.
  const auto calls = rebuild({{0,
                               {enter(10, 1), switched(15), a, b, enter(20, 2), enter(22, 3), switched(25), b, a,
                                enter(50, 4), leave(55, 4), switched(60), a, b, leave(70, 3), leave(75, 1)}}},
                             {off(30, 40, 2)});
  EXPECT_EQ(rows(calls), (Rows{{1, 10, 75, 0, 0},
                               {2, 20, 25, 1, kCallOpenEnd | kCallSwitched},
                               {3, 22, 25, 2, kCallOpenEnd | kCallSwitched},
                               {4, 50, 55, 1, 0},
                               {3, 60, 70, 1, kCallOpenBegin | kCallResumed}}));
}

TEST(Switches, StacksSwitchedWhileNothingWasTracedLeaveNoFalseCallers) {
  const Event a = format::make_place(0x7f0000001000);
  const Event b = format::make_place(0x7f0000002000);
  const auto calls = rebuild(
      {{0, {enter(10, 1), format::make_mark(15, Mark::kSwitched), a, b, enter(20, 2), enter(100, 3), leave(110, 3)}}},
      {off(30, 40, 0), on(50, 60, 0)});
  EXPECT_EQ(rows(calls), (Rows{{1, 10, 30, 0, kCallCut}, {2, 20, 30, 1, kCallCut}, {3, 100, 110, 0, 0}}));
}

// What a program really did.
struct True {
  std::uint32_t function;
  std::uint64_t begin;
  std::uint64_t end = kForever;
  std::size_t parent;  // index, or npos
};
constexpr std::size_t kNone = ~std::size_t{0};

/// Runs a random program with random switches and keeps what each site left behind.
class RandomRun {
 public:
  explicit RandomRun(unsigned seed) : random_(seed) {
    plan_switches();
    for (int i = 0; i < 400; ++i) step();
    last_ = now_;
  }

  const std::vector<True>& truth() const { return truth_; }
  const std::vector<Switch>& switches() const { return switches_; }
  const std::vector<Event>& events() const { return events_; }
  std::uint64_t end() const { return last_; }

  /// Blind at `ticks`, by the rule as the page has it, record by record.
  bool blind(std::uint32_t function, std::uint64_t ticks) const {
    bool own = false;
    bool process = false;
    for (const Switch& s : switches_) {
      if (!covers(s, function) || s.begin_ticks > ticks) continue;
      (s.first == 0 ? process : own) = !(s.on && s.end_ticks != 0 && s.end_ticks <= ticks);
    }
    return own || process;
  }
  bool blinded_within(const True& call) const {
    return std::any_of(switches_.begin(), switches_.end(), [&](const Switch& s) {
      return covers(s, call.function) && s.begin_ticks > call.begin && s.begin_ticks <= std::min(call.end, last_);
    });
  }

 private:
  struct Flip {
    std::uint64_t ticks;
    bool on;
    bool process;
  };
  static bool covers(const Switch& s, std::uint32_t function) {
    return s.first == 0 || (function >= s.first && function < s.first + s.count);
  }
  std::uint64_t below(std::uint64_t n) { return random_() % n; }

  void plan_switches() {
    std::uint64_t at = 20;
    while (at < 1200 && below(20) != 0) {
      at += 1 + below(120);
      Switch s;
      s.begin_ticks = at;
      at += below(15);
      s.end_ticks = at;
      s.on = below(2) != 0;
      if (below(4) != 0) {
        s.first = 1 + static_cast<std::uint32_t>(below(kFunctions));
        s.count = 1 + static_cast<std::uint32_t>(below(kFunctions - s.first + 1));
      }
      // Each of a function's three sites on its own: enter, exit, tail call's exit.
      for (std::uint32_t f = 1; f <= kFunctions; ++f)
        for (auto& flips : flips_[f])
          if (covers(s, f))
            flips.push_back({s.begin_ticks + below(s.end_ticks - s.begin_ticks + 1), s.on, s.first == 0});
      if (below(30) == 0) {
        s.end_ticks = 0;  // the process died in the middle
        switches_.push_back(s);
        break;
      }
      switches_.push_back(s);
    }
  }

  bool site_is_on(std::uint32_t function, int site) const {
    bool own = true;
    bool process = true;
    for (const Flip& flip : flips_.at(function)[site])
      if (flip.ticks <= now_) (flip.process ? process : own) = flip.on;
    return own && process;
  }

  void push(std::uint32_t function) {
    truth_.push_back({function, now_, kForever, stack_.empty() ? kNone : stack_.back()});
    stack_.push_back(truth_.size() - 1);
    if (site_is_on(function, 0)) events_.push_back(enter(now_, function));
  }
  void pop() {
    True& call = truth_[stack_.back()];
    call.end = now_;
    stack_.pop_back();
    std::erase_if(places_, [this](const auto& p) { return p.second > stack_.size(); });
    const std::uint32_t f = call.function;
    switch (below(5)) {
      case 0:
        if (site_is_on(f, 2)) events_.push_back(leave(now_, f + kFunctions));
        break;
      case 1:
        // The runtime looks for frames whatever is on, as it cannot know in the middle of a change.
        if (site_is_on(f, 1) || below(2) != 0) {
          events_.push_back(format::make_mark(now_, Mark::kUnwound));
          events_.push_back(leave(now_, f));
        }
        break;
      default:
        if (site_is_on(f, 1)) events_.push_back(leave(now_, f));
    }
  }
  void jump() {
    auto place = places_.begin();
    std::advance(place, static_cast<std::ptrdiff_t>(below(places_.size())));
    events_.push_back(format::make_mark(now_, Mark::kJumped));
    events_.push_back(format::make_place(place->first));
    while (stack_.size() > place->second) {
      truth_[stack_.back()].end = now_;
      stack_.pop_back();
    }
    std::erase_if(places_, [this](const auto& p) { return p.second > stack_.size(); });
  }
  void step() {
    now_ += 1 + below(4);
    const std::uint64_t what = below(100);
    if (what < 6) {
      const std::uint64_t place = 0x7ffd00000000 + stack_.size() * 64;
      events_.push_back(format::make_place(place, Mark::kSetPlace));
      places_[place] = stack_.size();
    } else if (what < 10 && !places_.empty()) {
      jump();
    } else if (what < 52 && stack_.size() < 40) {
      push(1 + static_cast<std::uint32_t>(below(kFunctions)));
    } else if (!stack_.empty()) {
      pop();
    }
  }

  std::mt19937 random_;
  std::uint64_t now_ = 0;
  std::uint64_t last_ = kForever;
  std::vector<True> truth_;
  std::vector<std::size_t> stack_;
  std::map<std::uint64_t, std::size_t> places_;  // and the calls that were open
  std::vector<Switch> switches_;
  std::map<std::uint32_t, std::vector<Flip>[3]> flips_ = [] {
    std::map<std::uint32_t, std::vector<Flip>[3]> all;
    for (std::uint32_t f = 1; f <= kFunctions; ++f) all[f];
    return all;
  }();
  std::vector<Event> events_;
};

/// Index of the true call of each row, by function and begin; kNone where the begin is not known.
std::vector<std::size_t> find_truth(const RandomRun& run, const Calls& calls) {
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::size_t> by_begin;
  for (std::size_t i = 0; i < run.truth().size(); ++i) by_begin[{run.truth()[i].function, run.truth()[i].begin}] = i;
  std::vector<std::size_t> found;
  for (std::size_t row = 0; row < calls.size(); ++row) {
    const auto at = by_begin.find({calls.function[row], calls.begin[row]});
    const bool open = (calls.marks[row] & kCallOpenBegin) != 0;
    EXPECT_TRUE(open || at != by_begin.end()) << "row " << row << " never was";
    found.push_back(open || at == by_begin.end() ? kNone : at->second);
  }
  return found;
}

bool is_ancestor(const RandomRun& run, std::size_t outer, std::size_t inner) {
  while (inner != kNone && inner != outer) inner = run.truth()[inner].parent;
  return inner == outer;
}

TEST(Switches, RandomProgramsGiveACorrectPartOfWhatTheyDid) {
  for (unsigned seed = 0; seed < 3000 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    const RandomRun run(seed);
    if (run.events().empty()) continue;
    const Calls calls = rebuild({{0, run.events()}}, run.switches(), run.end());
    EXPECT_EQ(calls.missing_exits + calls.unmatched_exits + calls.strange_jumps + calls.out_of_order, 0U);
    const auto truth = find_truth(run, calls);
    std::vector<bool> shown(run.truth().size());
    for (std::size_t row = 0; row < calls.size() && !HasFailure(); ++row) {
      SCOPED_TRACE(::testing::Message() << "row " << row << " function " << calls.function[row] << " from "
                                        << calls.begin[row] << " marks " << int{calls.marks[row]});
      ASSERT_NE(truth[row], kNone);
      const True& is = run.truth()[truth[row]];
      EXPECT_FALSE(shown[truth[row]]) << "twice";
      shown[truth[row]] = true;
      const std::uint64_t end = calls.begin[row] + calls.duration[row];
      if ((calls.marks[row] & kCallOpenEnd) != 0)
        EXPECT_LE(end, is.end);
      else
        EXPECT_EQ(end, is.end);
      EXPECT_EQ(call_is_cut(calls.marks[row]), run.blinded_within(is));
      // Its parent is the innermost of the shown calls that it is in.
      std::uint32_t nearest = kNoParent;
      for (std::uint32_t outer = 0; outer < row; ++outer) {
        const std::uint64_t outer_end = calls.begin[outer] + calls.duration[outer];
        // What is open when the history ends has its end in the last event.
        const bool runs = outer_end > calls.begin[row] || calls.marks[outer] == kCallOpenEnd;
        if (runs && is_ancestor(run, truth[outer], truth[row])) nearest = outer;
      }
      EXPECT_EQ(calls.parent[row], nearest);
      if (calls.parent[row] != kNoParent) {
        EXPECT_GE(calls.begin[calls.parent[row]] + calls.duration[calls.parent[row]], end) << "ends after its caller";
      }
    }
    // Nothing is left out that is sure.
    for (std::size_t i = 0; i < run.truth().size(); ++i)
      EXPECT_EQ(shown[i], !run.blind(run.truth()[i].function, run.truth()[i].begin)) << "call " << i;
  }
}

TEST(Switches, RandomProgramsWhoseBeginIsOverwritten) {
  for (unsigned seed = 0; seed < 1500 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    const RandomRun run(seed);
    // From an event that stands for itself on.
    std::size_t from = run.events().size() / 3;
    while (from < run.events().size() && format::event_is_mark(run.events()[from])) ++from;
    if (from == 0 || from >= run.events().size()) continue;
    if (format::event_is(run.events()[from - 1], Mark::kUnwound)) ++from;
    if (from >= run.events().size() || format::event_is_mark(run.events()[from])) continue;
    const std::vector<Event> kept(run.events().begin() + static_cast<std::ptrdiff_t>(from), run.events().end());
    const Calls calls = rebuild({{7, kept}}, run.switches());
    const auto truth = find_truth(run, calls);
    for (std::size_t row = 0; row < calls.size() && !HasFailure(); ++row) {
      SCOPED_TRACE(::testing::Message() << "row " << row << " function " << calls.function[row]);
      const std::uint64_t end = calls.begin[row] + calls.duration[row];
      if (truth[row] != kNone) {
        const True& is = run.truth()[truth[row]];
        if ((calls.marks[row] & kCallOpenEnd) == 0)
          EXPECT_EQ(end, is.end);
        else
          EXPECT_LE(end, is.end);
        continue;
      }
      // Some call of the function that was open when the history begins ended then.
      EXPECT_TRUE(std::any_of(run.truth().begin(), run.truth().end(), [&](const True& is) {
        return is.function == calls.function[row] && is.begin < calls.begin[row] && is.end == end;
      }));
    }
  }
}

TEST(Switches, ManyRecordsOfManyFunctionsAreTakenInBoundedTime) {
  // Each of 60,000 records tells a function apart, and each goes over all of them: far over the bound.
  std::vector<Switch> hostile;
  for (std::uint32_t i = 0; i < 60000; ++i)
    hostile.push_back({i + 100, i + 100, 1 + i, 0xffffffffU - i, i % 2 != 0, 0});
  const auto calls = rebuild({{0, {enter(10, 1), leave(20, 1), enter(70000, 2), leave(70001, 2)}}}, hostile);
  EXPECT_EQ(calls.function[0], 1U);
  // And 60,000 switches of everything are no more than a step each.
  std::vector<Switch> toggles;
  std::vector<Event> events;
  for (std::uint32_t i = 0; i < 60000; ++i) {
    toggles.push_back({i * 100 + 50, i * 100 + 60, 0, 0, i % 2 != 0, 0});
    events.push_back(enter(i * 100 + 70, 1 + i % kFunctions));
    events.push_back(leave(i * 100 + 80, 1 + i % kFunctions));
  }
  EXPECT_EQ(rebuild({{0, events}}, toggles).size(), 30000U);
}

TEST(Switches, DeepStacksOfCutCallsAreNotSearchedAgainAndAgain) {
  std::vector<Event> events;
  for (std::uint32_t i = 0; i < 200000; ++i) events.push_back(enter(i + 1, 1));
  events.push_back(enter(200010, 2));
  std::vector<Switch> switches{off(200020, 200021, 1), on(200022, 200023, 1)};
  for (std::uint32_t i = 0; i < 200000; ++i) {
    events.push_back(leave(300000 + i, 1));
  }
  events.push_back(leave(600000, 2));
  const auto calls = rebuild({{0, events}}, switches);
  EXPECT_EQ(calls.size(), 200001U);
  EXPECT_EQ(calls.duration[0], 600000U - 1);
  EXPECT_EQ(calls.marks[0], kCallCut);
}

}  // namespace
}  // namespace karst::test
