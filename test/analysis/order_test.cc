#include "analysis/order.h"

#include <gtest/gtest.h>

#include <string>

#include "reader/trace.h"
#include "test/analysis/sample_trace.h"

namespace karst::analysis {
namespace {

using test::SampleTrace;

constexpr const char* kModule = "/bin/sample";

std::string names(const std::vector<LinkOrder::Function>& functions) {
  std::string text;
  for (const LinkOrder::Function& function : functions) text += std::string(function.name) + " ";
  return text;
}

// Two threads: the second calls `late` before the first does. `odd` and `bare` have no name for a line.
reader::Trace sample(SampleTrace& values) {
  values.process(1, "app", {"main", "late()", "hot()", "odd", "bare", "never()"});
  const char* const link_names[] = {"main", "_Z4latev", "_Z3hotv", "two words", "", "_Z5neverv"};
  for (std::uint32_t id = 1; id <= 6; ++id) values.function(id).link_name = link_names[id - 1];
  values.thread(1, "app").enter(1, 1000).call(3, 1100, 1110).call(3, 1120, 1130).call(4, 1200, 1210);
  values.call(5, 1300, 1310).call(2, 1400, 1410).exit(1, 2000);
  values.thread(2, "worker").enter(2, 1050).call(3, 1060, 1070).exit(2, 1080);
  return values.open();
}

LinkOrder order_of(const reader::Trace& trace, const FunctionSet* functions = nullptr, const char* module = kModule) {
  LinkOrder order(trace, module, functions);
  for (const reader::Thread& thread : trace.processes()[0].threads)
    order.add(thread, reader::rebuild_calls(trace, thread));
  return order;
}

TEST(LinkOrder, IsOfFirstCallsInAnyThreadOrOfHowMany) {
  SampleTrace values;
  const reader::Trace trace = sample(values);
  const LinkOrder order = order_of(trace);
  EXPECT_EQ(names(order.by_first_call()), "main _Z4latev _Z3hotv ");
  EXPECT_EQ(names(order.by_calls()), "_Z3hotv _Z4latev main ");
  EXPECT_EQ(order.nameless(), 2U);
  EXPECT_EQ(names(order_of(trace, nullptr, "/bin/another").by_first_call()), "");
}

TEST(LinkOrder, EdgesAreCallsBetweenNamedFunctions) {
  SampleTrace values;
  const reader::Trace trace = sample(values);
  std::string text;
  for (const LinkOrder::Edge& edge : order_of(trace).edges())
    text += std::string(edge.caller) + ">" + std::string(edge.callee) + " " + std::to_string(edge.calls) + " ";
  EXPECT_EQ(text, "_Z4latev>_Z3hotv 1 main>_Z3hotv 2 main>_Z4latev 1 ");
}

TEST(LinkOrder, OnlyFunctionsThatWereAskedFor) {
  SampleTrace values;
  const reader::Trace trace = sample(values);
  const FunctionSet only(trace, [](std::string_view name) { return name != "hot()"; });
  EXPECT_EQ(names(order_of(trace, &only).by_first_call()), "main _Z4latev ");
}

TEST(LinkOrder, ModulesAreListedByTheirFunctions) {
  SampleTrace values;
  const reader::Trace trace = sample(values);
  const auto modules = modules_with_functions(trace);
  ASSERT_EQ(modules.size(), 1U);
  EXPECT_EQ(modules[0].first, kModule);
  EXPECT_EQ(modules[0].second, 6U);
}

}  // namespace
}  // namespace karst::analysis
