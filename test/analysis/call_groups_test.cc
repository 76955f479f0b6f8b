// Groups of calls against sums made the long way, of made-up threads with arguments and requests.
#include "analysis/call_groups.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "analysis/report.h"
#include "analysis/values.h"
#include "test/analysis/sample_trace.h"

namespace karst::analysis {
namespace {

using format::NoteKind;
using test::SampleTrace;

// Calls within calls of three functions; f and g have arguments, of which some are not noted, and f returns something.
void make(SampleTrace& sample, std::uint32_t seed) {
  std::mt19937 random(seed);
  sample.process(1, "app", {"f", "g", "h"});
  sample.function(1).values = "n:i4,k:u4|:i4";
  sample.function(2).values = "n:i4,m:u4|";
  for (const std::uint32_t tid : {1U, 2U}) {
    sample.thread(tid, "app");
    std::uint64_t now = 1000;
    std::vector<std::uint32_t> stack;
    for (int i = 0; i < 1000; ++i) {
      now += 1 + random() % 50;
      if (random() % 10 == 0) sample.note(NoteKind::kRequest, random() % 4, now);
      if (!stack.empty() && (random() % 2 == 0 || stack.size() == 6)) {
        if (stack.back() == 1)
          sample.values(NoteKind::kReturned, 1, SampleTrace::two_integers(random() % 3, 0).substr(0, 5) + "\xff", now);
        sample.exit(stack.back(), now);
        stack.pop_back();
        continue;
      }
      const std::uint32_t function = 1 + random() % 3;
      if (function != 3 && random() % 5 != 0)
        sample.values(NoteKind::kArguments, function, SampleTrace::two_integers(random() % 4, random() % 2), now);
      sample.enter(function, now);
      stack.push_back(function);
    }
    for (; !stack.empty(); stack.pop_back()) sample.exit(stack.back(), ++now);
  }
}

Report report_of(const reader::Trace& trace, const FunctionSet* functions, CallGroups* groups,
                 std::uint64_t request = 0) {
  ReportBuilder builder(trace, functions, groups);
  for (const reader::Thread& thread : trace.processes()[0].threads) {
    reader::Calls calls = reader::rebuild_calls(trace, thread);
    const std::vector<RequestWork> work = work_on_requests(calls);
    if (request != 0) cut_to_request(calls, request);
    if (request == 0 && groups != nullptr) cut_at_requests(calls, work);
    if (groups != nullptr) groups->works_on(work);
    builder.add(thread, calls);
  }
  return builder.finish();
}

struct Slow {
  std::uint64_t calls = 0;
  std::int64_t total = 0, self = 0;
  std::vector<std::uint64_t> durations;
};

void agrees_by_value(const std::string& name, const std::string& regex_function) {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    SampleTrace sample;
    make(sample, seed);
    const reader::Trace trace = sample.open();
    const reader::Process& process = trace.processes()[0];
    const FunctionSet set(trace, [&](std::string_view f) { return regex_function.find(f) != std::string::npos; });
    std::map<std::string, Slow> slow;
    CallGroups groups(trace, name == "returned" ? GroupBy::kReturned : GroupBy::kArgument, name, &set);
    ReportBuilder builder(trace, &set, &groups);
    for (const reader::Thread& thread : process.threads) {
      const reader::Calls calls = reader::rebuild_calls(trace, thread);
      builder.add(thread, calls);
      const CallValues values(calls);
      const auto key = [&](std::uint32_t row) -> std::string {
        if (!set.contains(0, calls.function[row])) return {};
        for (const auto& [its, text] : values.named(trace, thread, row))
          if (its == name) return text;
        return "<not noted>";
      };
      for (std::uint32_t row = 0; row < calls.size(); ++row) {
        const std::string own = key(row);
        Slow& of = slow[own];
        const auto duration = static_cast<std::int64_t>(calls.duration[row]);
        ++of.calls;
        of.self += duration;
        of.durations.push_back(calls.duration[row]);
        bool outermost = true;
        for (std::uint32_t up = calls.parent[row]; up != reader::kNoParent; up = calls.parent[up])
          outermost = outermost && key(up) != own;
        if (outermost) of.total += duration;
        if (calls.parent[row] != reader::kNoParent) slow[key(calls.parent[row])].self -= duration;
      }
    }
    slow.erase("");
    Report report = builder.finish();
    EXPECT_TRUE(report.of_groups);
    ASSERT_EQ(report.functions.size(), slow.size());
    EXPECT_GE(slow.size(), 3U);
    for (const FunctionReport& row : report.functions) {
      ASSERT_EQ(slow.count(row.name), 1U) << row.name;
      Slow& of = slow[row.name];
      std::sort(of.durations.begin(), of.durations.end());
      EXPECT_EQ(row.calls, of.calls);
      EXPECT_EQ(row.total_ns, static_cast<std::uint64_t>(of.total));
      EXPECT_EQ(row.self_ns, static_cast<std::uint64_t>(of.self));
      EXPECT_EQ(row.p50_ns, of.durations[(of.durations.size() * 50 + 99) / 100 - 1]);
      EXPECT_EQ(row.max_ns, of.durations.back());
    }
    sort_by_name(report);
    EXPECT_EQ(report.functions[0].name, "0");
    EXPECT_EQ(report.functions.back().name, "<not noted>");
  }
}

TEST(CallGroups, AgreeWithASlowCountByAnArgument) { agrees_by_value("n", "f"); }
TEST(CallGroups, AgreeWithASlowCountByAnArgumentOfTwoFunctions) { agrees_by_value("n", "f g"); }
TEST(CallGroups, AgreeWithASlowCountByAnArgumentThatOneOfTwoFunctionsHas) { agrees_by_value("m", "f g"); }
TEST(CallGroups, AgreeWithASlowCountByWhatWasReturned) { agrees_by_value("returned", "f h"); }

TEST(CallGroups, WithoutFunctionsTheyAreOfThoseWhoseReturnedValuesAreNoted) {
  SampleTrace sample;
  make(sample, 1);
  const reader::Trace trace = sample.open();
  const FunctionSet f(trace, [](std::string_view name) { return name == "f"; });
  CallGroups all(trace, GroupBy::kReturned, {}, nullptr), of_f(trace, GroupBy::kReturned, {}, &f);
  const Report a = report_of(trace, nullptr, &all, 1), b = report_of(trace, &f, &of_f, 1);
  ASSERT_EQ(a.functions.size(), b.functions.size());
  for (std::size_t i = 0; i < a.functions.size(); ++i) EXPECT_EQ(a.functions[i].self_ns, b.functions[i].self_ns);
}

// One row is what a report of that request alone adds up to, and all rows are all time.
TEST(CallGroups, ByRequestAreWhatEachRequestHasAlone) {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    SampleTrace sample;
    make(sample, seed);
    const reader::Trace trace = sample.open();
    const FunctionSet f(trace, [](std::string_view name) { return name == "f"; });
    for (const FunctionSet* set : {static_cast<const FunctionSet*>(nullptr), &f}) {
      CallGroups groups(trace, GroupBy::kRequest, {}, set);
      const Report report = report_of(trace, set, &groups);
      std::uint64_t self = 0;
      ASSERT_EQ(report.functions.size(), 4U);
      for (const FunctionReport& row : report.functions) {
        self += row.self_ns;
        if (row.name == "<no request>") continue;
        const Report alone = report_of(trace, set, nullptr, std::stoull(row.name));
        std::uint64_t calls = 0, its_self = 0, longest = 0;
        for (const FunctionReport& of : alone.functions) {
          calls += of.calls;
          its_self += of.self_ns;
          longest = std::max(longest, of.max_ns);
        }
        EXPECT_EQ(row.calls, calls) << row.name;
        EXPECT_EQ(row.self_ns, its_self) << row.name;
        EXPECT_EQ(row.max_ns, longest) << row.name;
        if (set != nullptr) {
          EXPECT_EQ(row.total_ns, alone.functions[0].total_ns) << row.name;
        }
      }
      const Report whole = report_of(trace, set, nullptr);
      std::uint64_t all = 0;
      for (const FunctionReport& of : whole.functions) all += of.self_ns;
      EXPECT_EQ(self, all);
    }
  }
}

// What a filter leaves of calls has the values that it had.
TEST(Values, GoWithTheirCallsThroughFilters) {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    SampleTrace sample;
    make(sample, seed);
    const reader::Trace trace = sample.open();
    const FunctionSet f(trace, [](std::string_view name) { return name == "f"; });
    const reader::Thread& thread = trace.processes()[0].threads[0];
    const reader::Calls all = reader::rebuild_calls(trace, thread);
    const CallValues all_values(all);
    std::map<std::tuple<std::uint64_t, std::uint64_t, std::uint32_t>, NamedValues> expected;
    for (std::uint32_t row = 0; row < all.size(); ++row)
      expected[{all.begin[row], all.duration[row], all.function[row]}] = all_values.named(trace, thread, row);
    for (const CallFilter& filter : {CallFilter{.range = {}, .below = nullptr, .min_ticks = 60, .request = {}},
                                     CallFilter{.range = {}, .below = &f, .min_ticks = 0, .request = {}},
                                     CallFilter{.range = {}, .below = &f, .min_ticks = 40, .request = {}}}) {
      reader::Calls calls = all;
      filter_calls(calls, 0, filter);
      ASSERT_NE(calls.size(), 0U);
      const CallValues values(calls);
      for (std::uint32_t row = 0; row < calls.size(); ++row)
        EXPECT_EQ(values.named(trace, thread, row),
                  (expected[{calls.begin[row], calls.duration[row], calls.function[row]}]))
            << "seed " << seed << ", row " << row;
    }
  }
}

TEST(CallGroups, OfTooManyValuesTheRestIsOne) {
  SampleTrace sample;
  sample.process(1, "app", {"f"}).thread(1, "app");
  sample.function(1).values = "n:i4,k:u4|";
  for (std::uint32_t i = 0; i < 100; ++i) {
    sample.values(NoteKind::kArguments, 1, SampleTrace::two_integers(i, 0), 1000 + 10 * i);
    sample.call(1, 1000 + 10 * i, 1005 + 10 * i);
  }
  const reader::Trace trace = sample.open();
  CallGroups groups(trace, GroupBy::kArgument, "n", nullptr, 10);
  const Report report = report_of(trace, nullptr, &groups, 0);
  ASSERT_EQ(report.functions.size(), 11U);
  EXPECT_EQ(report.functions[0].name, "<other values>");
  EXPECT_EQ(report.functions[0].calls, 90U);
  EXPECT_EQ(report.functions[0].self_ns, 450U);
}

TEST(Values, NumbersAreTold) {
  EXPECT_EQ(number_in("-7"), -7.0);
  EXPECT_EQ(number_in("[3]"), 3.0);
  EXPECT_EQ(number_in("2.5"), 2.5);
  for (const char* text : {"0x1f", "RED", "\"7\"", "", "[]", "<unreadable>", "null", "nan", "7 "})
    EXPECT_FALSE(number_in(text)) << text;
}

}  // namespace
}  // namespace karst::analysis
