// karst report: time by function, or by value of the calls of some.
#include "analysis/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "analysis/frames.h"
#include "analysis/values.h"
#include "base/json.h"
#include "base/output.h"
#include "cli/command.h"
#include "cli/commands/function_views.h"
#include "cli/input/trace_input.h"
#include "cli/text/csv.h"
#include "cli/text/help.h"
#include "cli/text/names.h"
#include "cli/text/table.h"
#include "cli/text/terminal.h"
#include "cli/text/text.h"
#include "cli/text/uncertain.h"
#include "reader/trace.h"

namespace karst::cli {
namespace {

struct Options : FunctionView {
  std::string by;  // empty: by function
  std::string sort = "total";
  std::string columns;  // empty: the default ones
  bool overhead = false;
  bool histograms = false;
  bool callers = false;
};

constexpr const char* kFooter = R"(Columns:
  total     time with the function on the stack; recursion counts once
  self      the same without the traced functions it called
  self% total%  their shares of all time in traced functions
  calls     behind the name, with --wide: '+N open', N of them with a begin or
            an end that is not known; '+N unwound', '+N jumped', '+N tail':
            ended by an exception, a longjmp, a tail call
  min mean p50 p99 max  of the complete calls; percentiles are exact
  tracing   what recording its calls took; --overhead sorts by it
Times are without what tracing itself took; --raw leaves it in.
  ~1.2 ms   more than half of what was recorded was tracing's own
  18-40 ns  what tracing took of such calls is not known better
csv and json: total_cost_ns and self_cost_ns are what was taken out.
Where the trace has thread states (karst run --sched), total is told apart, and
self as self-cpu, self-runnable, self-blocked:
  cpu       on a CPU
  runnable  could run, but had no CPU
  blocked   waited for something: a lock, a disk, another thread
  What is missing from the sum was not recorded; csv and json: unknown.
By max, functions that last as long as their thread come last, like main.
Threads add up: four threads busy for a second make four seconds.
csv and json give all times in whole nanoseconds.

--by: a row for each value of the calls of --function, with the same columns.
  arg:NAME  what that argument was (karst run --args)
  returned  what they returned (karst run --returns)
  request   the request that their thread worked on; calls are cut at its ends
  frame     the frame they were in (KARST_FRAME), all threads together, from 1
            on; frame:NAME where a program has several kinds
Calls without a value are '<not noted>'. After 262,144 values the calls of
further ones are '<other values>'.)";

std::string place(const analysis::FunctionReport& f) {
  if (f.file.empty()) return {};
  return f.line == 0 ? printable(f.file) : fmt::format("{}:{}", printable(f.file), f.line);
}

std::string base_name(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

// Total and self by state, in the order of kStateColumns.
std::array<std::uint64_t, 8> state_times(const analysis::FunctionReport& f) {
  const analysis::StateReport& t = f.total_states;
  const analysis::StateReport& s = f.self_states;
  return {t.cpu_ns, t.runnable_ns, t.blocked_ns, t.unknown_ns, s.cpu_ns, s.runnable_ns, s.blocked_ns, s.unknown_ns};
}
constexpr std::array<const char*, 8> kStateColumns = {"cpu_ns",          "runnable_ns",    "blocked_ns",
                                                      "unknown_ns",      "self_cpu_ns",    "self_runnable_ns",
                                                      "self_blocked_ns", "self_unknown_ns"};

/// Names of columns, what --sort NAME goes by, and which of them need thread states.
struct Sortable {
  const char* key;
  analysis::ReportOrder order;
  bool of_states = false;
};
using analysis::ReportOrder;
constexpr Sortable kSortable[] = {{"self%", ReportOrder::kSelf},
                                  {"total%", ReportOrder::kTotal},
                                  {"total", ReportOrder::kTotal},
                                  {"self", ReportOrder::kSelf},
                                  {"calls", ReportOrder::kCalls},
                                  {"min", ReportOrder::kMin},
                                  {"mean", ReportOrder::kMean},
                                  {"p50", ReportOrder::kP50},
                                  {"p99", ReportOrder::kP99},
                                  {"max", ReportOrder::kMax},
                                  {"tracing", ReportOrder::kTracing},
                                  {"cpu", ReportOrder::kCpu, true},
                                  {"runnable", ReportOrder::kRunnable, true},
                                  {"blocked", ReportOrder::kBlocked, true},
                                  {"self-cpu", ReportOrder::kSelfCpu, true},
                                  {"self-runnable", ReportOrder::kSelfRunnable, true},
                                  {"self-blocked", ReportOrder::kSelfBlocked, true},
                                  {"function", ReportOrder::kName},
                                  {"value", ReportOrder::kName}};

std::vector<std::string> sort_keys() {
  std::vector<std::string> keys;
  for (const Sortable& sortable : kSortable) keys.emplace_back(sortable.key);
  return keys;
}

/// "total|self|...", for completion; shares sort as the times do.
std::string sort_words() {
  std::string words;
  for (const Sortable& sortable : kSortable)
    if (std::string_view(sortable.key).find('%') == std::string_view::npos)
      words += (words.empty() ? "" : "|") + std::string(sortable.key);
  return words;
}

const Sortable& sortable(const std::string& key) {
  return *std::find_if(std::begin(kSortable), std::end(kSortable), [&](const Sortable& s) { return key == s.key; });
}

bool shows_tracing(const Options& options) {
  return options.overhead || options.sort == "tracing" || options.columns.find("tracing") != std::string::npos;
}

constexpr std::string_view kArgument = "arg:", kFrame = "frame:";

std::string by_title(const Options& options) {
  return options.by.starts_with(kArgument) ? printable(options.by.substr(kArgument.size())) : options.by;
}

Table make_table(const Options& options, bool has_states, bool wide) {
  // Of the default ones p50 goes first where they are too many, then total, the longest, calls.
  std::vector<Column> columns = {{"self%", "self%", false, true, 0, 6},  {"total%", "total%", false, false, 0, 6},
                                 {"total", "total", false, true, 4, 10}, {"self", "self", false, true, 0, 10},
                                 {"calls", "calls", false, true, 2, 13}, {"min", "min", false, false, 6, 10},
                                 {"mean", "mean", false, false, 6, 10},  {"p50", "p50", false, true, 5, 10},
                                 {"p99", "p99", false, false, 6, 10},    {"max", "max", false, true, 3, 10}};
  if (shows_tracing(options)) columns.push_back({"tracing", "tracing", false, true, 0, 10});
  if (has_states) {
    for (const auto& [key, title] : {std::pair("cpu", "cpu"), std::pair("runnable", "runnable"),
                                     std::pair("blocked", "blocked"), std::pair("self-cpu", "self cpu"),
                                     std::pair("self-runnable", "s.runnable"), std::pair("self-blocked", "s.blocked")})
      columns.push_back({key, title, false, std::string_view(key) == "blocked", 1, 10});
  }
  if (!options.by.empty()) {
    columns.push_back({"value", by_title(options)});
  } else {
    columns.push_back({"function", wide ? "function  [module]  file:line" : "function"});
  }
  for (Column& column : columns) {
    if (column.key != options.sort) continue;
    column.narrow = true;  // what it is sorted by is always shown
    column.rank = 0;
  }
  return Table(std::move(columns), options.by.empty() ? Shorten::kName : Shorten::kEnd);
}

/// How far a call's time may be off: by as large a share of it as what was taken out of all of them may be of theirs,
/// and by what its own two events may have cost more or less at least: that may be nothing.
class CallUncertainty {
 public:
  explicit CallUncertainty(const Input& input) {
    const CostRange cost = call_cost_of(input);
    if (input.raw || cost.most == 0) return;
    share_of_cost_ = cost.off_by / cost.most;
    own_ns_ = std::max(cost.off_by, cost.most);
  }
  std::string text(const analysis::FunctionReport& f, std::uint64_t ns) const {
    const double share = share_of_cost_ * static_cast<double>(f.total_cost_ns) /
                         static_cast<double>(std::max<std::uint64_t>(f.total_ns, 1));
    return uncertain_duration_text(ns, std::max(static_cast<double>(ns) * share, own_ns_));
  }

 private:
  double share_of_cost_ = 0, own_ns_ = 0;
};

void add_row(Table& table, const analysis::FunctionReport& f, const analysis::Report& report, const Options& options,
             const CallUncertainty& uncertainty, bool wide) {
  const auto of_complete = [&](std::uint64_t ns) {
    return f.open_calls < f.calls ? uncertainty.text(f, ns) : std::string("-");
  };
  const auto marked = [](std::uint64_t ns, std::uint64_t cost_ns) {
    return (cost_ns > ns ? "~" : "") + duration_text(ns);
  };
  std::vector<std::string> cells = {percent_text(f.self_ns, report.self_ns),
                                    percent_text(f.total_ns, report.self_ns),
                                    marked(f.total_ns, f.total_cost_ns),
                                    marked(f.self_ns, f.self_cost_ns),
                                    count_text(f.calls),
                                    of_complete(f.min_ns),
                                    of_complete(f.mean_ns),
                                    of_complete(f.p50_ns),
                                    of_complete(f.p99_ns),
                                    of_complete(f.max_ns)};
  if (shows_tracing(options)) cells.push_back(duration_text(f.tracing_ns));
  if (report.has_states) {
    for (const analysis::StateReport* times : {&f.total_states, &f.self_states})
      for (const std::uint64_t ns : {times->cpu_ns, times->runnable_ns, times->blocked_ns})
        cells.push_back(duration_text(ns));
  }
  cells.push_back(printable(f.name));
  std::string more;
  if (wide) {
    if (!f.module.empty()) more += fmt::format("  [{}]", printable(base_name(f.module)));
    if (!f.file.empty()) more += "  " + place(f);
    const std::pair<std::uint64_t, const char*> ends[] = {
        {f.open_calls, "open"}, {f.unwound_calls, "unwound"}, {f.jumped_calls, "jumped"}, {f.tail_calls, "tail"}};
    for (const auto& [count, how] : ends) {
      if (count != 0) more += fmt::format("  +{} {}", count_text(count), how);
    }
  }
  table.add(std::move(cells), std::move(more));
}

/// What --limit left out of the groups.
struct Rest {
  std::uint64_t values = 0, calls = 0, self_ns = 0;
};

Rest cut_to(analysis::Report& report, std::size_t limit) {
  Rest rest;
  if (limit == 0 || report.functions.size() <= limit) return rest;
  for (std::size_t i = limit; i < report.functions.size(); ++i) {
    const analysis::FunctionReport& f = report.functions[i];
    ++rest.values;
    rest.calls += f.calls;
    rest.self_ns += f.self_ns;
  }
  report.functions.resize(limit);
  return rest;
}

Status print_text(const analysis::Report& report, const Rest& rest, const Input& input, const Options& options,
                  Screen& screen) {
  const reader::Trace& trace = input.trace;
  const CallUncertainty uncertainty(input);
  const bool wide = screen.width() == 0;
  Table table = make_table(options, report.has_states, wide);
  // What a screen shows; self first, as that is where the time went.
  std::string keys = options.columns;
  if (keys.empty() && options.overhead) {
    keys = "tracing,calls,self%,self,total";
  } else if (keys.empty() && !wide) {
    keys = "self%,self,total,calls,p50,max";
    if (report.has_states) keys += ",blocked";
    if (("," + keys + ",").find("," + options.sort + ",") == std::string::npos) keys += "," + options.sort;
  }
  if (!keys.empty())
    if (Status chosen = table.choose(keys); !chosen) return chosen;
  std::string head = fmt::format("{}: {} by {}", printable(trace.name()), plural(report.calls, "call"),
                                 plural(report.threads, "thread"));
  if (report.fibers != 0) head += " and " + plural(report.fibers, "fiber");
  head += " in " + duration_text(report.span_ns);
  screen.output().append(shorten(head, screen.width(), Shorten::kPath) + "\n");
  for (const analysis::FunctionReport& f : report.functions) add_row(table, f, report, options, uncertainty, wide);
  table.print(screen);
  if (report.of_groups && rest.values != 0)
    screen.output().append(shorten(fmt::format("... and {}: {}, {} of self time", plural(rest.values, "more value"),
                                               plural(rest.calls, "call"), duration_text(rest.self_ns)),
                                   screen.width(), Shorten::kEnd) +
                           "\n");
  return Unit{};
}

void print_csv(const analysis::Report& report, Output& out) {
  out.append(report.of_groups ? "value" : "name,module,file,line");
  out.append(
      ",calls,open_calls,unwound_calls,jumped_calls,tail_calls,total_ns,self_ns,min_ns,mean_ns,"
      "p50_ns,p99_ns,max_ns,total_cost_ns,self_cost_ns,tracing_ns");
  for (const char* column : kStateColumns) {
    if (report.has_states) out.append(fmt::format(",{}", column));
  }
  out.append("\n");
  for (const analysis::FunctionReport& f : report.functions) {
    out.append(csv_field(f.name));
    if (!report.of_groups) out.append(fmt::format(",{},{},{}", csv_field(f.module), csv_field(f.file), f.line));
    out.append(fmt::format(",{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}", f.calls, f.open_calls, f.unwound_calls,
                           f.jumped_calls, f.tail_calls, f.total_ns, f.self_ns, f.min_ns, f.mean_ns, f.p50_ns, f.p99_ns,
                           f.max_ns, f.total_cost_ns, f.self_cost_ns, f.tracing_ns));
    for (const std::uint64_t ns : state_times(f)) {
      if (report.has_states) out.append(fmt::format(",{}", ns));
    }
    out.append("\n");
  }
}

void print_json(const analysis::Report& report, const Rest& rest, const std::string& by, const Input& input,
                Output& out) {
  const reader::Trace& trace = input.trace;
  Json json;
  json.open('{');
  if (report.of_groups) json.field("by", by);
  json.key(report.of_groups ? "values" : "functions").open('[');
  for (const analysis::FunctionReport& f : report.functions) {
    json.line().open('{').field(report.of_groups ? "value" : "name", f.name);
    if (!report.of_groups) json.field("module", f.module).field("file", f.file).field("line", f.line);
    json.field("calls", f.calls).field("open_calls", f.open_calls).field("unwound_calls", f.unwound_calls);
    json.field("jumped_calls", f.jumped_calls).field("tail_calls", f.tail_calls).field("total_ns", f.total_ns);
    json.field("self_ns", f.self_ns).field("min_ns", f.min_ns).field("mean_ns", f.mean_ns).field("p50_ns", f.p50_ns);
    json.field("p99_ns", f.p99_ns).field("max_ns", f.max_ns);
    json.field("total_cost_ns", f.total_cost_ns).field("self_cost_ns", f.self_cost_ns);
    json.field("tracing_ns", f.tracing_ns);
    const auto states = state_times(f);
    for (std::size_t i = 0; report.has_states && i < states.size(); ++i) json.field(kStateColumns[i], states[i]);
    json.close('}').flush(out);
  }
  json.line().close(']');
  if (report.of_groups) {
    json.key("rest").open('{').field("values", rest.values).field("calls", rest.calls);
    json.field("self_ns", rest.self_ns).close('}');
  }
  json.key("trace").open('{').field("file", trace.name()).field("threads", report.threads);
  json.field("fibers", report.fibers);
  json.field("calls", report.calls).field("events", report.events).field("span_ns", report.span_ns);
  json.field("complete", trace.complete()).field("out_of_order", report.out_of_order);
  json.field("unmatched_exits", report.unmatched_exits).field("missing_exits", report.missing_exits);
  json.field("unknown_ids", report.unknown_ids).field("missing_blocks", report.missing_blocks);
  const CostRange cost = call_cost_of(input);
  json.field("call_cost_ns", cost.most).field("call_cost_off_by_ns", cost.off_by);
  json.close('}').close('}').flush(out);
  out.append("\n");
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
  if (options.sort != "total") return "--sort";
  if (!options.columns.empty()) return "--columns";
  return options.overhead ? "--overhead" : "";
}

int show_view(const Options& options) {
  const std::string view = options.histograms ? "--hist" : "--callers";
  if (const std::string other = not_of_views(options); !other.empty())
    return usage_error(view + " and " + other + " do not go together", "report");
  const bool is_picture = options.format == "dot" || options.format == "mermaid";
  if (options.format == "csv" || (is_picture && options.histograms))
    return usage_error("--format " + options.format + " does not go with " + view, "report");
  return options.histograms ? show_histograms(options) : show_callers(options);
}

int report_command(const Options& options) {
  if (options.histograms || options.callers) return show_view(options);
  if (options.format == "dot" || options.format == "mermaid")
    return usage_error("--format " + options.format + " goes with --callers alone", "report");
  if (options.by.starts_with(kArgument) && !options.input.has_function)
    return usage_error(fmt::format("--by {} needs --function REGEX: whose argument it is", options.by), "report");
  if ((options.by.empty() && options.sort == "value") || (!options.by.empty() && options.sort == "function"))
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
  const Sortable& by = sortable(options.overhead && options.sort == "total" ? "tracing" : options.sort);
  if (!report.has_states && by.of_states) {
    return fail({trace.name() +
                 " has no thread states to sort by: see 'karst info', and record with 'karst run --sched auto'"});
  }
  if (options.format == "text" && report.functions.empty() && options.input.has_filters())
    return fail(nothing_passes(**input));
  analysis::sort_report(report, by.order);
  const Rest rest = cut_to(report, options.limit);

  if (options.format == "text") {
    Screen screen(options.text);
    say_partial(screen, **input);
    if (options.overhead) print_threads(overheads, screen);
    if (const Status printed = print_text(report, rest, **input, options, screen); !printed)
      return usage_error("--columns: " + printed.error().message, "report");
    say_cost(screen, **input);
    if (const std::size_t samples = trace.samples().samples.size(); samples != 0)
      screen.output().append(shorten("(" + plural(samples, "sample") + " of code below these calls: karst samples)",
                                     screen.width(), Shorten::kEnd) +
                             "\n");
    return screen.finish(&trace);
  }
  return print_data(
      options.format, **input, [&](Output& output) { print_json(report, rest, options.by, **input, output); },
      [&](Output& output) { print_csv(report, output); });
}

}  // namespace

void register_report(Command app, int& status) {
  auto options = std::make_shared<Options>();
  Command command = app.add_subcommand("report", "Show which functions were called how often and took how long");
  command.footer(fmt::format("{}\n\n{}\n\n{}", kFooter, kHistogramsHelp, kCallersHelp));
  add_file_option(command, options->input);
  command
      .add_option("--by", options->by,
                  "A row for each value of an argument, of what was returned, each request or frame")
      .check(is_by)
      .type_name("arg:NAME|returned|request|frame");
  command.add_option("-s,--sort", options->sort, "Greatest first by this column, total unless another is named")
      .check(one_of(sort_keys()))
      .type_name(sort_words());
  command.add_option("--columns", options->columns, "Show these columns, with commas between; see below")
      .type_name("COLUMN,...");
  command.add_flag("--hist", options->histograms, "How the durations of each function's calls spread, as bars");
  command.add_flag("--callers", options->callers, "Each function with its callers and with what it called");
  add_format_options(command, options->format, {"text", "csv", "json", "dot", "mermaid"});
  command
      .add_option("-n,--limit", options->limit, "Show only the first N rows, or functions (--hist: 3; --callers: 20)")
      .type_name("N")
      .check(positive());
  add_selection_options(command, options->input, "Show only functions whose name matches");
  add_raw_option(command, options->input);
  command.add_flag("--overhead", options->overhead, "What tracing took, by thread and by function");
  add_text_options(command, options->text);
  command.callback([options, &status] { status = report_command(*options); });
}

}  // namespace karst::cli
