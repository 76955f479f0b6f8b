// SPDX-License-Identifier: MIT
// karst check: detectors look for known kinds of trouble in traces.
#include "answers/check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "answers/data.h"
#include "base/json.h"
#include "base/output.h"
#include "cli/command.h"
#include "cli/commands/answer.h"
#include "cli/commands/check_all.h"
#include "cli/input/database.h"
#include "cli/input/detectors.h"
#include "cli/text/table.h"
#include "cli/text/terminal.h"
#include "cli/text/text.h"
#include "sql/detector.h"

namespace karst::cli {
namespace {

using answers::CheckFinding;
using answers::CheckOutcome;

struct Options {
  std::vector<std::string> files;
  std::vector<std::string> detectors;
  std::vector<std::string> directories;
  bool list = false;
  bool fail = false;
  InputOptions input;  ///< --raw
  AnswerOptions answer;
};

constexpr const char* kExample = R"(:

  app.karst: 1 finding

   1. load_orders calls load_order 200 times, and each waits for a file
        at 12.30 ms in thread 812 app; 45.10 ms in all; 200 calls; 99.5% sure
        Each of these calls reads a file or a socket by itself ...
        n-plus-one; karst explain app.karst --call 812@12300000ns

)";
constexpr const char* kRest = R"(
A detector is a file of SQL. Those that come with Karst, and what they need of a
trace, are listed by --list. Yours are looked for in karst/detectors of
$XDG_CONFIG_HOME, else of ~/.config, and in --directory; of two of one name the
later one stands. Their SQL can read the trace alone, as that of karst query.

A detector whose needs a trace lacks is listed as not looked for, with what
records them. json has what became of each detector in check_outcomes.

Exit status: 0, also where something was found; with --fail 3 if something was.
1 if a detector failed; the others are asked nevertheless.)";

int list_detectors(const Options& options, const std::vector<sql::Detector>& detectors) {
  std::vector<answers::DetectorRow> rows;
  rows.reserve(detectors.size());
  for (const sql::Detector& of : detectors) rows.push_back({of.name, of.sentence, of.needs, of.file});
  AnswerOptions all = options.answer;
  all.sort.clear();
  all.limit = 0;
  return print_answer(all, Answer(answers::detectors(), all, addresses(rows)));
}

/// Leaves those that `names` name, if there are any.
Status choose(std::vector<sql::Detector>& detectors, const std::vector<std::string>& names) {
  if (names.empty()) return Unit{};
  const auto is_named = [&](const sql::Detector& of) {
    return std::find(names.begin(), names.end(), of.name) != names.end();
  };
  for (const std::string& name : names) {
    if (std::any_of(detectors.begin(), detectors.end(), [&](const sql::Detector& of) { return of.name == name; }))
      continue;
    std::vector<std::string> known;
    known.reserve(detectors.size());
    for (const sql::Detector& of : detectors) known.push_back(of.name);
    return Error{fmt::format("there is no detector '{}', but {}", name, fmt::join(known, ", "))};
  }
  std::erase_if(detectors, [&](const sql::Detector& of) { return !is_named(of); });
  return Unit{};
}

/// For people.
class CheckPrinter {
 public:
  CheckPrinter(Screen& screen, const Found& found) : screen_(screen), found_(found) {}

  void print(const Answer& answer) {
    std::vector<std::string> traces;
    for (const CheckOutcome& of : found_.outcomes)
      if (traces.empty() || traces.back() != of.trace) traces.push_back(of.trace);
    for (const std::string& trace : traces) {
      const auto count = std::count_if(found_.findings.begin(), found_.findings.end(),
                                       [&](const CheckFinding& of) { return of.trace == trace; });
      line(printable(trace) + ": " +
               (count == 0 ? "nothing was found" : plural(static_cast<std::uint64_t>(count), "finding")),
           2);
    }
    std::size_t number = 0;
    for (const void* const row : answer.rows())
      print_finding(++number, *static_cast<const CheckFinding*>(row), traces.size() > 1);
    answer.say_left_out(screen_);
    if (!answer.rows().empty()) screen_.output().append("\n");
    print_others(traces.size() > 1);
  }

 private:
  void line(const std::string& text, std::size_t indent) {
    const std::size_t begin = std::min(text.find_first_not_of(' '), text.size());
    screen_.output().append(std::string(begin, ' ') +
                            wrap(std::string_view(text).substr(begin), screen_.width(), indent) + "\n");
  }

  void print_finding(std::size_t number, const CheckFinding& of, bool with_trace) {
    screen_.output().append("\n");
    line(fmt::format("{:>2}. {}", number, screen_.paint(Style::kStrong, printable(of.title))), 4);
    std::string place = "      at " + duration_text(of.begin_ns);
    if (of.tid) place += fmt::format(" in thread {} {}", *of.tid, printable(of.thread));
    if (with_trace) place += " of " + printable(of.trace);
    line(fmt::format("{}; {} in all; {}; {} sure", place, duration_text(of.total_ns),
                     answers::amount_text(of.amount, of.unit), percent_text(of.sure)),
         8);
    line("      " + printable(of.sentence), 8);
    line("      " + of.detector +
             (of.call.empty() ? ""
                              : fmt::format("; karst explain {} --call {}", printable(of.trace), printable(of.call))),
         8);
  }

  /// What was not found, and why not.
  void print_others(bool with_trace) {
    std::vector<std::string> nothing;
    std::map<std::string, std::vector<std::string>> not_looked_for;
    for (const CheckOutcome& of : found_.outcomes) {
      const std::string name = of.detector + (with_trace ? " in " + printable(of.trace) : "");
      const std::string_view outcome = of.outcome;
      if (outcome == "nothing") nothing.push_back(name);
      if (outcome == "not looked for") not_looked_for[of.why].push_back(name);
      if (outcome == "failed") line(fmt::format("failed: {}: {}", name, printable(of.why)), 2);
    }
    if (!nothing.empty()) line(fmt::format("looked for, and not found: {}", fmt::join(nothing, ", ")), 2);
    for (const auto& [why, names] : not_looked_for)
      line(fmt::format("not looked for: {}: {}", fmt::join(names, ", "), printable(why)), 2);
  }

  Screen& screen_;
  const Found& found_;
};

int print_found(const Options& options, const Found& found) {
  const Answer answer(answers::check_findings(), options.answer, addresses(found.findings));
  if (!options.answer.is_text() || !options.answer.columns.empty())
    return print_answer(options.answer, answer, [&](Json& json) {
      json.key("check_outcomes").open('[');
      for (const CheckOutcome& of : found.outcomes) answers::write_row(json, nullptr, answers::check_outcomes(), &of);
      json.close(']');
    });
  if (const Status known = answer.known(); !known) return fail(known.error());
  Screen screen(options.answer.text);
  CheckPrinter(screen, found).print(answer);
  return screen.finish();
}

int check(const Options& options) {
  auto all = find_detectors(options.directories);
  if (!all) return fail(all.error());
  for (const std::string& notice : all->notices) say(notice);
  for (const std::string& failure : all->failures) say(failure);
  if (const Status chosen = choose(all->detectors, options.detectors); !chosen)
    return usage_error("--detector: " + chosen.error().message, "check");
  const bool has_failed = !all->failures.empty();
  if (options.list) {
    const int status = list_detectors(options, all->detectors);
    return status == kExitOk && has_failed ? kExitFailed : status;
  }
  Found found;
  std::vector<std::string> files = options.files;
  if (files.empty()) files.emplace_back();
  for (const std::string& file : files) {
    const auto input = open_traces({file}, options.input.raw);
    if (!input) return fail(input.error());
    if (const Status checked = check_trace(all->detectors, *input, found); !checked) return fail(checked.error());
    if (!options.answer.is_text()) warn_partial(*input->front());
  }
  if (const int printed = print_found(options, found); printed != kExitOk) return printed;
  if (has_failed || found.has_failed()) return kExitFailed;
  return options.fail && !found.findings.empty() ? kExitOver : kExitOk;
}

}  // namespace

void register_check(Command app, int& status) {
  auto options = std::make_shared<Options>();
  Command command = app.add_subcommand("check", "Look for known kinds of trouble");
  command.footer(answer_footer(answers::check_findings(), kExample, kRest));
  command.add_option("FILE", options->files, "Traces (default: the newest *.karst here)").type_name("");
  command.add_option("--detector", options->detectors, "Ask this detector alone; several times for several")
      .type_name("NAME")
      .repeats();
  command.add_option("--directory", options->directories, "Take detectors of this directory, too")
      .type_name("DIR")
      .repeats();
  command.add_flag("--list", options->list, "List the detectors, and what each needs of a trace");
  command.add_flag("--fail", options->fail, "Exit with 3 if something was found");
  add_answer_options(command, options->answer, answers::check_findings(), "findings", "total", 20);
  add_raw_option(command, options->input);
  command.callback([options, &status] { status = check(*options); });
}

}  // namespace karst::cli
