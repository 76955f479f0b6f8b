// SPDX-License-Identifier: MIT
// karst diff: what changed between two traces, or two parts of one.
#include "analysis/diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/diff_calls.h"
#include "analysis/diff_findings.h"
#include "answers/changes.h"
#include "answers/data.h"
#include "base/json.h"
#include "base/output.h"
#include "cli/command.h"
#include "cli/commands/answer.h"
#include "cli/commands/diff_text.h"
#include "cli/commands/flame_svg.h"
#include "cli/input/trace_input.h"
#include "cli/text/terminal.h"
#include "cli/text/text.h"

namespace karst::cli {
namespace {

struct Options {
  InputOptions input;                       // of both sides
  std::vector<std::string> traces, others;  // A, or A and B; B
  std::string range_a, range_b;
  std::optional<std::uint64_t> request_a, request_b;
  AnswerOptions answer;
  std::string fail_over;
  bool all = false;
};

constexpr const char* kFooter = R"(A is the first trace, B the second. First stands what explains the difference in
time, what is certain before the rest:

  normalize_word calls Stop::Stop 720,000 times, before 1: +190 ms  exact
  hash takes 424 ns a call by itself, before 232: +1.9 ms           certain

A number of calls is exact with one run a side. It may vary if several threads
make calls, or if a trace is incomplete; then that is said, as it is if runs of
one side differ. Listed are callers that call more often than their own number
of calls explains. A time is certain if it is beyond chance. What may be chance
is listed behind, the greatest first.

The table has each function whose calls differ in number or in time:

  change   of the mean of the middle half of its calls' durations, from A to B;
           new, gone
  p50      the median of those durations
  self, total, calls  as in karst report; of several runs the mean

Durations are tested from 8 complete calls a side on, self times of several runs
too. At most 1% of the functions listed for their time are expected to be chance
(Benjamini-Hochberg), and changes below 2% are left out.

One run a side cannot tell how much runs differ: 12% is taken for usual, so that
only changes of some 45% are certain. Give several a side, made in turns: then they
say it themselves (a moderated t-test), and smaller changes are found.

  karst diff before.karst after.karst
  karst diff before-*.karst --with after-*.karst
  karst diff app.karst --range-a ..1s --range-b 1s..
  karst diff app.karst --request-a 4711 --request-b 4712
  karst diff --format svg before.karst after.karst > change.svg
  karst diff --fail-over 5% before.karst after.karst     in CI

Times are without what tracing itself took, which is an estimate; --raw leaves it
in. What it takes of a call is the same in all runs. Where a function's calls
make more calls in B than in A, a change is listed only if it is greater than
what the estimate may be off by for these.

svg is a picture of two flame graphs on one scale, of one run a side: B's stands
up, A's hangs below it. What takes longer in B is red, what takes less is blue.

Exit status with --fail-over: 3 if for a function it is certain that its calls
take longer by more, or that there are more of them by more and they take more
time in all by more. A new function counts if it takes so much of all time, and
all takes longer.)";

Result<double> parse_percent(std::string_view text) {
  double number = -1;
  const bool sign = text.ends_with('%');
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end + (sign ? 1 : 0) != text.data() + text.size() || !sign || !(number >= 0) ||
      number > 1e6)
    return Error{fmt::format("'{}' is no percentage; one looks like 5%", text)};
  return number / 100;
}

/// A run with all that its results look into.
struct Run {
  std::unique_ptr<Input> input;
  std::unique_ptr<analysis::ReportBuilder> builder;
  analysis::Report report;
  columns::EdgeSums edges;
};
using Side = std::vector<Run>;

bool names_functions(const Input& input) { return input.functions || input.below; }

/// No run of the side has a function that was asked for.
bool has_none(const Side& side) {
  return std::all_of(side.begin(), side.end(), [](const Run& run) {
    const auto matches = [](const auto& functions) { return !functions || !functions->empty(); };
    return !matches(run.input->functions) || !matches(run.input->below);
  });
}

Result<Side> open_runs(const std::vector<InputOptions>& runs) {
  Side side;
  for (const InputOptions& options : runs) {
    auto input = open_input(options);
    if (!input) return input.error();
    side.emplace_back().input = std::move(*input);
  }
  return side;
}

/// Error: a run has no calls, although it was not asked for certain functions; those may be in other runs alone.
Status add_up(Side& side) {
  for (Run& run : side) {
    run.builder = std::make_unique<analysis::ReportBuilder>(run.input->trace, run.input->function_set());
    run.input->each_piece("adding up calls", [&](const reader::Thread& thread, const reader::Piece& piece) {
      run.builder->add(thread, piece);
      if (!piece.last) run.edges.add(run.builder->parts().latest());
    });
    run.edges.settle();
    run.report = run.builder->finish();
    if (run.report.functions.empty() && !names_functions(*run.input)) return nothing_passes(*run.input);
  }
  return Unit{};
}

std::vector<analysis::Measured> measured(const Side& side) {
  std::vector<analysis::Measured> runs;
  for (const Run& run : side) runs.push_back({run.report, *run.builder, run.input->trace, &run.edges.edges()});
  return runs;
}

std::string program_of(const reader::Trace& trace) {
  if (trace.processes().empty()) return "nothing";
  const std::string& path = trace.processes().front().executable;
  return printable(path.empty() ? trace.processes().front().name : path.substr(path.find_last_of('/') + 1));
}

constexpr const char* kWhyNameless = "its program had no symbols, or the file ends before it has the names";

/// What stands for the name of a function, where no function of these traces has one; else empty.
std::string nameless(const Side& side) {
  const std::string* first = nullptr;
  for (const Run& run : side) {
    for (const analysis::FunctionReport& f : run.report.functions) {
      if (f.name.find("+0x") == std::string::npos && !f.name.starts_with("function#")) return {};
      if (first == nullptr) first = &f.name;
    }
  }
  return first != nullptr ? printable(*first) : "";
}

/// What a table's head says of the list: how many there are and by which test.
std::string summary(const std::vector<analysis::FunctionDiff>& functions, const Side& a, const Side& b) {
  const std::size_t runs_a = a.size(), runs_b = b.size();
  const bool one_trace = a.front().input->trace.name() == b.front().input->trace.name();
  std::size_t tested = 0, changed = 0, few = 0, alone = 0, counts = 0;
  for (const analysis::FunctionDiff& diff : functions) {
    tested += diff.tested ? 1 : 0;
    changed += diff.in_time() ? 1 : 0;
    counts += diff.in_both() && diff.counts != analysis::Counts::kSame ? 1 : 0;
    alone += diff.in_both() ? 0 : 1;
    few += diff.in_both() && !diff.tested ? 1 : 0;
  }
  std::string text =
      fmt::format("{} compared: {} changed", plural(tested, "function"), changed == 0 ? "none" : count_text(changed));
  if (counts != 0) text += fmt::format("; calls of {} differ in number", count_text(counts));
  if (alone != 0) text += fmt::format("; {} in A or B alone", count_text(alone));
  if (few != 0) text += fmt::format("; {} with too few calls to tell", count_text(few));
  const std::string how = runs_a + runs_b > 2 ? fmt::format("{} and {} runs, t-test", runs_a, runs_b)
                          : one_trace         ? "rank test"
                                              : "rank test; runs are taken to differ by 12%, several a side would tell";
  return fmt::format("{} ({}; 1% of what is listed may be chance; changes below 2% are not)", text, how);
}

/// The rows of those that differ, or of all.
std::vector<const void*> rows_of(const std::vector<analysis::FunctionDiff>& functions, bool all) {
  std::vector<const void*> rows;
  for (const analysis::FunctionDiff& diff : functions)
    if (all || diff.differs()) rows.push_back(&diff);
  return rows;
}

Status print_text(const std::vector<analysis::FunctionDiff>& functions, const std::vector<analysis::Finding>& found,
                  const Side& side_a, const Side& side_b, const Options& options, Screen& screen) {
  print_findings(found, {analysis::all_self_ns(functions, 0), analysis::all_self_ns(functions, 1)}, options.all,
                 screen);
  screen.output().append(wrap(summary(functions, side_a, side_b), screen.width(), 0) + "\n");
  const Answer answer(side_a.front().input->trace, answers::compared_functions(), options.answer,
                      rows_of(functions, options.all));
  if (answer.count() == 0) return answer.known();
  if (Status printed = answer.print_table(screen); !printed) return printed;
  answer.say_left_out(screen, "function");
  return Unit{};
}

void write_facts(Json& json, const std::vector<analysis::Finding>& found, const Side& a, const Side& b) {
  const analysis::DiffOptions used;
  const reader::Trace& trace = a[0].input->trace;
  json.field("a", trace.name()).field("b", b[0].input->trace.name());
  json.field("runs_a", a.size()).field("runs_b", b.size());
  json.field("test", a.size() + b.size() > 2 ? "moderated t" : "Mann-Whitney");
  json.field("false_share", used.false_share).field("least_change", used.least_change);
  const CostRange of_a = call_cost_of(*a[0].input), of_b = call_cost_of(*b[0].input);
  json.field("call_cost_ns", std::max(of_a.most, of_b.most));
  json.field("call_cost_off_by_ns", std::max(of_a.off_by, of_b.off_by));
  json.key("findings").open('[');
  for (const analysis::Finding& finding : found) answers::write_row(json, trace, answers::findings(), &finding);
  json.close(']');
}

int print_rows(const std::vector<analysis::FunctionDiff>& functions, const std::vector<analysis::Finding>& found,
               const Side& a, const Side& b, const Options& options) {
  const Input& input = *a.front().input;
  const Answer answer(input.trace, answers::compared_functions(), options.answer, rows_of(functions, true));
  return print_answer(options.answer, input, answer, [&](Json& json) { write_facts(json, found, a, b); });
}

/// "app.karst, request 17".
std::string name_of(const Input& input, const InputOptions& options) {
  std::string name = input.trace.name();
  if (!options.range.empty()) name += ", " + options.range;
  if (options.request) name += fmt::format(", request {}", *options.request);
  return name;
}

/// The runs of both sides.
using Sides = std::pair<std::vector<InputOptions>, std::vector<InputOptions>>;

Status print_svg(const Side& a, const Side& b, const Sides& of, Output& output) {
  const auto paths_a = paths_of(*a[0].input, "wall");
  if (!paths_a) return paths_a.error();
  const auto paths_b = paths_of(*b[0].input, "wall");
  if (!paths_b) return paths_b.error();
  print_two_flames_svg(**paths_a, name_of(*a[0].input, of.first[0]), **paths_b, name_of(*b[0].input, of.second[0]),
                       output);
  return Unit{};
}

/// What the two sides are: one trace twice needs two ranges.
Result<Sides> sides_of(const Options& options) {
  InputOptions a = options.input, b = options.input;
  if (!options.range_a.empty()) a.range = options.range_a;
  if (!options.range_b.empty()) b.range = options.range_b;
  if (!options.input.range.empty() && (!options.range_a.empty() || !options.range_b.empty()))
    return Error{"--range is of both sides: it goes with neither --range-a nor --range-b"};
  if (options.request_a) a.request = options.request_a;
  if (options.request_b) b.request = options.request_b;
  if (options.input.request && (options.request_a || options.request_b))
    return Error{"--request is of both sides: it goes with neither --request-a nor --request-b"};
  std::vector<std::string> files_a = options.traces, files_b = options.others;
  if (files_b.empty() && files_a.size() > 2)
    return Error{"which of these traces are B? --with stands before them: karst diff A1 A2 --with B1 B2"};
  if (files_b.empty() && files_a.size() == 2) {
    files_b = {files_a[1]};
    files_a.pop_back();
  }
  const bool two_parts =
      (!options.range_a.empty() && !options.range_b.empty()) || (options.request_a && options.request_b);
  if (files_b.empty() && !two_parts)
    return Error{
        "two traces are compared, or two parts of one: --range-a and --range-b say which, or "
        "--request-a and --request-b"};
  if (files_b.empty()) files_b = files_a;
  if (options.answer.format == "svg" && (files_a.size() > 1 || files_b.size() > 1))
    return Error{"--format svg is of one trace a side"};
  a.may_have_none = b.may_have_none = true;
  Sides sides;
  for (const std::string& file : files_a) sides.first.emplace_back(a).file = file;
  for (const std::string& file : files_b) sides.second.emplace_back(b).file = file;
  return sides;
}

int diff(const Options& options) {
  const auto sides = sides_of(options);
  if (!sides) return usage_error(sides.error().message, "diff");
  const auto limit = options.fail_over.empty() ? Result<double>(0.0) : parse_percent(options.fail_over);
  if (!limit) return usage_error("--fail-over: " + limit.error().message, "diff");
  auto a = open_runs(sides->first);
  if (!a) return fail(a.error());
  auto b = open_runs(sides->second);
  if (!b) return fail(b.error());
  if (has_none(*a) && has_none(*b)) {
    InputOptions first = sides->first.front();
    first.may_have_none = false;
    return fail(open_input(first).error());
  }
  std::vector<Input*> inputs;
  for (Side* side : {&*a, &*b})
    for (const Run& run : *side) inputs.push_back(run.input.get());
  take_one_cost(inputs);
  for (Side* side : {&*a, &*b})
    if (const Status added = add_up(*side); !added) return fail(added.error());
  const auto functions = analysis::compare(measured(*a), measured(*b), {});
  const auto found = analysis::findings(functions, analysis::compare_calls(measured(*a), measured(*b)));
  const reader::Trace &first_a = a->front().input->trace, &first_b = b->front().input->trace;
  const std::string program_a = program_of(first_a), program_b = program_of(first_b);
  const bool one_in_both = std::any_of(functions.begin(), functions.end(), [](const auto& f) { return f.in_both(); });
  if (functions.empty()) return fail(nothing_passes(*a->front().input));
  if (!one_in_both && !names_functions(*a->front().input)) {
    for (const Side* side : {&*a, &*b})
      if (const std::string stand_in = nameless(*side); !stand_in.empty())
        return fail({fmt::format("the functions of {} have no names to compare by, as {}: {}",
                                 side->front().input->trace.name(), stand_in, kWhyNameless)});
    return fail({fmt::format("no function was called both in {} (of {}) and in {} (of {}): are they of one program?",
                             first_a.name(), program_a, first_b.name(), program_b)});
  }
  if (program_a != program_b)
    std::fprintf(stderr, "karst: these are traces of different programs, %s and %s: what they share is compared\n",
                 program_a.c_str(), program_b.c_str());

  int status = kExitOk;
  if (options.answer.is_text()) {
    Screen screen(options.answer.text);
    for (const Input* input : inputs) say_partial(screen, *input);
    if (const Status printed = print_text(functions, found, *a, *b, options, screen); !printed)
      return fail(printed.error());
    const Input &of_a = *a->front().input, &of_b = *b->front().input;
    say_cost(screen, of_a);
    if (cost_text(of_b) != cost_text(of_a)) say_cost(screen, of_b);  // by another clock
    status = screen.finish(&first_a);
  } else if (options.answer.format == "svg") {
    for (const Input* input : inputs) warn_partial(*input);
    Output output = Output::to_stdout();
    if (const Status drawn = print_svg(*a, *b, *sides, output); !drawn) return fail(drawn.error());
    status = finish_output(output, first_a);
  } else {
    for (std::size_t i = 1; i < inputs.size(); ++i) warn_partial(*inputs[i]);  // the first one's is print_answer()'s
    status = print_rows(functions, found, *a, *b, options);
  }
  if (status != kExitOk || options.fail_over.empty()) return status;
  const double all_ns[] = {analysis::all_self_ns(functions, 0), analysis::all_self_ns(functions, 1)};
  const auto over = [&](const analysis::FunctionDiff& f) { return analysis::is_over(f, *limit, all_ns); };
  const auto count = std::count_if(functions.begin(), functions.end(), over);
  if (count == 0) return kExitOk;
  std::fprintf(stderr, "karst: calls of %s take over %s longer\n",
               plural(static_cast<std::uint64_t>(count), "function").c_str(), options.fail_over.c_str());
  return kExitOver;
}

}  // namespace

void register_diff(Command app, int& status) {
  auto options = std::make_shared<Options>();
  Command command = app.add_subcommand("diff", "Compare two traces, or two parts of one: what became slower");
  command.footer(kFooter);
  command.add_option("TRACE", options->traces, "A, to compare with, and B; A alone, with two ranges or requests")
      .type_name("")
      .required();
  command.add_option("--with", options->others, "These are B, and those before it A: several runs of each")
      .type_name("TRACE...");
  for (const auto& [name, range, side] :
       {std::tuple("--range-a", &options->range_a, 'A'), std::tuple("--range-b", &options->range_b, 'B')})
    command.add_option(name, *range, fmt::format("As --range, of {} alone", side))
        .check([](const std::string& text) {
          const auto parsed = parse_range(text);
          return parsed ? std::string() : parsed.error().message;
        })
        .type_name("BEGIN..END");
  for (const auto& [name, request, side] :
       {std::tuple("--request-a", &options->request_a, 'A'), std::tuple("--request-b", &options->request_b, 'B')})
    command.add_option(name, *request, fmt::format("As --request, of {} alone", side))
        .check(positive())
        .type_name("ID");
  command.add_option("--fail-over", options->fail_over, "Exit with 3 if a function certainly takes so much longer")
      .type_name("PERCENT%");
  command.add_flag("--all", options->all, "List all functions, also those without a change");
  add_answer_options(command, options->answer, {&answers::compared_functions()}, "functions", "", 0, {"svg"});
  add_selection_options(command, options->input, "Compare only functions whose name matches");
  add_raw_option(command, options->input);
  command.callback([options, &status] { status = diff(*options); });
}

}  // namespace karst::cli
