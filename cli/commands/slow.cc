// SPDX-License-Identifier: MIT
// karst slow: calls that took far longer than their function usually does, and what they waited for.
#include "answers/slow.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/left_calls.h"
#include "analysis/outliers.h"
#include "analysis/values.h"
#include "answers/data.h"
#include "answers/slow_search.h"
#include "base/json.h"
#include "base/output.h"
#include "cli/command.h"
#include "cli/commands/answer.h"
#include "cli/input/trace_input.h"
#include "cli/text/names.h"
#include "cli/text/progress.h"
#include "cli/text/table.h"
#include "cli/text/terminal.h"
#include "cli/text/text.h"
#include "columns/scope.h"
#include "reader/trace.h"
#include "words/path.h"
#include "words/waits.h"

namespace karst::cli {
namespace {

struct Options {
  InputOptions input;
  AnswerOptions answer;
  std::size_t limit = 10;
  bool each = false;
  bool follow = false;
};

constexpr const char* kFooter = R"(Output: the calls with the greatest excess first, one for each function and
each callee that their time went to:

  1. Store::put took 20.31 ms, 1244 times its usual 16.33 us
       at 3.204 s in thread 812 worker 2; 3 more such calls, 41.07 ms in all
       20.29 ms in Log::append > Mutex::lock
       20.27 ms blocked in futex, woken by 810 flusher in Mutex::unlock

The usual time of a function is the median of its calls, known from ten on; a
call is listed if it took three times as long. Of functions called less often
the three calls that are longest by themselves stand at the end, if they are
as long as a tenth of the first excess. Calls inside a listed one are
not listed again: the third line leads down to where the time went. Of calls of
one function whose time went to the same callee the slowest is shown.
What it waited for is known where the trace has thread states
(karst run --sched), and who ended a wait where tracepoints are permitted, as
to root.

What such calls were given and returned is told where that is noted (karst run
--args --returns).

Calls that were left by a tail call into code that is not traced have an end
that is not known. Those that may have lasted far longer than usual stand in a
list of their own, with the time until their thread's next event: "up to".

Calls that slept as they were told to, or waited for work (usleep, poll, the
rest of a suspended fiber), come last.

--follow goes on from who ended the wait, or had the lock or the CPU that was
waited for, to what that thread did meanwhile, and whom it waited for itself.
csv and json give all times in whole nanoseconds.)";

/// Prints them for people.
class SlowPrinter {
 public:
  SlowPrinter(const reader::Trace& trace, bool has_states, Screen& screen)
      : trace_(trace), has_states_(has_states), screen_(screen), width_(screen.width()), times_(trace) {}

  // What is too long goes on in the next line, two columns further in.
  void line(const std::string& text) {
    const std::size_t indent = std::min(text.find_first_not_of(' '), text.size());
    const std::string rest = wrap(std::string_view(text).substr(indent), width_, indent + 2);
    screen_.output().append(std::string(indent, ' ') + rest + "\n");
  }

  void print(std::size_t number, const answers::SlowCall& slow) {
    const analysis::Outlier& outlier = slow.of.worst;
    const reader::Thread& thread = *outlier.call.thread;
    print_head(number, outlier);
    print_place(outlier, slow.of.calls > 1 ? fmt::format("; {}, {} in all", plural(slow.of.calls - 1, "more such call"),
                                                         time(slow.of.duration))
                                           : "");
    print_values(thread, outlier.function, slow.noted);
    if (!slow.path.empty()) {
      std::vector<std::uint32_t> path;
      for (const answers::SlowCall::Step& step : slow.path) path.push_back(step.function);
      line(fmt::format("      {} in {}", time(slow.path.back().duration), path_text(thread, path, 20)));
    }
    for (const answers::SlowCall::Step& step : slow.path) print_values(thread, step.function, step.noted);
    if (slow.wait) {
      line(fmt::format("      {} {}", time(slow.wait->of.length()), slow.wait->words));
    } else if (has_states_) {
      print_running(outlier);
    } else if (slow.path.empty()) {
      line("      in no call that is longer than usual; whether it ran or waited is not known without thread states");
    }
    for (const words::ToldLink& link : slow.chain) print_link(link);
  }

  void print(const answers::LeftFunction& left) {
    const analysis::Outlier& longest = left.of.longest;
    print_name(longest, " up to " + time(longest.call.duration));
    print_place(longest, left.of.calls > 1 ? fmt::format("; {} left so", plural(left.of.calls, "call")) : "");
    if (left.wait) line(fmt::format("      {} {}", time(left.wait->of.length()), left.wait->words));
  }

  void print(const answers::RareFunction& rare) {
    const analysis::Outlier& longest = rare.of.longest;
    print_name(longest, " " + time(longest.excess()));
    print_place(longest, rare.of.calls > 1 ? fmt::format("; {} in all", plural(rare.of.calls, "call")) : "");
    if (rare.wait) line(fmt::format("      {} {}", time(rare.wait->of.length()), rare.wait->words));
  }

 private:
  std::string time(std::uint64_t ticks) const { return duration_text(times_.ns(ticks)); }
  const reader::Process& process(const reader::Thread& thread) const { return trace_.processes()[thread.process]; }
  std::string name(const reader::Thread& thread, std::uint32_t id) const {
    return printable(plain_name(trace_.function(process(thread), id).name));
  }

  // A path of names; on a terminal the first ones give way to the last.
  std::string path_text(const reader::Thread& thread, const std::vector<std::uint32_t>& functions, std::size_t used) {
    const std::size_t width = width_ > used + 20 ? width_ - used : width_ == 0 ? std::string::npos : 20;
    std::vector<std::string> names;
    names.reserve(functions.size());
    for (const std::uint32_t id : functions) names.push_back(name(thread, id));
    names = words::folded(std::move(names));
    std::string text;
    for (auto one = names.rbegin(); one != names.rend(); ++one) {
      const std::string part = width == std::string::npos ? *one : fit_name(*one, width);
      if (text.empty()) {
        text = part;
      } else if (width == std::string::npos || part.size() + 3 + text.size() + 6 <= width) {
        text.insert(0, part + " > ");
      } else {
        return "... > " + text;
      }
    }
    return text;
  }

  // Of a list without numbers.
  void print_name(const analysis::Outlier& of, const std::string& rest) {
    const std::size_t taken = rest.size() + 4;
    const std::string full = name(*of.call.thread, of.function);
    const std::string shown = width_ == 0 ? full : fit_name(full, width_ > taken + 10 ? width_ - taken : 10);
    screen_.output().append("    " + screen_.paint(Style::kName, shown) + rest + "\n");
  }

  void print_head(std::size_t number, const analysis::Outlier& outlier) {
    const std::uint64_t times = (outlier.call.duration + outlier.usual / 2) / outlier.usual;
    const std::string rest =
        times_.ns(outlier.usual) == 0
            ? fmt::format(" took {}; usually too little to tell from tracing's own", time(outlier.call.duration))
            : fmt::format(" took {}, {} times its usual {}", time(outlier.call.duration), count_text(times),
                          time(outlier.usual));
    const std::string head = fmt::format("{:>2}. ", number);
    const std::size_t taken = head.size() + rest.size();
    const std::string full = name(*outlier.call.thread, outlier.function);
    const std::string shown = width_ == 0 ? full : fit_name(full, width_ > taken + 10 ? width_ - taken : 10);
    screen_.output().append("\n" + head + screen_.paint(Style::kName, shown) +
                            shorten(rest, width_ == 0 ? 0 : width_ - head.size() - text_width(shown), Shorten::kEnd) +
                            "\n");
  }

  // What a call was given and what it returned, if that is noted.
  void print_values(const reader::Thread& thread, std::uint32_t function, const answers::NotedValues& noted) {
    if (!noted.arguments && !noted.returned) return;
    const std::vector<analysis::Value> none;
    line("      " +
         printable(analysis::name_with_values(trace_.function(process(thread), function).name,
                                              noted.arguments.value_or(none), noted.returned.value_or(none))));
  }

  void print_place(const analysis::Outlier& outlier, const std::string& more) {
    const reader::Thread& thread = *outlier.call.thread;
    std::string where =
        fmt::format("      at {} in thread {} {}", duration_text(times_.since_start(outlier.call.begin)), thread.tid,
                    printable(thread.name));
    if (trace_.processes().size() > 1) where += fmt::format(" of process {}", process(thread).pid);
    line(where + more);
  }

  // A long call without a wait: how much of it was on a CPU.
  void print_running(const analysis::Outlier& outlier) {
    const analysis::StateThreads threads(trace_);
    const reader::ThreadStates* states = threads.states_of(*outlier.call.thread);
    if (states == nullptr) return;
    line(fmt::format("      {} of it on a CPU", time(analysis::states_of(outlier, *states).running)));
  }

  void print_link(const words::ToldLink& link) {
    const reader::Thread& thread = *link.of.thread;
    std::string text = fmt::format("      meanwhile {} {}", thread.tid, printable(thread.name));
    if (!link.of.functions.empty()) text += " in " + path_text(thread, link.of.functions, text.size() + 4);
    line(text);
    if (link.wait) line(fmt::format("        {} {}", time(link.wait->of.length()), link.wait->words));
  }

  const reader::Trace& trace_;
  const bool has_states_;
  Screen& screen_;
  const std::size_t width_;
  const answers::Times times_;
};

/// What was found.
struct Found {
  std::uint64_t calls = 0;  ///< that were looked at
  std::uint64_t slow = 0;
  bool usual_known = false;  ///< of any function
  std::vector<answers::SlowCall> listed{};
  std::vector<answers::RareFunction> rare{};
  std::vector<answers::LeftFunction> left{};
  bool has_states = false;
};

/// A wait is told of which nobody knows who ended it.
bool has_unknown_waker(const std::vector<answers::SlowCall>& calls) {
  return std::any_of(calls.begin(), calls.end(), [](const answers::SlowCall& call) {
    return call.wait && call.wait->of.state == reader::ThreadState::kBlocked && call.wait->of.by == reader::kNoTask;
  });
}

/// What stands above the list.
std::string summary(const Found& found, const std::string& trace, bool all_lengths) {
  if (!found.listed.empty())
    return fmt::format("{}: {} of {} took three times their function's usual time or more", trace,
                       count_text(found.slow), plural(found.calls, "call"));
  if (!found.usual_known)
    return fmt::format("{}: no function has ten complete calls, so nothing says what is usual", trace);
  return fmt::format("{}: no call took {} its function's usual time", trace,
                     all_lengths ? "three times" : "so long and three times");
}

int print_text(const Found& found, const Input& input, const Options& options) {
  Screen screen(options.answer.text);
  say_partial(screen, input);
  SlowPrinter printer(input.trace, found.has_states, screen);
  printer.line(summary(found, printable(input.trace.name()), options.input.min_duration.empty()));
  for (std::size_t i = 0; i < found.listed.size() && !screen.output().failed(); ++i)
    printer.print(i + 1, found.listed[i]);
  if (options.follow && has_unknown_waker(found.listed)) {
    screen.output().append("\n");
    printer.line(
        "Who ended some of these waits is not known. The rights to tracefs or to perf's events of all CPUs tell it "
        "(run karst as root); --system locks tells who had a lock.");
  }
  if (!found.rare.empty() && !screen.output().failed()) {
    screen.output().append("\n");
    printer.line("called fewer than ten times; the longest by themselves:");
    for (const answers::RareFunction& rare : found.rare) printer.print(rare);
  }
  if (!found.left.empty() && !screen.output().failed()) {
    screen.output().append("\n");
    printer.line("left by a tail call into code that is not traced, so that their end is not known:");
    for (const answers::LeftFunction& left : found.left) printer.print(left);
  }
  say_cost(screen, input);
  return screen.finish(&input.trace);
}

int print(const Found& found, const Input& input, const Options& options) {
  if (options.answer.is_text() && options.answer.columns.empty()) return print_text(found, input, options);
  const answers::Times times(input.trace);
  std::vector<answers::SlowCallRow> rows;
  for (const answers::SlowCall& of : found.listed) rows.push_back({input.trace, times, of});
  std::vector<answers::RareFunctionRow> rare;
  for (const answers::RareFunction& of : found.rare) rare.push_back({input.trace, times, of});
  std::vector<answers::LeftFunctionRow> left;
  for (const answers::LeftFunction& of : found.left) left.push_back({input.trace, times, of});
  const Answer answer(input.trace, answers::slow_calls(), options.answer, addresses(rows));
  if (options.answer.is_text()) return print_table_or_data(options.answer, input, answer);
  return print_answer(options.answer, input, answer, [&](Json& json) {
    json.field("calls", found.calls).field("slow_calls", found.slow).key("rare").open('[');
    for (const answers::RareFunctionRow& row : rare)
      answers::write_row(json, input.trace, answers::rare_functions(), &row);
    json.close(']').key("left").open('[');
    for (const answers::LeftFunctionRow& row : left)
      answers::write_row(json, input.trace, answers::left_functions(), &row);
    json.close(']');
  });
}

int slow(const Options& options) {
  auto input = open_input(options.input);
  if (!input) return fail(input.error());
  const reader::Trace& trace = (*input)->trace;
  // What is usual is learnt from short calls, too.
  const std::uint64_t min_ticks = std::exchange((*input)->filter.min_ticks, 0);
  analysis::OutlierFinder finder(trace, (*input)->function_set(), min_ticks, analysis::kMostOutliers);
  analysis::LeftCallFinder left((*input)->function_set());
  CallsCache calls_of(**input);
  std::uint64_t calls = 0;
  {
    Progress progress("looking for slow calls", 2 * (*input)->events);
    const auto request = std::exchange((*input)->filter.request, std::nullopt);  // what is usual, others show, too
    for (const reader::Thread* thread : (*input)->threads) {
      const reader::Calls& of = calls_of.of(*thread);
      finder.learn(*thread, of);
      progress.done += of.events;
    }
    (*input)->filter.request = request;
    if (request) calls_of.clear();
    for (const reader::Thread* thread : (*input)->threads) {
      const reader::Calls& of = calls_of.of(*thread);
      finder.find(*thread, of);
      left.add(*thread, columns::CallColumns(of));
      calls += static_cast<std::uint64_t>(std::count_if(of.marks.begin(), of.marks.end(), columns::is_counted));
      progress.done += of.events;
    }
  }
  std::vector<analysis::OutlierGroup> groups = analysis::group_outliers(finder.take(), options.each);
  answers::SlowSearch teller(
      trace, (*input)->filter.range,
      [&calls_of](const reader::Thread& thread) -> const reader::Calls& { return calls_of.of(thread); }, options.follow,
      finder);
  analysis::put_idle_last(groups, trace, [&](const analysis::Outlier& of) { return teller.wait_of(of); });
  Found found{.calls = calls, .slow = finder.found(), .usual_known = finder.knows_any()};
  found.left = teller.left_beside(groups, left);
  if (groups.size() > options.limit) groups.resize(options.limit);
  for (const analysis::OutlierGroup& group : groups) found.listed.push_back(teller.tell(group));
  found.rare = teller.rare_beside(groups);
  found.has_states = teller.has_states();
  return print(found, **input, options);
}

}  // namespace

void register_slow(Command app, int& status) {
  auto options = std::make_shared<Options>();
  Command command = app.add_subcommand("slow", "Show calls that took far longer than usual, and what they waited for");
  command.footer(kFooter);
  add_file_option(command, options->input);
  command.add_option("-n,--limit", options->limit, "Show N of them (default 10)").type_name("N").check(positive());
  command.add_flag("--each", options->each, "Show each call, not the slowest of those alike alone");
  command.add_flag("--follow", options->follow,
                   "Go on from who ended a wait to what that thread did meanwhile and waited for");
  command.add_option("--columns", options->answer.columns, "Show a table of these columns: one,two").type_name("NAMES");
  add_format_options(command, options->answer.format, {"text", "csv", "json"});
  add_selection_options(command, options->input, "Show only calls of functions whose name matches");
  add_raw_option(command, options->input);
  add_text_options(command, options->answer.text);
  command.callback([options, &status] { status = slow(*options); });
}

}  // namespace karst::cli
