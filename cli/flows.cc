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
#include "base/json.h"
#include "base/output.h"
#include "base/plain_name.h"
#include "cli/command.h"
#include "cli/csv.h"
#include "cli/names.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "cli/text.h"
#include "cli/trace_input.h"
#include "reader/trace.h"

namespace karst::cli {
namespace {

using analysis::Flow;
using analysis::FlowStep;

struct Options {
  InputOptions input;
  std::string format = "text";
  std::string sort = "longest";
  std::string id;  // empty: all
  std::size_t limit = 20;
  TextOptions text;
};

constexpr const char* kFooter = R"(Output: a row for each flow that the program told of with karst.h, and for each
C++20 coroutine that was resumed:

  flow                  begin duration steps threads  between  longest where
  flow 17             5.12 ms 48.31 ms     3       2 48.31 ms 45.02 ms produce > consume
  session [0x5581c0]  1.07 ms 20.44 ms    12       4 19.98 ms 10.31 ms step 7

  flow      as karst_flow(ID) says it; a coroutine's name, and where its frame was
  begin     since the trace's first event
  duration  from its first step to its last; '>': its end was not told
  steps     calls that it went through; of a coroutine its resumptions
  between   time from each step to the next: of a coroutine, while it was suspended
  longest   of these times, and the calls that it lies between, or behind which
            step of a coroutine

The filters choose flows by their steps: one that passes is enough.

  karst flows --id 17    the steps of flow 17, each with its thread and call)";

const std::vector<std::string>& sort_words() {
  static const std::vector<std::string> words{"longest", "between", "duration", "steps", "threads", "begin"};
  return words;
}

std::uint64_t longest(const Flow& flow) {
  const std::size_t at = flow.longest_gap();
  return at == flow.steps.size() ? 0 : flow.gap(at);
}

/// What to sort by, the greatest first.
std::uint64_t key_of(const Flow& flow, std::string_view by) {
  if (by == "between") return flow.gaps();
  if (by == "duration") return flow.end - flow.begin();
  if (by == "steps") return flow.steps.size();
  if (by == "threads") return flow.threads();
  return longest(flow);
}

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

class FlowPrinter {
 public:
  FlowPrinter(const Input& input, const std::vector<Flow>& flows, std::size_t limit)
      : input_(input),
        flows_(flows),
        shown_(limit == 0 ? flows.size() : std::min(limit, flows.size())),
        start_(analysis::first_ticks(input.trace)) {}

  void print_text(Screen& screen) const {
    screen.output().append(wrap(summary(), screen.width(), 2) + "\n\n");
    std::vector<Column> columns;
    const bool processes = input_.trace.processes().size() > 1;
    if (processes) columns.push_back({.key = "process", .title = "process", .rank = 4});
    columns.push_back({.key = "flow", .title = "flow", .left = true});
    columns.push_back({.key = "begin", .title = "begin", .rank = 3});
    columns.push_back({.key = "duration", .title = "duration "});
    columns.push_back({.key = "steps", .title = "steps", .rank = 2});
    columns.push_back({.key = "threads", .title = "threads", .rank = 1});
    columns.push_back({.key = "between", .title = "between"});
    columns.push_back({.key = "longest", .title = "longest"});
    columns.push_back({.key = "where", .title = "where", .left = true});
    Table table(std::move(columns), Shorten::kName);
    for (std::size_t i = 0; i < shown_; ++i) {
      const Flow& flow = flows_[i];
      std::vector<std::string> cells;
      if (processes) cells.push_back(fmt::to_string(process(flow).pid));
      cells.push_back(printable(flow_name(input_.trace, flow)));
      cells.push_back(duration_text(since_start(flow.begin())));
      cells.push_back(time(flow.end - flow.begin()) + (flow.ended ? " " : ">"));
      cells.push_back(count_text(flow.steps.size()));
      cells.push_back(count_text(flow.threads()));
      cells.push_back(time(flow.gaps()));
      cells.push_back(flow.steps.size() < 2 ? "" : time(longest(flow)));
      cells.push_back(printable(where(flow)));
      table.add(cells);
    }
    table.print(screen);
  }

  /// Of each flow its steps.
  void print_steps(Screen& screen) const {
    for (std::size_t i = 0; i < shown_; ++i) {
      const Flow& flow = flows_[i];
      std::string head = flow_name(input_.trace, flow) + ": " + plural(flow.steps.size(), "step");
      if (input_.trace.processes().size() > 1) head += fmt::format(", process {}", process(flow).pid);
      screen.output().append((i == 0 ? "" : "\n") + printable(head) + "\n\n");
      Table table({{.key = "step", .title = "step"},
                   {.key = "begin", .title = "begin"},
                   {.key = "after", .title = "after the last"},
                   {.key = "lasts", .title = "lasts"},
                   {.key = "thread", .title = "thread", .left = true},
                   {.key = "call", .title = "call", .left = true}},
                  Shorten::kName);
      for (std::size_t at = 0; at < flow.steps.size(); ++at) {
        const FlowStep& step = flow.steps[at];
        table.add({fmt::to_string(at + 1), duration_text(since_start(step.begin)),
                   at == 0 ? "" : time(flow.gap(at - 1)), flow.coroutine == 0 ? "" : time(step.end - step.begin),
                   printable(thread_text(*step.thread)), printable(call(flow, step))});
      }
      table.print(screen);
    }
  }

  void print_csv(Output& output) const {
    output.append("flow,id,coroutine,pid,begin_ns,duration_ns,ended,steps,threads,between_ns,longest_ns,where\n");
    for (std::size_t i = 0; i < shown_ && !output.failed(); ++i) {
      const Flow& f = flows_[i];
      output.append(fmt::format("{},{},{},{},{},{},{},{},{},{},{},{}\n", csv_field(flow_name(input_.trace, f)), f.id,
                                f.coroutine != 0 ? 1 : 0, process(f).pid, since_start(f.begin()), ns(f.end - f.begin()),
                                f.ended ? 1 : 0, f.steps.size(), f.threads(), ns(f.gaps()), ns(longest(f)),
                                csv_field(where(f))));
    }
  }

  void print_json(Output& output) const {
    Json json;
    json.open('{').field("trace", input_.trace.name()).field("count", flows_.size()).key("flows").open('[');
    for (std::size_t i = 0; i < shown_ && !output.failed(); ++i) {
      const Flow& flow = flows_[i];
      json.line().open('{').field("flow", flow_name(input_.trace, flow)).field("id", flow.id);
      json.field("coroutine", flow.coroutine != 0).field("pid", process(flow).pid);
      json.field("begin_ns", since_start(flow.begin())).field("duration_ns", ns(flow.end - flow.begin()));
      json.field("ended", flow.ended).field("threads", flow.threads()).field("between_ns", ns(flow.gaps()));
      json.field("longest_ns", ns(longest(flow))).key("steps").open('[');
      for (std::size_t at = 0; at < flow.steps.size(); ++at) {
        const FlowStep& step = flow.steps[at];
        json.open('{').field("begin_ns", since_start(step.begin)).field("duration_ns", ns(step.end - step.begin));
        json.field("after_ns", at == 0 ? 0 : ns(flow.gap(at - 1)));
        json.field("tid", step.thread->tid).field("thread", step.thread->name).field("call", call(flow, step));
        json.close('}').flush(output);
      }
      json.close(']').close('}').flush(output);
    }
    json.close(']').close('}').flush(output);
    output.append("\n");
  }

 private:
  const reader::Process& process(const Flow& flow) const { return input_.trace.processes()[flow.process]; }
  std::uint64_t ns(std::uint64_t ticks) const { return input_.trace.clock().to_ns(ticks); }
  std::uint64_t since_start(std::uint64_t ticks) const { return ticks > start_ ? ns(ticks - start_) : 0; }
  std::string time(std::uint64_t ticks) const { return duration_text(ns(ticks)); }
  std::string call(const Flow& flow, const FlowStep& step) const {
    return step.function == 0 ? std::string("no call") : input_.trace.function(process(flow), step.function).name;
  }
  static std::string thread_text(const reader::Thread& thread) {
    return fmt::format("{} {}", thread.name.empty() ? "thread" : thread.name, thread.tid);
  }

  std::string where(const Flow& flow) const {
    const std::size_t at = flow.longest_gap();
    if (at == flow.steps.size()) return {};
    if (flow.coroutine != 0) return fmt::format("step {}", at + 1);
    return fmt::format("{} > {}", plain_name(call(flow, flow.steps[at])), plain_name(call(flow, flow.steps[at + 1])));
  }

  // "2 flows, 40 coroutines resumed 1,200 times: suspended for p50 1.2 us, p90 3 us, p99 8 ms, max 10.31 ms".
  std::string summary() const {
    std::uint64_t said = 0, resumed = 0;
    std::vector<std::uint64_t> gaps[2];
    for (const Flow& flow : flows_) {
      (flow.coroutine == 0 ? said : resumed) += flow.coroutine == 0 ? 1 : flow.steps.size();
      for (std::size_t i = 0; i + 1 < flow.steps.size(); ++i) gaps[flow.coroutine != 0].push_back(flow.gap(i));
    }
    std::string text;
    if (said != 0) text = plural(said, "flow") + percentiles(gaps[0], "between two steps");
    if (flows_.size() > said)
      text += (text.empty() ? "" : "; ") + plural(flows_.size() - said, "coroutine") + " resumed " +
              plural(resumed, "time") + percentiles(gaps[1], "suspended for");
    return text;
  }

  std::string percentiles(std::vector<std::uint64_t>& times, const char* what) const {
    if (times.size() < 2) return {};
    std::sort(times.begin(), times.end());
    const auto percentile = [&](std::size_t percent) {  // the nearest rank, as in report
      return time(times[(times.size() * percent + 99) / 100 - 1]);
    };
    return fmt::format(", {} p50 {}, p90 {}, p99 {}, max {}", what, percentile(50), percentile(90), percentile(99),
                       time(times.back()));
  }

  const Input& input_;
  const std::vector<Flow>& flows_;
  const std::size_t shown_;
  const std::uint64_t start_;
};

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
  if (options.sort != "begin")
    std::stable_sort(found.begin(), found.end(),
                     [&](const Flow& a, const Flow& b) { return key_of(a, options.sort) > key_of(b, options.sort); });
  const bool text = options.format == "text";
  const FlowPrinter printer(**input, found, text || options.limit != Options().limit ? options.limit : 0);
  if (text) {
    Screen screen(options.text);
    say_partial(screen, **input);
    if (id)
      printer.print_steps(screen);
    else
      printer.print_text(screen);
    return screen.finish(&trace);
  }
  return print_data(
      options.format, **input, [&](Output& output) { printer.print_json(output); },
      [&](Output& output) { printer.print_csv(output); });
}

}  // namespace

void register_flows(Command app, int& status) {
  auto options = std::make_shared<Options>();
  Command command =
      app.add_subcommand("flows", "List what leads from call to call, coroutines too, and how long each step waited");
  command.footer(kFooter);
  add_file_option(command, options->input);
  command.add_option("--id", options->id, "Show the steps of this flow").type_name("ID");
  command.add_option("-n,--limit", options->limit, "Show only the first N flows (text: 20; csv and json: all)")
      .type_name("N")
      .check(positive());
  command.add_option("-s,--sort", options->sort, "Greatest first (longest unless given); begin: in order")
      .check(one_of(sort_words()))
      .type_name("COLUMN");
  add_format_options(command, options->format, {"text", "csv", "json"});
  add_selection_options(command, options->input, "Show only flows that a function whose name matches is a step of");
  add_text_options(command, options->text);
  command.callback([options, &status] { status = flows(*options); });
}

}  // namespace karst::cli
