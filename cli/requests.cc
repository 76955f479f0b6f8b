// karst requests: what was done for each request, in all threads.
#include "analysis/requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/output.h"
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

using analysis::Request;

struct Options {
  InputOptions input;
  std::string format = "text";
  std::string sort = "duration";
  std::size_t limit = 20;
  TextOptions text;
};

constexpr const char* kFooter = R"(Output: a row for each request that the program told of with karst.h, the
longest first:

  request    begin duration      idle  blocked threads calls  most in
     4711 54.73 ms 53.84 ms  12.10 ms 27.57 ms       2    14  26.2 ms Disk::flush

  begin     since the trace's first event
  duration  from the note that it begins to the note that it ends; without them
            from the first work on it or to the last ('<', '>')
  idle      time in which no thread worked on it: it waited in a queue
  work      of all threads together, while they said karst_request(ID)
  cpu, runnable, blocked  parts of the work, where the trace has states
  calls     that began in that time
  most in   the function with the greatest self time in it

The filters choose which calls count; a request that has none of those that
--function, --below or --min-duration ask for is left out. --range chooses work,
and does not cut a request's duration.

  karst tree --request 4711     what threads did for it; also in report, slow,
                                explain, flame, diff and the others)";

const std::vector<std::string>& sort_words() {
  static const std::vector<std::string> words{"duration", "idle",    "work",  "cpu",   "runnable",
                                              "blocked",  "threads", "calls", "begin", "request"};
  return words;
}

/// What to sort by, the greatest first.
std::uint64_t key_of(const Request& request, std::string_view by) {
  const reader::StateTimes states = request.states.value_or(reader::StateTimes{});
  if (by == "idle") return request.idle;
  if (by == "work") return request.worked;
  if (by == "cpu") return states.running;
  if (by == "runnable") return states.runnable;
  if (by == "blocked") return states.blocked;
  if (by == "threads") return request.threads;
  if (by == "calls") return request.calls;
  return request.duration();
}

void sort(std::vector<Request>& requests, std::string_view by) {
  if (by == "request") return;  // they are
  std::stable_sort(requests.begin(), requests.end(), [&](const Request& a, const Request& b) {
    return by == "begin" ? a.begin < b.begin : key_of(a, by) > key_of(b, by);
  });
}

class RequestPrinter {
 public:
  RequestPrinter(const Input& input, const std::vector<Request>& requests, std::size_t limit)
      : input_(input),
        requests_(requests),
        shown_(limit == 0 ? requests.size() : std::min(limit, requests.size())),
        start_(analysis::first_ticks(input.trace)),
        has_states_(!input.trace.states().empty()) {}

  void print_text(Screen& screen) const {
    screen.output().append(wrap(summary(), screen.width(), 2) + "\n\n");
    const bool processes = input_.trace.processes().size() > 1;
    std::vector<Column> columns;
    if (processes) columns.push_back({.key = "process", .title = "process", .rank = 4});
    columns.push_back({.key = "request", .title = "request"});
    columns.push_back({.key = "begin", .title = "begin", .rank = 5});
    columns.push_back({.key = "duration", .title = "duration "});
    columns.push_back({.key = "idle", .title = "idle", .rank = 2});
    columns.push_back({.key = "work", .title = "work", .narrow = !has_states_, .rank = 3});
    if (has_states_) {
      columns.push_back({.key = "cpu", .title = "cpu", .rank = 6});
      columns.push_back({.key = "runnable", .title = "runnable", .narrow = false, .rank = 8});
      columns.push_back({.key = "blocked", .title = "blocked", .rank = 1});
    }
    columns.push_back({.key = "threads", .title = "threads", .rank = 7});
    columns.push_back({.key = "calls", .title = "calls", .rank = 9});
    columns.push_back({.key = "most", .title = "most in", .left = true});
    Table table(std::move(columns), Shorten::kName);
    for (std::size_t i = 0; i < shown_; ++i) table.add(cells(requests_[i], processes));
    table.print(screen);
    const auto without = static_cast<std::uint64_t>(
        std::count_if(requests_.begin(), requests_.end(), [](const Request& r) { return r.threads == 0; }));
    if (without != 0)
      screen.output().append(
          wrap(fmt::format("\n{} without work: which thread worked on it is not told. karst_request_begin(ID) and "
                           "karst_request_end(ID) say when it was there; a thread that begins to work on it says "
                           "karst_request(ID)",
                           plural(without, "request")),
               screen.width(), 2) +
          "\n");
  }

  void print_csv(Output& output) const {
    output.append(
        "request,pid,begin_ns,duration_ns,begun,ended,idle_ns,work_ns,cpu_ns,runnable_ns,blocked_ns,unknown_ns,threads,"
        "calls,most_in,most_in_ns\n");
    for (std::size_t i = 0; i < shown_ && !output.failed(); ++i) {
      const Request& r = requests_[i];
      std::string states = ",,,";
      if (r.states)
        states = fmt::format("{},{},{},{}", ns(r.states->running), ns(r.states->runnable), ns(r.states->blocked),
                             ns(r.states->unknown));
      output.append(fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{}\n", r.id, process(r).pid, since_start(r.begin),
                                ns(r.duration()), r.begun ? 1 : 0, r.ended ? 1 : 0, ns(r.idle), ns(r.worked), states,
                                r.threads, r.calls, csv_field(most_in(r)), ns(r.most_ticks)));
    }
  }

  void print_json(Output& output) const {
    Json json;
    json.open('{').field("trace", input_.trace.name()).field("count", requests_.size()).key("requests").open('[');
    for (std::size_t i = 0; i < shown_ && !output.failed(); ++i) {
      json.line().open('{');
      analysis::write_request(json, input_.trace, start_, requests_[i]);
      json.close('}').flush(output);
    }
    json.close(']').close('}').flush(output);
    output.append("\n");
  }

 private:
  const reader::Process& process(const Request& request) const { return input_.trace.processes()[request.process]; }
  std::uint64_t ns(std::uint64_t ticks) const { return input_.trace.clock().to_ns(ticks); }
  std::uint64_t since_start(std::uint64_t ticks) const { return ticks > start_ ? ns(ticks - start_) : 0; }
  std::string time(std::uint64_t ticks) const { return duration_text(ns(ticks)); }
  std::string most_in(const Request& request) const {
    return request.most_in == 0 ? std::string() : input_.trace.function(process(request), request.most_in).name;
  }

  // "4,000 requests, 2 without a begin or an end: p50 4.698 us, p90 5.1 us, p99 27.2 ms, max 53.84 ms".
  std::string summary() const {
    std::vector<std::uint64_t> durations;
    for (const Request& r : requests_)
      if (r.begun && r.ended) durations.push_back(r.duration());
    std::string text = plural(requests_.size(), "request");
    if (durations.size() < requests_.size())
      text += fmt::format(", {} without a begin or an end", count_text(requests_.size() - durations.size()));
    if (durations.size() < 2) return text;
    std::sort(durations.begin(), durations.end());
    const auto percentile = [&](std::size_t percent) {  // the nearest rank, as in report
      return time(durations[(durations.size() * percent + 99) / 100 - 1]);
    };
    text += fmt::format(": p50 {}, p90 {}, p99 {}, max {}", percentile(50), percentile(90), percentile(99),
                        time(durations.back()));
    return text;
  }

  std::vector<std::string> cells(const Request& r, bool processes) const {
    std::vector<std::string> cells;
    if (processes) cells.push_back(fmt::to_string(process(r).pid));
    cells.push_back(fmt::to_string(r.id));
    cells.push_back(duration_text(since_start(r.begin)));
    cells.push_back(fmt::format("{}{}{}", r.begun ? "" : "<", time(r.duration()), r.ended ? " " : ">"));
    cells.push_back(time(r.idle));
    cells.push_back(time(r.worked));
    if (has_states_) {
      const reader::StateTimes states = r.states.value_or(reader::StateTimes{});
      for (const std::uint64_t part : {states.running, states.runnable, states.blocked}) cells.push_back(time(part));
    }
    cells.push_back(count_text(r.threads));
    cells.push_back(count_text(r.calls));
    cells.push_back(r.most_in == 0 ? "" : fmt::format("{} {}", time(r.most_ticks), printable(plain_name(most_in(r)))));
    return cells;
  }

  const Input& input_;
  const std::vector<Request>& requests_;
  const std::size_t shown_;
  const std::uint64_t start_;
  const bool has_states_;
};

int requests(const Options& options) {
  auto input = open_input(options.input);
  if (!input) return fail(input.error());
  const reader::Trace& trace = (*input)->trace;
  if (trace.states().empty() && (options.sort == "cpu" || options.sort == "runnable" || options.sort == "blocked"))
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
  sort(found, options.sort);
  const bool text = options.format == "text";
  const RequestPrinter printer(**input, found, text || options.limit != Options().limit ? options.limit : 0);
  if (text) {
    Screen screen(options.text);
    say_partial(screen, **input);
    printer.print_text(screen);
    say_cost(screen, **input);
    return screen.finish(&trace);
  }
  return print_data(
      options.format, **input, [&](Output& output) { printer.print_json(output); },
      [&](Output& output) { printer.print_csv(output); });
}

}  // namespace

void register_requests(Command app, int& status) {
  auto options = std::make_shared<Options>();
  Command command =
      app.add_subcommand("requests", "List requests: how long each took, in which threads, and where its time went");
  command.footer(kFooter);
  add_file_option(command, options->input);
  command.add_option("-n,--limit", options->limit, "Show only the first N requests (text: 20; csv and json: all)")
      .type_name("N")
      .check(positive());
  command.add_option("-s,--sort", options->sort, "Greatest first (duration unless given); begin and request: in order")
      .check(one_of(sort_words()))
      .type_name("COLUMN");
  add_format_options(command, options->format, {"text", "csv", "json"});
  add_selection_options(command, options->input, "Count only calls of functions whose name matches");
  add_raw_option(command, options->input);
  add_text_options(command, options->text);
  command.callback([options, &status] { status = requests(*options); });
}

}  // namespace karst::cli
