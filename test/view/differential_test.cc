// One engine, asked in every way: the report of the command, the server's api and an exported page's calls give the
// same numbers, to the ns and the count, as a slow count by the rows themselves. Random traces with every kind of call.
#include <gtest/gtest.h>
#include <simdjson.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "analysis/report.h"
#include "format/control.h"
#include "query/flame.h"
#include "test/analysis/sample_trace.h"
#include "test/view/random_trace.h"
#include "view/answers.h"
#include "view/api.h"
#include "view/exported_calls.h"
#include "view/tiles.h"

namespace karst {
namespace {

using format::Mark;

constexpr std::uint32_t kFunctions = 6;

// The events of one thread: two stacks, exceptions, longjmps, ends that are not known.
void add_events(test::SampleTrace& trace, std::mt19937& random, std::uint64_t now,
                std::vector<std::uint32_t> inherited) {
  const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  const std::uint64_t place_of[2] = {0x7f0000001000, 0x7f0000002000};
  constexpr std::uint64_t kHome = 0x7ffd00001230;
  std::vector<std::uint32_t> stack[2];
  stack[0] = std::move(inherited);
  const std::size_t kept = stack[0].size();  // calls that it began with go on
  std::size_t set_at = 0;                    // calls that were open when the place was set; 0: it is not
  int on = 0;
  for (int i = 0; i < 400; ++i) {
    now += below(4) == 0 ? 0 : below(300);
    std::vector<std::uint32_t>& calls = stack[on];
    const std::size_t least = on == 0 ? kept : 0;
    const std::uint32_t what = below(100);
    if (what < 50 && calls.size() < 9) {
      calls.push_back(1 + below(kFunctions));
      trace.enter(calls.back(), now);
    } else if (what < 86 && calls.size() > least) {
      if (what < 55) trace.raw(format::make_mark(now, Mark::kUnwound));
      trace.exit(calls.back(), now);
      calls.pop_back();
      if (on == 0 && calls.size() < set_at) set_at = 0;
    } else if (what < 90 && on == 0 && !calls.empty()) {
      trace.raw(format::make_place(kHome, Mark::kSetPlace));
      set_at = calls.size();
    } else if (what < 94 && on == 0 && set_at > kept && calls.size() > set_at) {
      trace.raw(format::make_mark(now, Mark::kJumped)).raw(format::make_place(kHome));
      calls.resize(set_at);
    } else if (what >= 95) {
      trace.raw(format::make_mark(now, Mark::kSwitched));
      trace.raw(format::make_place(place_of[on])).raw(format::make_place(place_of[1 - on]));
      on = 1 - on;
    }
  }
}

std::unique_ptr<test::Indexed> random_calls(std::uint32_t seed) {
  std::mt19937 random(seed);
  auto made = std::make_unique<test::Indexed>();
  test::SampleTrace& trace = made->sample;
  const std::vector<std::string> names = {"f1", "f2", "f3", "f4", "f5", "f6"};
  trace.process(100, "app", names);
  for (const std::uint64_t begin : {3000U, 8000U, 15'000U, 22'000U}) {
    const std::uint64_t at = begin + random() % 1000;
    const bool on = begin == 8000 || begin == 22'000;
    trace.switched({at, at + random() % 200, 1 + static_cast<std::uint32_t>(random() % kFunctions), 1, on, 0});
  }
  trace.thread(100, "whole");
  add_events(trace, random, 1000 + random() % 500, {});
  trace.thread(101, "cut", 7).exit(2, 1500).exit(3, 1600);
  add_events(trace, random, 1700, {});
  // A child, in calls that its parent began.
  trace.process(200, "app", names).thread(200, "child").inherits(2, 5000).enter(1, 1400).enter(4, 2100);
  add_events(trace, random, 5200, {1, 4});
  made->index = test::index_of(trace);
  return made;
}

// Columns of the table, by the name of the function.
struct Row {
  std::uint64_t calls = 0, open_calls = 0, total = 0, self = 0, min = 0, mean = 0, p50 = 0, p99 = 0, max = 0;
  friend bool operator==(const Row&, const Row&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Row& r) {
    return out << r.calls << " calls, " << r.open_calls << " open, total " << r.total << ", self " << r.self << ", "
               << r.min << " " << r.mean << " " << r.p50 << " " << r.p99 << " " << r.max;
  }
};
using Rows = std::map<std::string, Row>;

// Row by row, from what analysis/report.h says of each column.
Rows count_slowly(const reader::Trace& trace, std::uint32_t& kinds) {
  Rows rows;
  std::map<std::string, std::int64_t> self;
  std::map<std::string, std::vector<std::uint64_t>> durations;
  for (const reader::Process& process : trace.processes()) {
    for (const reader::Thread& thread : process.threads) {
      const reader::Calls calls = reader::rebuild_calls(trace, thread);
      const auto name = [&](std::uint32_t row) { return process.functions[calls.function[row]].name; };
      for (std::uint32_t row = 0; row < calls.size(); ++row) {
        const std::uint8_t marks = calls.marks[row];
        kinds |= marks;
        const bool inherited = (marks & reader::kCallInherited) != 0;
        const std::uint64_t end = calls.begin[row] + calls.duration[row];
        const std::uint64_t begin =
            inherited ? std::min(end, std::max(calls.begin[row], process.start_ticks)) : calls.begin[row];
        Row& of = rows[name(row)];
        bool outermost = true;
        for (std::uint32_t up = calls.parent[row]; up != reader::kNoParent; up = calls.parent[up])
          outermost = outermost && name(up) != name(row);
        if (outermost) of.total += end - begin;
        self[name(row)] += static_cast<std::int64_t>(end - begin);
        if (calls.parent[row] != reader::kNoParent)
          self[name(calls.parent[row])] -= static_cast<std::int64_t>(end - begin);
        if (inherited || (marks & reader::kCallResumed) != 0) continue;
        ++of.calls;
        if (reader::call_is_open(marks)) {
          ++of.open_calls;
        } else {
          durations[name(row)].push_back(calls.duration[row]);
        }
      }
    }
  }
  for (auto& [name, of] : rows) {
    of.self = static_cast<std::uint64_t>(std::max<std::int64_t>(self[name], 0));
    auto& all = durations[name];
    if (all.empty()) continue;
    std::sort(all.begin(), all.end());
    std::uint64_t sum = 0;
    for (const std::uint64_t each : all) sum += each;
    of.min = all.front();
    of.max = all.back();
    of.mean = sum / all.size();
    of.p50 = all[(all.size() * 50 + 99) / 100 - 1];
    of.p99 = all[(all.size() * 99 + 99) / 100 - 1];
  }
  return rows;
}

Rows of_report(const reader::Trace& trace) {
  analysis::ReportBuilder builder(trace);
  for (const auto& process : trace.processes()) {
    for (const auto& thread : process.threads) builder.add(thread, reader::rebuild_calls(trace, thread));
  }
  Rows rows;
  std::uint64_t calls = 0;
  const analysis::Report report = builder.finish();
  for (const analysis::FunctionReport& f : report.functions) {
    rows[f.name] = {f.calls, f.open_calls, f.total_ns, f.self_ns, f.min_ns, f.mean_ns, f.p50_ns, f.p99_ns, f.max_ns};
    calls += f.calls;
  }
  EXPECT_EQ(report.calls, calls);
  return rows;
}

// Of an answer of api/functions.
Rows of_json(const view::TraceIndex& index, const std::string& text) {
  simdjson::dom::parser parser;
  const simdjson::dom::element json = parser.parse(text);
  Rows rows;
  std::size_t i = 0;
  for (const std::uint64_t function : json["rows"]["function"].get_array()) {
    const auto at = [&](const char* column) {
      const simdjson::dom::element value = json["rows"][column].at(i);
      return value.is_null() ? 0 : std::uint64_t(value);
    };
    rows[index.functions().functions()[function].name] = {
        at("calls"), at("open_calls"), at("total"), at("self"), at("min"), at("mean"), at("p50"), at("p99"), at("max")};
    ++i;
  }
  return rows;
}

std::string of_page(const view::ExportedCalls& page, const query::Scope& scope) {
  Json json;
  json.open('{');
  view::write_table(json, page.clock(), query::table_of(scope));
  return json.close('}').take();
}

constexpr double kNoBorder = std::numeric_limits<double>::infinity();

std::unique_ptr<view::ExportedCalls> exported(const view::TraceIndex& index, query::TickRange range = {}) {
  const std::string columns = view::encode_columns(test::scope_of(index, range));
  return view::ExportedCalls::read(std::as_bytes(std::span(columns)));
}

TEST(OneEngine, CommandServerAndPageCountAlike) {
  std::uint32_t kinds = 0;
  for (std::uint32_t seed = 1; seed <= 40; ++seed) {
    const auto made = random_calls(seed);
    const view::TraceIndex& index = *made->index;
    const Rows want = count_slowly(index.trace(), kinds);
    EXPECT_EQ(of_report(index.trace()), want) << seed;
    view::Api api({&index}, "test");
    EXPECT_EQ(of_json(index, api.answer("functions", {}).body), want) << seed;
    const auto page = exported(index);
    ASSERT_NE(page, nullptr);
    EXPECT_EQ(of_json(index, of_page(*page, page->scope(nullptr, -kNoBorder, kNoBorder))), want) << seed;
  }
  // Nothing that can be told of a call was left out.
  for (const std::uint32_t mark :
       {reader::kCallOpenBegin, reader::kCallOpenEnd, reader::kCallUnwound, reader::kCallJumped, reader::kCallResumed,
        reader::kCallSwitched, reader::kCallInherited})
    EXPECT_NE(kinds & mark, 0U) << mark;
}

TEST(OneEngine, AnswersOfThePageAreThoseOfTheServerForAnyPart) {
  std::mt19937 random(5);
  for (std::uint32_t seed = 1; seed <= 20; ++seed) {
    const auto made = random_calls(seed);
    const view::TraceIndex& index = *made->index;
    view::Api api({&index}, "test");
    const auto span = static_cast<std::uint32_t>(index.last_ticks() - index.origin());
    const std::uint32_t begin = random() % span;
    const std::uint32_t end = begin + 1 + random() % (span - begin);
    // The page holds this range alone.
    const auto page = exported(index, {index.origin() + begin, index.origin() + end});
    ASSERT_NE(page, nullptr);
    view::Parameters range = {{"begin", std::to_string(begin)}};
    if (end < span) range["end"] = std::to_string(end);
    const query::Scope scope = page->scope(nullptr, begin, end < span ? end : kNoBorder);
    EXPECT_EQ(of_json(index, of_page(*page, scope)), of_json(index, api.answer("functions", range).body)) << seed;

    view::Parameters of = range;
    of["function"] = "1";
    Json histogram;
    view::write_histogram(histogram, page->clock(), 1, query::histogram_of(scope, 1));
    EXPECT_EQ(histogram.take(), api.answer("histogram", of).body) << seed;
    for (const char* inverted : {"0", "1"}) {
      for (const view::Parameters& asked : {range, of}) {
        view::Parameters parameters = asked;
        parameters["inverted"] = inverted;
        const bool all = !asked.contains("function");
        query::FlameTree tree = query::flame(scope, all ? query::kNoFunction : 1);
        if (inverted[0] == '1') tree = tree.inverted();
        Json json;
        json.open('{');
        view::write_flame(json, tree, 0, view::kFlameShare, page->clock());
        EXPECT_EQ(json.close('}').take(), api.answer("flame", parameters).body) << seed << inverted << all;
      }
    }
  }
}

TEST(OneEngine, ColumnsThatAreNotSoundAreRefused) {
  const auto made = random_calls(3);
  const std::string good = view::encode_columns(test::scope_of(*made->index));
  const auto read = [](const std::string& bytes) { return view::ExportedCalls::read(std::as_bytes(std::span(bytes))); };
  ASSERT_NE(read(good), nullptr);
  std::mt19937 random(3);
  for (std::size_t size = 0; size < good.size() - 8; size += 1 + random() % 999)
    EXPECT_EQ(read(good.substr(0, size)), nullptr);
  for (int round = 0; round < 500; ++round) {
    std::string bad = good;
    for (int n = 0; n < 3; ++n) bad[random() % (n == 0 ? 128 : bad.size())] = static_cast<char>(random());
    const auto page = read(bad);
    // What is taken can be asked about.
    if (page == nullptr) continue;
    EXPECT_FALSE(of_page(*page, page->scope(nullptr, 100, 20'000)).empty());
  }
}

}  // namespace
}  // namespace karst
