// One engine, asked in every way: the report of the command, the server's api and an exported page's part of a trace
// give the same numbers, to the ns and the count, as a slow count by the rows themselves. That the engine in the page
// answers in the server's very words is page/test/unit/engine.test.ts's.
#include <gtest/gtest.h>
#include <simdjson.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <random>
#include <vector>

#include "analysis/report.h"
#include "engine/api/api.h"
#include "engine/cut/cut.h"
#include "engine/index/index_builder.h"
#include "test/analysis/sample_trace.h"
#include "test/engine/random_calls.h"

namespace karst {
namespace {

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
Rows of_json(const engine::TraceIndex& index, const std::string& text) {
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

// What an exported page of a range has: the part cut out, in the whole's times.
struct Page {
  std::vector<std::byte> bytes;
  std::unique_ptr<engine::TraceIndex> index;
};
Page exported(const engine::TraceIndex& index, columns::TickRange range) {
  Page page;
  auto bytes = engine::cut_trace(test::scope_of(index, range));
  if (!bytes) throw std::runtime_error(bytes.error().message);
  page.bytes = std::move(*bytes);
  auto trace = reader::Trace::open_memory(page.bytes, "page");
  if (!trace) throw std::runtime_error(trace.error().message);
  engine::IndexProgress progress;
  // As the page builds it: in steps.
  engine::IndexBuild build(std::move(*trace), progress);
  while (build.step()) {
  }
  auto made = build.finish();
  if (!made) throw std::runtime_error(made.error().message);
  page.index = std::move(*made);
  page.index->set_part({index.origin(), range});
  return page;
}

TEST(OneEngine, CommandAndServerCountAlike) {
  std::uint32_t kinds = 0;
  for (std::uint32_t seed = 1; seed <= 40; ++seed) {
    const auto made = test::random_calls(seed);
    const engine::TraceIndex& index = *made->index;
    const Rows want = count_slowly(index.trace(), kinds);
    EXPECT_EQ(of_report(index.trace()), want) << seed;
    engine::Api api({&index}, "test");
    EXPECT_EQ(of_json(index, api.answer("functions", {}).body), want) << seed;
  }
  // Nothing that can be told of a call was left out.
  for (const std::uint32_t mark :
       {reader::kCallOpenBegin, reader::kCallOpenEnd, reader::kCallUnwound, reader::kCallJumped, reader::kCallResumed,
        reader::kCallSwitched, reader::kCallInherited})
    EXPECT_NE(kinds & mark, 0U) << mark;
}

std::optional<std::uint32_t> number_of(const engine::TraceIndex& index, const std::string& name) {
  const auto& functions = index.functions().functions();
  for (std::uint32_t i = 0; i < functions.size(); ++i) {
    if (functions[i].name == name) return i;
  }
  return std::nullopt;
}

// An answer without the number of the function that it begins with.
std::string behind_function(const std::string& answer) { return answer.substr(answer.find(',') + 1); }

// By path of names: total, self, calls.
std::map<std::string, std::array<std::uint64_t, 3>> flame_of(const engine::TraceIndex& index, engine::Api& api,
                                                             engine::Parameters parameters) {
  parameters["share"] = "0";  // else small nodes are merged, by their order
  simdjson::dom::parser parser;
  const std::string answer = api.answer("flame", parameters).body;
  const simdjson::dom::element nodes = parser.parse(answer)["nodes"];
  std::vector<std::string> paths;
  std::map<std::string, std::array<std::uint64_t, 3>> all;
  for (std::size_t i = 0; i < nodes["parent"].get_array().size(); ++i) {
    const std::int64_t parent = nodes["parent"].at(i);
    const std::int64_t function = nodes["function"].at(i);
    paths.push_back((parent < 0 ? "" : paths[static_cast<std::size_t>(parent)] + "/") +
                    (function < 0 ? "" : index.functions().functions()[static_cast<std::size_t>(function)].name));
    all[paths.back()] = {nodes["total"].at(i), nodes["self"].at(i), nodes["calls"].at(i)};
  }
  return all;
}

TEST(OneEngine, AnswersOfThePageAreThoseOfTheServerForAnyPart) {
  std::mt19937 random(5);
  for (std::uint32_t seed = 1; seed <= 40; ++seed) {
    const auto made = test::random_calls(seed, true);
    const engine::TraceIndex& index = *made->index;
    engine::Api api({&index}, "test");
    const auto span = static_cast<std::uint32_t>(index.last_ticks() - index.origin());
    const std::uint32_t begin = random() % span;
    const std::uint32_t end = begin + 1 + random() % (span - begin);
    // The page holds this range alone, and its questions name none.
    const Page page = exported(index, {index.origin() + begin, end < span ? index.origin() + end : ~std::uint64_t{0}});
    engine::Api of_page({page.index.get()}, "test");
    engine::Parameters range = {{"begin", std::to_string(begin)}};
    if (end < span) range["end"] = std::to_string(end);
    for (std::size_t i = 0; i < page.index->threads().size(); ++i) {
      const std::string& name = page.index->threads()[i].thread->name;
      std::size_t whole = 0;
      while (index.threads()[whole].thread->name != name) ++whole;
      engine::Parameters of_thread = range;
      of_thread["threads"] = std::to_string(whole);
      EXPECT_EQ(of_json(*page.index, of_page.answer("functions", {{"threads", std::to_string(i)}}).body),
                of_json(index, api.answer("functions", of_thread).body))
          << seed << " " << name;
    }
    // Functions may have other numbers in the page: they are known by their names.
    for (const std::string name : {"f1", "f2", "f6"}) {
      const auto here = number_of(*page.index, name);
      const auto there = number_of(index, name);
      if (!here || !there) continue;
      engine::Parameters of_function = range;
      of_function["function"] = std::to_string(*there);
      const engine::Parameters asked = {{"function", std::to_string(*here)}};
      EXPECT_EQ(behind_function(of_page.answer("histogram", asked).body),
                behind_function(api.answer("histogram", of_function).body))
          << seed << name;
      EXPECT_EQ(flame_of(*page.index, of_page, asked), flame_of(index, api, of_function)) << seed << name;
    }
    EXPECT_EQ(flame_of(*page.index, of_page, {}), flame_of(index, api, range)) << seed;
    engine::Parameters inverted = range;
    inverted["inverted"] = "1";
    EXPECT_EQ(flame_of(*page.index, of_page, {{"inverted", "1"}}), flame_of(index, api, inverted)) << seed;
  }
}

}  // namespace
}  // namespace karst
