// SPDX-License-Identifier: MIT
// karst flows: calls that lead to one another, in whatever thread; coroutines among them.
#include "analysis/flows.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/requests.h"
#include "answers/flows.h"
#include "cli/command.h"
#include "cli/commands/answer.h"
#include "cli/input/trace_input.h"
#include "cli/text/progress.h"
#include "cli/text/table.h"
#include "cli/text/terminal.h"
#include "cli/text/text.h"
#include "reader/trace.h"

namespace karst::cli {
namespace {

using analysis::Flow;
using analysis::FlowStep;

struct Options {
  InputOptions input;
  AnswerOptions answer;
  std::string id;  // empty: all
};

constexpr const char* kExample = R"(:

  flow                  begin duration steps threads  between  longest where
  flow 17             5.12 ms 48.31 ms     3       2 48.31 ms 45.02 ms produce > consume
  session [0x5581c0]  1.07 ms 20.44 ms    12       4 19.98 ms 10.31 ms step 7

)";
constexpr const char* kRest = R"(
The filters choose flows by their steps: one that passes is enough.

  karst flows --id 17    the steps of flow 17, each with its thread and call)";

/// As `--id` names one: by decimal digits, or in hexadecimal as frames are shown.
Result<std::uint64_t> parse_id(const std::string& text) {
  const bool hex = text.starts_with("0x");
  const std::string_view digits = std::string_view(text).substr(hex ? 2 : 0);
  std::uint64_t id = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), id, hex ? 16 : 10);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size())
    return Error{"'" + text + "': the number of a flow is needed, like 17, or 0x5581c0 of a coroutine"};
  return id;
}

/// ", suspended for p50 1.2 us, p90 3 us, p99 8 ms, max 10.31 ms"; sorts `ticks`.
std::string percentiles(const answers::Times& times, std::vector<std::uint64_t>& ticks, const char* what) {
  if (ticks.size() < 2) return {};
  std::sort(ticks.begin(), ticks.end());
  const auto percentile = [&](std::size_t percent) {  // the nearest rank, as in report
    return duration_text(times.ns(ticks[(ticks.size() * percent + 99) / 100 - 1]));
  };
  return fmt::format(", {} p50 {}, p90 {}, p99 {}, max {}", what, percentile(50), percentile(90), percentile(99),
                     percentile(100));
}

// "2 flows, 40 coroutines resumed 1,200 times, suspended for p50 1.2 us, p90 3 us, p99 8 ms, max 10.31 ms".
std::string summary(const std::vector<Flow>& flows, const answers::Times& times) {
  std::uint64_t said = 0, resumed = 0;
  std::vector<std::uint64_t> gaps[2];
  for (const Flow& flow : flows) {
    (flow.coroutine == 0 ? said : resumed) += flow.coroutine == 0 ? 1 : flow.steps.size();
    for (std::size_t i = 0; i + 1 < flow.steps.size(); ++i) gaps[flow.coroutine != 0].push_back(flow.gap(i));
  }
  std::string text;
  if (said != 0) text = plural(said, "flow") + percentiles(times, gaps[0], "between two steps");
  if (flows.size() > said)
    text += (text.empty() ? "" : "; ") + plural(flows.size() - said, "coroutine") + " resumed " +
            plural(resumed, "time") + percentiles(times, gaps[1], "suspended for");
  return text;
}

/// Of each flow its steps.
void print_steps(const reader::Trace& trace, const std::vector<answers::FlowRow>& flows, Screen& screen) {
  const AnswerOptions all;
  const char* before = "";
  for (const answers::FlowRow& flow : flows) {
    std::string head = analysis::flow_name(trace, flow.of) + ": " + plural(flow.of.steps.size(), "step");
    if (trace.processes().size() > 1) head += fmt::format(", process {}", trace.processes()[flow.of.process].pid);
    screen.output().append(before + printable(head) + "\n\n");
    before = "\n";
    std::vector<answers::FlowStepRow> steps;
    for (std::size_t at = 0; at < flow.of.steps.size(); ++at) steps.push_back({flow, at});
    (void)Answer(trace, answers::flow_steps(), all, addresses(steps)).print_table(screen);
  }
}

/// Whether a step of this thread passes the filters.
std::function<bool(const FlowStep&)> step_filter(const Input& input, const reader::Thread& thread,
                                                 const reader::Calls& calls) {
  const analysis::CallFilter& filter = input.filter;
  std::vector<analysis::RequestWork> work;
  if (filter.request) work = analysis::work_on_requests(calls);
  return [&input, &thread, &calls, &filter, work = std::move(work)](const FlowStep& step) {
    if (filter.range && (step.end < filter.range->begin || step.begin >= filter.range->end)) return false;
    if (input.functions && !input.functions->contains(thread.process, step.function)) return false;
    if (filter.without != nullptr && filter.without->contains(thread.process, step.function)) return false;
    if (filter.min_ticks != 0 && (step.row == reader::kNoParent || calls.duration[step.row] < filter.min_ticks))
      return false;
    if (filter.below != nullptr) {
      std::uint32_t row = step.row;
      while (row != reader::kNoParent && !filter.below->contains(thread.process, calls.function[row]))
        row = calls.parent[row];
      if (row == reader::kNoParent) return false;
    }
    return !filter.request || std::any_of(work.begin(), work.end(), [&](const analysis::RequestWork& one) {
      return one.id == *filter.request && one.range.begin <= step.begin && step.begin < one.range.end;
    });
  };
}

int flows(const Options& options) {
  std::optional<std::uint64_t> id;
  if (!options.id.empty()) {
    auto parsed = parse_id(options.id);
    if (!parsed) return usage_error("--id " + parsed.error().message, "flows");
    id = *parsed;
  }
  auto input = open_input(options.input);
  if (!input) return fail(input.error());
  const reader::Trace& trace = (*input)->trace;
  analysis::FlowFinder finder(trace);
  {
    Progress progress("putting flows together", (*input)->events);
    reader::Calls calls;
    for (const reader::Thread* thread : (*input)->threads) {
      if (!analysis::tells_of_flows(trace, *thread)) continue;
      calls = reader::rebuild_calls(trace, *thread, std::move(calls));
      progress.done += calls.events;
      finder.add(*thread, calls, step_filter(**input, *thread, calls));
    }
  }
  std::vector<Flow> found = finder.take();
  if (found.empty())
    return fail({trace.name() + " has no flows: a program tells of them with karst_flow(ID) and karst_flow_end(ID) of "
                                "karst/karst.h, and karst run notes C++20 coroutines of its own accord"});
  std::erase_if(found, [&](const Flow& flow) { return !flow.passes || (id && flow.id != *id); });
  if (found.empty() && id) return fail({trace.name() + " has no flow " + options.id + " that passes all filters"});
  if (found.empty()) return fail({"no flow of " + trace.name() + " passes all filters"});
  const answers::Times times(trace);
  std::vector<answers::FlowRow> rows;
  rows.reserve(found.size());
  for (const Flow& flow : found) rows.push_back({flow, trace, times});
  const Answer answer(trace, answers::flows(), options.answer, addresses(rows));
  if (!options.answer.is_text()) return print_answer(options.answer, **input, answer);
  Screen screen(options.answer.text);
  say_partial(screen, **input);
  if (id) {
    print_steps(trace, rows, screen);
  } else {
    screen.output().append(wrap(summary(found, times), screen.width(), 2) + "\n\n");
    if (Status printed = answer.print_table(screen); !printed) return fail(printed.error());
  }
  return screen.finish(&trace);
}

}  // namespace

void register_flows(Command app, int& status) {
  auto options = std::make_shared<Options>();
  Command command =
      app.add_subcommand("flows", "List what leads from call to call, coroutines too, and how long each step waited");
  command.footer(answer_footer(answers::flows(), kExample, kRest));
  add_file_option(command, options->input);
  command.add_option("--id", options->id, "Show the steps of this flow").type_name("ID");
  add_answer_options(command, options->answer, answers::flows(), "flows", "longest", 20);
  add_selection_options(command, options->input, "Show only flows that a function whose name matches is a step of");
  command.callback([options, &status] { status = flows(*options); });
}

}  // namespace karst::cli
