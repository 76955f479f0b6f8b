// SPDX-License-Identifier: MIT
// karst requests: what was done for each request, in all threads.
#include "analysis/requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "answers/requests.h"
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

using analysis::Request;

struct Options {
  InputOptions input;
  AnswerOptions answer;
};

constexpr const char* kExample = R"(, the
longest first:

  request    begin duration      idle  blocked threads calls    most  most in
     4711 54.73 ms 53.84 ms  12.10 ms 27.57 ms       2    14 26.2 ms  Disk::flush

)";
constexpr const char* kRest = R"(
The filters choose which calls count; a request that has none of those that
--function, --below or --min-duration ask for is left out. --range chooses work,
and does not cut a request's duration.

  karst tree --request 4711     what threads did for it; also in report, slow,
                                explain, flame, diff and the others)";

// "4,000 requests, 2 without a begin or an end: p50 4.698 us, p90 5.1 us, p99 27.2 ms, max 53.84 ms".
std::string summary(const std::vector<Request>& requests, const answers::Times& times) {
  std::vector<std::uint64_t> durations;
  for (const Request& r : requests)
    if (r.begun && r.ended) durations.push_back(r.duration());
  std::string text = plural(requests.size(), "request");
  if (durations.size() < requests.size())
    text += fmt::format(", {} without a begin or an end", count_text(requests.size() - durations.size()));
  if (durations.size() < 2) return text;
  std::sort(durations.begin(), durations.end());
  const auto percentile = [&](std::size_t percent) {  // the nearest rank, as in report
    return duration_text(times.ns(durations[(durations.size() * percent + 99) / 100 - 1]));
  };
  return text + fmt::format(": p50 {}, p90 {}, p99 {}, max {}", percentile(50), percentile(90), percentile(99),
                            duration_text(times.ns(durations.back())));
}

/// Empty: of all it is told who worked on them.
std::string untold(const std::vector<Request>& requests) {
  const auto without = static_cast<std::uint64_t>(
      std::count_if(requests.begin(), requests.end(), [](const Request& r) { return r.threads == 0; }));
  if (without == 0) return {};
  return fmt::format(
      "\n{} without work: which thread worked on it is not told. karst_request_begin(ID) and karst_request_end(ID) say "
      "when it was there; a thread that begins to work on it says karst_request(ID)",
      plural(without, "request"));
}

int requests(const Options& options) {
  auto input = open_input(options.input);
  if (!input) return fail(input.error());
  const reader::Trace& trace = (*input)->trace;
  const std::string& sort = options.answer.sort;
  if (trace.states().empty() && (sort == "cpu" || sort == "runnable" || sort == "blocked"))
    return fail({trace.name() + " has no thread states to sort by: see 'karst info', and record with 'karst run "
                                "--sched auto'"});
  // Whose work it is, notes say that the filter may leave out.
  const auto request = std::exchange((*input)->filter.request, std::nullopt);
  analysis::RequestFinder finder(trace, (*input)->function_set(), (*input)->filter.range, (*input)->raw);
  {
    Progress progress("adding up requests", (*input)->events);
    const analysis::CallFilter& filter = (*input)->filter;
    const bool all_count = !filter.range && filter.below == nullptr && filter.min_ticks == 0;
    reader::Calls notes, some;
    for (const reader::Thread* thread : (*input)->threads) {
      notes = reader::rebuild_calls(trace, *thread, std::move(notes));
      progress.done += notes.events;
      if (notes.notes.empty()) continue;
      if (!all_count) {
        some = notes;
        analysis::filter_calls(some, thread->process, filter);
      }
      finder.add(*thread, notes, all_count ? notes : some);
    }
  }
  std::vector<Request> found = finder.take();
  const bool told = !found.empty();
  const bool only_some = (*input)->functions || (*input)->below || (*input)->filter.min_ticks != 0;
  std::erase_if(found,
                [&](const Request& one) { return (request && one.id != *request) || (only_some && one.calls == 0); });
  if (found.empty() && !told)
    return fail({trace.name() + " has no requests: a program tells of them with karst_request_begin(ID), "
                                "karst_request(ID) and karst_request_end(ID) of karst/karst.h"});
  if (found.empty()) return fail({"no request of " + trace.name() + " passes all filters"});
  const answers::Times times(trace);
  std::vector<answers::RequestRow> rows;
  rows.reserve(found.size());
  for (const Request& one : found) rows.push_back({one, times});
  const Answer answer(trace, answers::requests(), options.answer, addresses(rows));
  if (options.answer.is_text()) {
    Screen screen(options.answer.text);
    say_partial(screen, **input);
    screen.output().append(wrap(summary(found, times), screen.width(), 2) + "\n\n");
    if (Status printed = answer.print_table(screen); !printed) return fail(printed.error());
    if (const std::string text = untold(found); !text.empty())
      screen.output().append(wrap(text, screen.width(), 2) + "\n");
    say_cost(screen, **input);
    return screen.finish(&trace);
  }
  return print_answer(options.answer, **input, answer);
}

}  // namespace

void register_requests(Command app, int& status) {
  auto options = std::make_shared<Options>();
  Command command =
      app.add_subcommand("requests", "List requests: how long each took, in which threads, and where its time went");
  command.footer(answer_footer(answers::requests(), kExample, kRest));
  add_file_option(command, options->input);
  add_answer_options(command, options->answer, answers::requests(), "requests", "duration", 20);
  add_selection_options(command, options->input, "Count only calls of functions whose name matches");
  add_raw_option(command, options->input);
  command.callback([options, &status] { status = requests(*options); });
}

}  // namespace karst::cli
