// Thread states in the viewer's answers: sums against analysis/report, strips against the states they are made of, the
// states of a cut.
#include "engine/api/states.h"

#include <gtest/gtest.h>
#include <simdjson.h>

#include <cstring>
#include <map>

#include "analysis/report.h"
#include "columns/table.h"
#include "engine/api/api.h"
#include "engine/cut/cut.h"
#include "engine/protocol.h"
#include "test/analysis/sample_states.h"
#include "test/engine/random_trace.h"

namespace karst {
namespace {

using test::SampleTrace;

struct WithStates {
  SampleTrace sample;
  std::unique_ptr<engine::TraceIndex> index;

  explicit WithStates(std::uint32_t seed, std::uint32_t longest = 2'000) {
    test::fill_random(sample, {.seed = seed, .threads = 3, .calls = 1500});
    sample.states(test::random_states(seed, 100, {100, 101, 102}, 2'000, 900'000, longest));
    index = test::index_of(sample);
  }
};

TEST(ViewStates, TableHasTheTimesOfReport) {
  const WithStates made(4);
  const reader::Trace& trace = made.index->trace();
  analysis::ReportBuilder builder(trace);
  for (const auto& thread : trace.processes()[0].threads) builder.add(thread, reader::rebuild_calls(trace, thread));
  const analysis::Report report = builder.finish();
  std::map<std::string, analysis::FunctionReport> by_name;
  for (const auto& f : report.functions) by_name[f.name] = f;
  const columns::Table table = columns::table_of(test::scope_of(*made.index));
  EXPECT_TRUE(table.has_states);
  ASSERT_EQ(table.functions.size(), by_name.size());
  reader::StateTimes sum;
  for (const columns::FunctionRow& f : table.functions) {
    const auto& want = by_name.at(made.index->functions().functions()[f.function].name);
    EXPECT_EQ(f.total_states.running, want.total_states.cpu_ns);
    EXPECT_EQ(f.total_states.runnable, want.total_states.runnable_ns);
    EXPECT_EQ(f.total_states.blocked, want.total_states.blocked_ns);
    EXPECT_EQ(f.self_states.running, want.self_states.cpu_ns);
    EXPECT_EQ(f.self_states.runnable, want.self_states.runnable_ns);
    EXPECT_EQ(f.self_states.blocked, want.self_states.blocked_ns);
    sum += f.self_states;
  }
  EXPECT_EQ(table.states, sum);
  EXPECT_EQ(sum.running + sum.runnable + sum.blocked + sum.unknown, table.self);
  EXPECT_GT(sum.running, 0U);
}

TEST(ViewStates, PartsOfARangeAddUp) {
  const WithStates made(5);
  const engine::TickRange range{100'000, 300'000};
  const columns::Table part = columns::table_of(test::scope_of(*made.index, range));
  for (const auto& f : part.functions) {
    const auto& s = f.total_states;
    EXPECT_EQ(s.running + s.runnable + s.blocked + s.unknown, f.total);
  }
  columns::Table sum[2] = {columns::table_of(test::scope_of(*made.index, {100'000, 222'222})),
                           columns::table_of(test::scope_of(*made.index, {222'222, 300'000}))};
  sum[0].states += sum[1].states;
  EXPECT_EQ(sum[0].states, part.states);
}

TEST(ViewStates, CallSaysItsTimesAndItsLongestWaits) {
  const WithStates made(6);
  engine::Api api({made.index.get()}, "1");
  simdjson::dom::parser parser;
  const auto& thread = made.index->threads()[0];
  std::uint64_t waits = 0;
  std::uint64_t wakers = 0;
  std::uint64_t kept_off = 0;
  for (std::uint32_t row = 0; row < thread.calls.size(); row += 37) {
    const std::string text = api.answer("call", {{"thread", "0"}, {"index", std::to_string(row)}}).body;
    const simdjson::dom::element call = parser.parse(text);
    for (const char* which : {"states", "self_states"}) {
      double sum = 0;
      for (const char* part : {"cpu", "runnable", "blocked", "unknown"}) sum += double(call[which][part]);
      EXPECT_EQ(sum, double(call[which == std::string("states") ? "duration" : "self"])) << row;
    }
    double last = 1e18;
    for (const simdjson::dom::element wait : call["waits"].get_array()) {
      ++waits;
      EXPECT_GE(double(wait["begin"]), double(call["begin"]));
      EXPECT_LE(double(wait["duration"]), last);
      last = double(wait["duration"]);
      EXPECT_FALSE(std::string_view(wait["words"]).empty());
      double sum = 0;
      if (wait["kept_off_not_known"].get(sum) == simdjson::SUCCESS) {
        ++kept_off;
        for (const simdjson::dom::element share : wait["kept_off_by"]["duration"]) sum += double(share);
        const bool blocked = std::string_view(wait["state"]) == "blocked";
        EXPECT_NEAR(sum, double(wait[blocked ? "runnable" : "duration"]), 1);
      }
      // The same, asked for alone.
      const std::string alone =
          api.answer("state", {{"thread", "0"}, {"index", std::to_string(std::uint64_t(wait["index"]))}}).body;
      simdjson::dom::parser other;
      const simdjson::dom::element state = other.parse(alone);
      EXPECT_EQ(std::string_view(state["words"]), std::string_view(wait["words"]));
      std::uint64_t waker = 0;
      if (state["waker"]["index"].get(waker) == simdjson::SUCCESS && std::string_view(state["state"]) == "blocked") {
        ++wakers;
        const auto& calls = made.index->threads()[std::uint64_t(state["waker"]["thread"])].calls;
        const std::uint64_t at =
            made.index->origin() + static_cast<std::uint64_t>(double(state["begin"]) + double(state["duration"]));
        EXPECT_LE(calls.begin[waker], at);
        EXPECT_GT(calls.end(waker), at);
      }
    }
  }
  EXPECT_GT(waits, 0U);
  EXPECT_GT(wakers, 0U);
  EXPECT_GT(kept_off, 0U);
  EXPECT_EQ(api.answer("state", {{"thread", "0"}, {"index", "99999999"}}).status, 404);
  EXPECT_EQ(api.answer("state", {{"thread", "9"}, {"index", "0"}}).status, 404);
}

// Time by depth of a strip's tile: wide slices by their parts in the range, summed ones by their density.
std::map<std::uint32_t, double> covered(const std::string& bytes) {
  engine::TileHeader header{};
  std::memcpy(&header, bytes.data(), sizeof header);
  std::vector<engine::TileRow> rows(header.rows);
  std::memcpy(rows.data(), bytes.data() + sizeof header, rows.size() * sizeof rows[0]);
  const char* at = bytes.data() + sizeof header + rows.size() * sizeof rows[0];
  const std::size_t n = header.slices;
  const auto column = [&](std::size_t bytes_each) {
    const char* const here = at;
    at += (n * bytes_each + 7) / 8 * 8;
    return here;
  };
  std::vector<double> begin(n), duration(n);
  std::vector<std::uint32_t> count(n);
  std::memcpy(begin.data(), column(8), n * 8);
  std::memcpy(duration.data(), column(8), n * 8);
  (void)column(4);
  (void)column(4);
  std::memcpy(count.data(), column(4), n * 4);
  (void)column(1);
  const auto* const density = reinterpret_cast<const unsigned char*>(column(1));
  std::map<std::uint32_t, double> sums;
  const double pixel = (header.end - header.begin) / 512;
  for (const engine::TileRow& row : rows) {
    for (std::size_t i = row.first; i < row.first + row.count; ++i) {
      sums[row.depth] +=
          count[i] > 1 ? density[i] * pixel / 255
                       : std::max(0.0, std::min(begin[i] + duration[i], header.end) - std::max(begin[i], header.begin));
    }
  }
  return sums;
}

TEST(ViewStates, StripsCoverWhatTheStatesDo) {
  for (const std::uint32_t longest : {50U, 5'000U}) {  // many states in a pixel, many pixels in a state
    const WithStates made(7, longest);
    engine::Api api({made.index.get()}, "1");
    for (const auto& [begin, end] : {std::pair{0.0, 800'000.0}, std::pair{200'000.0, 210'000.0}}) {
      const engine::Parameters range = {
          {"begin", std::to_string(begin)}, {"end", std::to_string(end)}, {"width", "512"}, {"tracks", "4"}};
      const engine::Reply reply = api.answer("tiles", range);
      ASSERT_EQ(reply.status, 200) << reply.body;
      const auto found = covered(reply.body);
      const std::uint64_t origin = made.index->origin();
      const auto want = made.index->threads()[1].states->between(origin + static_cast<std::uint64_t>(begin),
                                                                 origin + static_cast<std::uint64_t>(end));
      // Short ones belong to the pixel they begin in; densities are rounded up.
      const double slack = (end - begin) * 0.012;
      const auto of = [&](std::uint32_t depth) { return found.contains(depth) ? found.at(depth) : 0.0; };
      EXPECT_NEAR(of(engine::kStripRunning), static_cast<double>(want.running), slack);
      EXPECT_NEAR(of(engine::kStripRunnable), static_cast<double>(want.runnable), slack);
      EXPECT_NEAR(of(engine::kStripBlocked), static_cast<double>(want.blocked), slack);
    }
    const engine::Reply cpus =
        api.answer("tiles", {{"begin", "0"}, {"end", "800000"}, {"width", "512"}, {"tracks", "6,7:0-0"}});
    ASSERT_EQ(cpus.status, 200);
    EXPECT_GT(covered(cpus.body)[engine::kCpuThread], 0.0);
    for (const char* wrong : {"8", "-1", "99999999999", "c0", "x1", "4:3-1"}) {
      EXPECT_EQ(api.answer("tiles", {{"begin", "0"}, {"end", "9"}, {"width", "9"}, {"tracks", wrong}}).status, 400)
          << wrong;
    }
  }
}

TEST(ViewStates, TracksAreThreadsStatesAndCpus) {
  const WithStates made(9);  // three threads, two CPUs
  engine::Api api({made.index.get()}, "1");
  simdjson::dom::parser parser;
  const std::string text = api.answer("trace", {}).body;
  std::vector<std::string> found;
  const simdjson::dom::element tracks = parser.parse(text)["tracks"];
  for (std::size_t i = 0; i < tracks["id"].get_array().size(); ++i) {
    found.push_back(std::to_string(std::uint64_t(tracks["id"].at(i))) + " " +
                    std::string(std::string_view(tracks["kind"].at(i))) + " " +
                    std::string(std::string_view(tracks["name"].at(i))) + " " +
                    std::to_string(std::uint64_t(tracks["owner"].at(i))));
  }
  EXPECT_EQ(found, (std::vector<std::string>{"0 thread thread 0 0", "1 thread thread 1 1", "2 thread thread 2 2",
                                             "3 states states of thread 0 0", "4 states states of thread 1 1",
                                             "5 states states of thread 2 2", "6 cpu CPU 0 0", "7 cpu CPU 1 1"}));
}

// What another kind takes: this class, and a place in the list.
class Heartbeat final : public engine::TrackKind {
 public:
  std::string_view name() const override { return "heartbeat"; }
  bool of_threads() const override { return false; }
  std::uint32_t count(const engine::TraceIndex&) const override { return 1; }
  std::optional<engine::TrackFacts> facts(const engine::TraceIndex&, std::uint32_t) const override {
    return engine::TrackFacts{"heart", 0, 1};
  }
  void draw(const engine::TraceIndex& index, std::uint32_t, const engine::TrackLanes& wanted,
            const engine::FilteredLanes*, engine::TileWriter& tiles) const override {
    for (std::uint64_t at = 0; at < 10; ++at)
      tiles.add(index.origin() + at * 100, index.origin() + at * 100 + 50, 7, static_cast<std::uint32_t>(at));
    tiles.end_lane(wanted.track, 0);
  }
};

TEST(ViewStates, AnotherKindOfTrackIsOneClass) {
  const WithStates made(9);
  const Heartbeat kind;
  std::vector<const engine::TrackKind*> kinds(engine::track_kinds().begin(), engine::track_kinds().end());
  kinds.push_back(&kind);
  const auto tracks = engine::tracks_of(*made.index, kinds);
  ASSERT_EQ(tracks.size(), 9U);
  EXPECT_EQ(tracks[8].facts.name, "heart");
  const auto track = engine::find_track(*made.index, 8, kinds);
  ASSERT_TRUE(track);
  engine::TileWriter tiles(*made.index, engine::Picture{0, 1000, made.index->origin(), 512});
  track->kind->draw(*made.index, track->number, {8}, nullptr, tiles);
  const std::string bytes = tiles.take(0, 1000);
  engine::TileRow row{};
  std::memcpy(&row, bytes.data() + sizeof(engine::TileHeader), sizeof row);
  EXPECT_EQ(row.track, 8U);
  EXPECT_EQ(row.count, 10U);
  EXPECT_NEAR(covered(bytes)[0], 500, 1);
}

TEST(ViewStates, FactsNameTasksAndCpus) {
  const WithStates made(8);
  engine::Api api({made.index.get()}, "1");
  simdjson::dom::parser parser;
  const std::string text = api.answer("trace", {}).body;
  const simdjson::dom::element facts = parser.parse(text);
  EXPECT_EQ(std::string_view(facts["states"]["backend"]), "ftrace");
  EXPECT_EQ(facts["cpus"].get_array().size(), 2U);
  std::map<std::string, std::int64_t> thread_of;
  const simdjson::dom::element tasks = facts["tasks"];
  for (std::size_t i = 0; i < tasks["tid"].get_array().size(); ++i)
    thread_of[std::string(std::string_view(tasks["name"].at(i)))] = std::int64_t(tasks["thread"].at(i));
  EXPECT_EQ(thread_of, (std::map<std::string, std::int64_t>{{"t100", 0}, {"t101", 1}, {"t102", 2}, {"stranger", -1}}));
  EXPECT_TRUE(bool(facts["threads"].at(0)["states"]));
}

TEST(ViewStates, ACutHasTheStatesOfItsRange) {
  const WithStates made(9);
  const std::uint64_t begin = 200'000;
  const std::uint64_t end = 400'000;
  const auto bytes = engine::cut_trace(test::scope_of(*made.index, {begin, end}));
  ASSERT_TRUE(bytes) << bytes.error().message;
  const auto cut = reader::Trace::open_memory(*bytes, "cut");
  ASSERT_TRUE(cut);
  for (const std::uint32_t tid : {100U, 101U, 102U}) {
    const reader::ThreadStates* const whole = made.index->trace().states().of(100, tid);
    const reader::ThreadStates* const part = cut->states().of(100, tid);
    ASSERT_NE(part, nullptr);
    for (std::uint64_t at = begin; at + 10'000 <= end; at += 10'000) {
      EXPECT_EQ(part->between(at, at + 10'000), whole->between(at, at + 10'000)) << at;
    }
  }
}

}  // namespace
}  // namespace karst
