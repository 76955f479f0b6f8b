// SPDX-License-Identifier: MIT
// karst report: time by function, or by value of the calls of some.
#include "analysis/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "analysis/frames.h"
#include "analysis/values.h"
#include "answers/functions.h"
#include "base/json.h"
#include "cli/command.h"
#include "cli/commands/answer.h"
#include "cli/commands/function_views.h"
#include "cli/input/trace_input.h"
#include "cli/text/help.h"
#include "cli/text/names.h"
#include "cli/text/table.h"
#include "cli/text/terminal.h"
#include "cli/text/text.h"
#include "reader/trace.h"

namespace karst::cli {
namespace {

struct Options {
  InputOptions input;
  AnswerOptions answer;
  std::string by;  // empty: by function
  bool overhead = false;
  bool histograms = false;
  bool callers = false;
};

constexpr const char* kRest = R"(
Behind the name, with --wide: its module and place, and '+N open', N of its calls
with a begin or an end that is not known; '+N unwound', '+N jumped', '+N tail':
ended by an exception, a longjmp, a tail call. 'N left by one, up to 5 ms long':
what these jumped to is not traced, so how long it took is not in their times.
Times are without what tracing
itself took; --raw leaves it in.
  ~1.2 ms   more than half of what was recorded was tracing's own
  18-40 ns  what tracing took of such calls is not known better
Threads add up: four threads busy for a second make four seconds.

--by: a row for each value of the calls of --function, with the same fields.
  arg:NAME  what that argument was (karst run --args)
  returned  what they returned (karst run --returns)
  request   the request that their thread worked on; calls are cut at its ends
  frame     the frame they were in (KARST_FRAME), all threads together, from 1
            on; frame:NAME where a program has several kinds
Calls without a value are '<not noted>'. After 262,144 values the calls of
further ones are '<other values>'.)";

constexpr std::string_view kArgument = "arg:", kFrame = "frame:";

answers::ReportContext context_of(const analysis::Report& report, const Input& input) {
  answers::ReportContext context(report);
  const CostRange cost = call_cost_of(input);
  if (input.raw || cost.most == 0) return context;
  context.share_off_by = cost.off_by / cost.most;
  context.call_off_by_ns = std::max(cost.off_by, cost.most);
  return context;
}

std::string head_text(const analysis::Report& report, const reader::Trace& trace) {
  std::string head = fmt::format("{}: {} by {}", printable(trace.name()), plural(report.calls, "call"),
                                 plural(report.threads, "thread"));
  if (report.fibers != 0) head += " and " + plural(report.fibers, "fiber");
  return head + " in " + duration_text(report.span_ns);
}

/// What --limit left out of the groups.
struct Rest {
  explicit Rest(const Answer& answer) : values(answer.left_out().size()) {
    for (const void* row : answer.left_out()) {
      const analysis::FunctionReport& of = static_cast<const answers::FunctionRow*>(row)->of;
      calls += of.calls;
      self_ns += of.self_ns;
    }
  }
  std::uint64_t values, calls = 0, self_ns = 0;
};

void say_rest(const Rest& rest, Screen& screen) {
  if (rest.values == 0) return;
  const std::string text = fmt::format("... and {}: {}, {} of self time", plural(rest.values, "more value"),
                                       plural(rest.calls, "call"), duration_text(rest.self_ns));
  screen.output().append(shorten(text, screen.width(), Shorten::kEnd) + "\n");
}

/// Functions whose calls are not seen to their end, where they may have lasted much longer than the table says.
void say_left(const analysis::Report& report, Screen& screen) {
  constexpr std::uint64_t kMuch = 3, kOfSpan = 1000;
  const analysis::FunctionReport* longest = nullptr;
  std::uint64_t functions = 0;
  for (const analysis::FunctionReport& of : report.functions) {
    if (of.left_calls == 0 || of.left_max_ns / kMuch < of.max_ns || of.left_max_ns < report.span_ns / kOfSpan) continue;
    ++functions;
    if (longest == nullptr || of.left_max_ns > longest->left_max_ns) longest = &of;
  }
  if (longest == nullptr) return;
  const std::string most = fmt::format(" left by a tail call, up to {} long", duration_text(longest->left_max_ns));
  const std::string rest =
      functions == 1 ? "" : fmt::format("; {} more, with --sort left_max", plural(functions - 1, "function"));
  screen.output().append(wrap("(" + printable(plain_name(longest->name)) + most + rest + ")", screen.width(), 1) +
                         "\n");
}

/// What is known of all, into an object that is open.
void write_facts(Json& json, const analysis::Report& report, const Answer& answer, const std::string& by,
                 const Input& input) {
  if (report.of_groups) {
    const Rest rest(answer);
    json.field("by", by).key("rest").open('{').field("values", rest.values).field("calls", rest.calls);
    json.field("self_ns", rest.self_ns).close('}');
  }
  json.field("threads", report.threads).field("fibers", report.fibers).field("calls", report.calls);
  json.field("events", report.events).field("span_ns", report.span_ns).field("complete", input.trace.complete());
  json.field("out_of_order", report.out_of_order).field("unmatched_exits", report.unmatched_exits);
  json.field("missing_exits", report.missing_exits).field("unknown_ids", report.unknown_ids);
  json.field("missing_blocks", report.missing_blocks);
  const CostRange cost = call_cost_of(input);
  json.field("call_cost_ns", cost.most).field("call_cost_off_by_ns", cost.off_by);
}

/// What tracing took of a thread's time.
struct ThreadOverhead {
  const reader::Thread* thread;
  std::uint64_t calls, tracing_ns, span_ns;
};

ThreadOverhead overhead_of(const reader::Thread& thread, const reader::Calls& calls, const reader::Clock& clock) {
  std::uint64_t counted = 0;
  for (const std::uint8_t marks : calls.marks) counted += columns::is_counted(marks) ? 1 : 0;
  const std::uint64_t span = calls.last_ticks > calls.first_ticks ? calls.last_ticks - calls.first_ticks : 0;
  std::uint64_t ticks = counted * calls.usual_call_cost / format::kCallCostUnit;
  for (const reader::Note& note : calls.notes) ticks += analysis::ticks_of_tracing(calls, note);
  return {&thread, counted, clock.to_ns(ticks), clock.to_ns(span)};
}

void print_threads(const std::vector<ThreadOverhead>& threads, Screen& screen) {
  Table table({{"share", "of time"}, {"tracing", "tracing"}, {"calls", "calls"}, {"thread", "thread"}}, Shorten::kEnd);
  for (const ThreadOverhead& of : threads)
    table.add({percent_text(of.tracing_ns, of.span_ns), duration_text(of.tracing_ns), count_text(of.calls),
               fmt::format("{} {}", of.thread->tid, printable(of.thread->name))});
  table.print(screen);
  screen.output().append("\n");
}

std::string is_by(const std::string& text) {
  if (text == "returned" || text == "request" || text == "frame" || text.starts_with(kFrame) ||
      (text.starts_with(kArgument) && text.size() > kArgument.size()))
    return {};
  return "'" + text + "' is none of arg:NAME, returned, request, frame, frame:NAME" +
         did_you_mean(text, {"returned", "request", "frame"});
}

/// The groups that --by asks for, and the parts that calls are cut at for them, if any. Error: the trace has no such
/// values.
Result<std::unique_ptr<analysis::CallGroups>> groups_of(const Input& input, const Options& options, CallParts& parts) {
  using analysis::GroupBy;
  const reader::Trace& trace = input.trace;
  const auto groups = [&](GroupBy by, std::string name = {}) {
    return std::make_unique<analysis::CallGroups>(trace, by, std::move(name), input.function_set());
  };
  if (options.by == "request") {
    if (std::none_of(input.threads.begin(), input.threads.end(),
                     [&](const reader::Thread* of) { return analysis::tells_of_requests(trace, *of); }))
      return Error{fmt::format("no thread of {} says which request it works on: see karst_request() in karst/karst.h",
                               trace.name())};
    parts.of = [](const reader::Thread&, const reader::Calls& calls) { return analysis::work_on_requests(calls); };
    return groups(GroupBy::kRequest);
  }
  if (options.by == "frame" || options.by.starts_with(kFrame)) {
    const auto frames = std::make_shared<const analysis::Frames>(trace);
    const std::vector<std::string> names = frames->names();
    if (names.empty()) return Error{trace.name() + " has no frames: see KARST_FRAME() in karst/karst.h"};
    std::string name = options.by == "frame" ? names.front() : options.by.substr(kFrame.size());
    if (options.by == "frame" ? names.size() != 1 : std::find(names.begin(), names.end(), name) == names.end()) {
      std::string list;
      for (const std::string& one : names) list += (list.empty() ? " --by frame:" : ", --by frame:") + printable(one);
      return Error{trace.name() + " has frames of these names:" + list};
    }
    parts.of = [frames, name](const reader::Thread& thread, const reader::Calls&) {
      return frames->of(thread.process, name);
    };
    return groups(GroupBy::kFrame);
  }
  const bool returned = options.by == "returned";
  const std::string name = returned ? options.by : options.by.substr(kArgument.size());
  // What was asked for when it was recorded: of these functions, and of others.
  std::vector<std::string> names, others;
  const auto add = [](std::vector<std::string>& to, std::string text) {
    if (std::find(to.begin(), to.end(), text) == to.end()) to.push_back(std::move(text));
  };
  for (const reader::Process& process : trace.processes()) {
    for (std::uint32_t id = 1; id < process.functions.size(); ++id) {
      const reader::Function& function = process.functions[id];
      std::vector<std::string> its = analysis::argument_names(function);
      if (returned) its.assign(analysis::has_returned(function) ? 1 : 0, name);
      const bool asked = !input.functions || input.functions->contains(process.index, id);
      for (std::string& one : its) add(asked ? names : others, asked ? std::move(one) : plain_name(function.name));
    }
  }
  if (std::find(names.begin(), names.end(), name) != names.end())
    return groups(returned ? GroupBy::kReturned : GroupBy::kArgument, name);
  const auto list = [](const std::vector<std::string>& words) {
    constexpr std::size_t kMost = 20;
    std::string text;
    for (std::size_t i = 0; i < std::min(words.size(), kMost); ++i) text += (i == 0 ? "" : ", ") + printable(words[i]);
    return words.size() > kMost ? text + ", ..." : text;
  };
  if (!names.empty())
    return Error{fmt::format("no function that matches '{}' has an argument '{}' noted; there are {}",
                             options.input.function, name, list(names))};
  const char* const what = returned ? "returned values" : "arguments";
  if (others.empty())
    return Error{fmt::format("{} has no {} noted: record with 'karst run {} REGEX PROGRAM'", trace.name(), what,
                             returned ? "--returns" : "--args")};
  return Error{fmt::format("{} has no {} noted of functions that match '{}'; it has those of {}", trace.name(), what,
                           options.input.function, list(others))};
}

/// The option that does not go with --hist or --callers; empty: there is none.
std::string not_of_views(const Options& options) {
  if (options.histograms && options.callers) return "--callers";
  if (!options.by.empty()) return "--by";
  return options.overhead ? "--overhead" : "";
}

bool is_picture(const std::string& format) { return format == "dot" || format == "mermaid"; }

int show_view(const Options& options) {
  const std::string view = options.histograms ? "--hist" : "--callers";
  if (const std::string other = not_of_views(options); !other.empty())
    return usage_error(view + " and " + other + " do not go together", "report");
  const std::string& format = options.answer.format;
  if (is_picture(format) && options.histograms)
    return usage_error("--format " + format + " does not go with " + view, "report");
  const FunctionView shown{options.input, options.answer};
  return options.histograms ? show_histograms(shown) : show_callers(shown);
}

int report_command(const Options& options) {
  if (options.histograms || options.callers) return show_view(options);
  if (is_picture(options.answer.format))
    return usage_error("--format " + options.answer.format + " goes with --callers alone", "report");
  if (options.by.starts_with(kArgument) && !options.input.has_function)
    return usage_error(fmt::format("--by {} needs --function REGEX: whose argument it is", options.by), "report");
  if ((options.by.empty() && options.answer.sort == "value") ||
      (!options.by.empty() && options.answer.sort == "function"))
    return usage_error(options.by.empty() ? "--sort value needs --by" : "with --by, it is --sort value", "report");
  if (options.overhead && options.input.raw)
    return usage_error("--overhead and --raw do not go together: with --raw nothing is taken for tracing's", "report");
  auto input = open_input(options.input);
  if (!input) return fail(input.error());
  const reader::Trace& trace = (*input)->trace;

  if (options.overhead &&
      std::none_of((*input)->threads.begin(), (*input)->threads.end(),
                   [&](const reader::Thread* thread) { return trace.processes()[thread->process].cost.call != 0; }))
    return fail({trace.name() + " does not know what tracing cost"});
  std::vector<ThreadOverhead> overheads;
  std::unique_ptr<analysis::CallGroups> groups;
  CallParts parts;
  if (!options.by.empty()) {
    auto found = groups_of(**input, options, parts);
    if (!found) return fail(found.error());
    groups = std::move(*found);
  }
  analysis::ReportBuilder builder(trace, (*input)->function_set(), groups.get());
  const bool in_pieces = groups == nullptr && !options.overhead;
  if (in_pieces)
    (*input)->each_piece("adding up calls",
                         [&](const reader::Thread& thread, const reader::Piece& piece) { builder.add(thread, piece); });
  else
    (*input)->each_thread(
        "adding up calls",
        [&](const reader::Thread& thread, const reader::Calls& calls) {
          if (groups != nullptr) groups->works_on(std::move(parts.latest));
          builder.add(thread, calls);
          if (options.overhead) overheads.push_back(overhead_of(thread, calls, trace.clock()));
        },
        parts.of ? &parts : nullptr);
  analysis::Report report = builder.finish();
  if (const auto& range = (*input)->filter.range) {
    const columns::TickRange whole{analysis::first_ticks(trace), analysis::last_ticks(trace)};
    report.span_ns = trace.clock().to_ns(range->clip(whole.begin, whole.end));
  }
  AnswerOptions answer_options = options.answer;
  if (options.overhead) {
    if (answer_options.sort == kUsualSort) answer_options.sort = "tracing";
    if (answer_options.columns.empty()) answer_options.columns = "tracing,calls,self_share,self,total";
  }
  if (!report.has_states && answers::needs_states(answer_options.sort))
    return fail({trace.name() +
                 " has no thread states to sort by: see 'karst info', and record with 'karst run --sched auto'"});
  if (options.answer.is_text() && report.functions.empty() && options.input.has_filters())
    return fail(nothing_passes(**input));
  analysis::sort_by_name(report);
  const answers::ReportContext context = context_of(report, **input);
  std::vector<answers::FunctionRow> rows;
  rows.reserve(report.functions.size());
  for (const analysis::FunctionReport& of : report.functions) rows.push_back({context, of});
  const Answer answer(trace, report.of_groups ? answers::values_of_calls() : answers::functions(), answer_options,
                      addresses(rows));
  if (!options.answer.is_text())
    return print_answer(answer_options, **input, answer,
                        [&](Json& json) { write_facts(json, report, answer, options.by, **input); });
  Screen screen(options.answer.text);
  say_partial(screen, **input);
  if (options.overhead) print_threads(overheads, screen);
  screen.output().append(shorten(head_text(report, trace), screen.width(), Shorten::kPath) + "\n");
  if (const Status printed = answer.print_table(screen); !printed)
    return usage_error("--columns: " + printed.error().message, "report");
  if (report.of_groups) say_rest(Rest(answer), screen);
  if (!report.of_groups) say_left(report, screen);
  say_cost(screen, **input);
  if (const std::size_t samples = trace.samples().samples.size(); samples != 0)
    screen.output().append(shorten("(" + plural(samples, "sample") + " of code below these calls: karst samples)",
                                   screen.width(), Shorten::kEnd) +
                           "\n");
  return screen.finish(&trace);
}

}  // namespace

void register_report(Command app, int& status) {
  auto options = std::make_shared<Options>();
  Command command = app.add_subcommand("report", "Show which functions were called how often and took how long");
  command.footer(fmt::format("{}\n\n{}\n\n{}", answer_footer(answers::functions(), ":\n\n", kRest), kHistogramsHelp,
                             kCallersHelp));
  add_file_option(command, options->input);
  command
      .add_option("--by", options->by,
                  "A row for each value of an argument, of what was returned, each request or frame")
      .check(is_by)
      .type_name("arg:NAME|returned|request|frame");
  command.add_flag("--hist", options->histograms, "How the durations of each function's calls spread, as bars");
  command.add_flag("--callers", options->callers, "Each function with its callers and with what it called");
  add_answer_options(command, options->answer,
                     {&answers::functions(), &answers::values_of_calls(), &answers::spreads(), &answers::edges()},
                     "rows", kUsualSort, 0, {"dot", "mermaid"});
  add_selection_options(command, options->input, "Show only functions whose name matches");
  add_raw_option(command, options->input);
  command.add_flag("--overhead", options->overhead, "What tracing took, by thread and by function");
  command.callback([options, &status] { status = report_command(*options); });
}

}  // namespace karst::cli
