// SPDX-License-Identifier: MIT
// api/findings: what karst diff says of two traces, by its own means. An index has no durations by function: calls are
// rebuilt once more.
#include "engine/api/findings.h"

#include <array>
#include <utility>

#include "analysis/diff.h"
#include "analysis/diff_calls.h"
#include "analysis/report.h"
#include "analysis/tracing_cost.h"
#include "answers/changes.h"
#include "columns/edges.h"
#include "engine/api/api.h"
#include "engine/api/question.h"
#include "engine/api/reply.h"
#include "engine/api/rows.h"
#include "engine/api/times.h"
#include "reader/partial.h"
#include "words/findings.h"

namespace karst::engine {
namespace {

struct Run {
  explicit Run(const reader::Trace& trace) : builder(trace) {}
  analysis::ReportBuilder builder;
  columns::EdgeSums edges;
  analysis::Report report;
};

/// `cost`: as for without_cost(). What is there is of no use once `work` is stopped.
void add_up(Run& run, const reader::Trace& trace, bool raw, const std::optional<reader::CallCost>& cost, Work* work) {
  reader::RebuildLimits limits;
  if (work != nullptr) limits.stop[0] = &work->stop;
  reader::Calls calls;
  for (const reader::Process& process : trace.processes())
    for (const reader::Thread& thread : process.threads) {
      calls = reader::rebuild_calls(trace, thread, limits, std::move(calls));
      if (!go_on(work, calls.size())) return;
      if (!raw) analysis::take_cost_out(calls, cost.value_or(process.cost), std::nullopt);
      run.builder.add(thread, calls);
      run.edges.add(run.builder.parts().latest());
    }
  run.edges.settle();
  run.report = run.builder.finish();
}

struct FindingAnswer {
  const words::Told& told;
  std::array<double, 2> all_ns;
};

}  // namespace

const answers::Relation& finding_answers() {
  using Row = FindingAnswer;
  using answers::Type;
  static const answers::Relation relation{
      "finding_answers",
      "finding_answer",
      "What changed from one trace to another",
      {answers::field<Row>("all", Type::kText, "how long all took, in words",
                           [](const Row& r) { return words::words_of_all(r.all_ns); }),
       answers::rows<Row>("findings", "what is worth a line", answers::findings(),
                          [](const Row& r, const answers::UseRow& use) {
                            for (const analysis::Finding* of : r.told.findings) use(of);
                          }),
       answers::field<Row>("left_out", Type::kCount, "certain ones beyond these",
                           [](const Row& r) { return r.told.left_out; })}};
  return relation;
}

Reply Api::findings(const Question& question) {
  const Question second = question.second();
  if (!second.error().empty()) question.complain("the second trace: " + second.error());
  if (!question.error().empty()) return {};
  Work* const work = question.work();
  const auto cost = cost_beside(question.index(), &second.index());
  const bool raw = question.is_raw() || (cost && cost->call == 0);
  expect(work, question.index().calls() + second.index().calls());
  const reader::Trace &a = question.index().trace(), &b = second.index().trace();
  Run first(a), other(b);
  add_up(first, a, raw, cost, work);
  add_up(other, b, raw, cost, work);
  if (is_stopped(work)) return {};
  const analysis::Measured sides[] = {{first.report, first.builder, a, &first.edges.edges()},
                                      {other.report, other.builder, b, &other.edges.edges()}};
  const std::span before(sides, 1), after(sides + 1, 1);
  const auto functions = analysis::compare(before, after, {});
  const auto found = analysis::findings(functions, analysis::compare_calls(before, after));
  const std::array<double, 2> all_ns = {analysis::all_self_ns(functions, 0), analysis::all_self_ns(functions, 1)};
  const words::Told told = words::worth_telling(found, all_ns, false);
  Json json;
  const FindingAnswer answer{told, all_ns};
  json.open('{');
  write_row(json, question.index(), finding_answers(), &answer);
  json.close('}');
  return json_reply(json);
}

}  // namespace karst::engine
