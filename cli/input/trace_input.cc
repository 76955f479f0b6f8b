// SPDX-License-Identifier: MIT
#include "cli/input/trace_input.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <set>
#include <tuple>
#include <utility>

#include "analysis/kept_span.h"
#include "analysis/requests.h"
#include "analysis/tracing_cost.h"
#include "choice/function_filter.h"
#include "cli/command.h"
#include "cli/input/kept.h"
#include "cli/text/help.h"
#include "cli/text/names.h"
#include "cli/text/progress.h"
#include "cli/text/table.h"
#include "cli/text/terminal.h"
#include "cli/text/text.h"
#include "reader/moments.h"
#include "symbols/open_trace.h"

namespace karst::cli {

void add_file_option(Command command, InputOptions& options) {
  command.add_option("FILE", options.file, "The trace (default: the newest .karst file here that is yours)")
      .type_name("");
}

Result<std::string> newest_trace() {
  const char* const caller = geteuid() == 0 ? std::getenv("SUDO_UID") : nullptr;
  std::string newest;
  timespec newest_time{};
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(".", error)) {
    const std::string name = entry.path().filename().string();
    struct stat file {};
    if (!name.ends_with(".karst") || lstat(name.c_str(), &file) != 0 || !S_ISREG(file.st_mode)) continue;
    if (file.st_uid != geteuid() && (caller == nullptr || std::to_string(file.st_uid) != caller)) continue;
    const auto later = [](const timespec& a, const timespec& b) {
      return std::tie(a.tv_sec, a.tv_nsec) > std::tie(b.tv_sec, b.tv_nsec);
    };
    if (!newest.empty() && !later(file.st_mtim, newest_time)) continue;
    newest = name;
    newest_time = file.st_mtim;
  }
  if (newest.empty())
    return Error{"FILE is missing, and there is no trace of yours here: 'karst run ./PROGRAM' writes one"};
  std::fprintf(stderr, "karst: this is %s, the newest trace here\n", printable(newest).c_str());
  return newest;
}

namespace {

/// What --range, --kept and --request do to calls.
struct PartWords {
  const char* at_ends;  // behind the sentences of --range and --kept
  const char* request;
};

/// Into a group that is open.
void add_part(Command command, InputOptions& options, const PartWords& words) {
  command.add_option("-t,--thread", options.selection.thread, "Only threads of this name or thread id")
      .type_name("NAME|TID");
  command.add_option("-p,--process", options.selection.process, "Only the process with this id").type_name("PID");
  command.add_option("--not-thread", options.selection.not_thread, "Without threads of this name or thread id")
      .type_name("NAME|TID");
  command
      .add_option("--range", options.range,
                  fmt::format("Only this time since the trace's start, like 12.5ms..13ms, or before its end, like "
                              "-10ms..{}",
                              words.at_ends))
      .check(readable(parse_range))
      .type_name("BEGIN..END");
  command
      .add_option("-k,--kept", options.kept,
                  fmt::format("Only the time of kept moment N, as 'karst info' numbers them{}", words.at_ends))
      .check(positive())
      .type_name("N");
  command.add_option("--request", options.request, words.request).check(positive()).type_name("ID");
}

}  // namespace

void add_selection_options(Command command, InputOptions& options, const char* function_help) {
  in_group(command, "Which part", [&] {
    command.add_option("-f,--function", options.function, function_help)
        .type_name("REGEX")
        .each([&options](const std::string&) { options.has_function = true; });
    command
        .add_option(
            "--not-function", options.not_function,
            "Without calls of functions whose name matches, as if they were not traced: what they call is their "
            "callers'")
        .type_name("REGEX");
    add_part(command, options,
             {": calls are cut at its ends", "Only what threads did while they worked on this request"});
    command
        .add_option("--below", options.below,
                    "Only calls of functions whose name matches, and what happened within those calls")
        .type_name("REGEX");
    command
        .add_option("--min-duration", options.min_duration,
                    "Leave out calls shorter than this (10us, 1.5ms, 2s), with what they called")
        .check(readable(parse_duration))
        .type_name("TIME");
  });
}

void add_part_options(Command command, InputOptions& options) {
  in_group(command, "Which part", [&] {
    add_part(
        command, options,
        {"", "Only the time of this request, and threads that said anything of it, with all that they did meanwhile"});
  });
}

void add_raw_option(Command command, InputOptions& options) {
  command.add_flag("--raw", options.raw, "Times as they were recorded, with what tracing itself took");
}

void add_format_options(Command command, std::string& format, const std::vector<std::string>& words) {
  std::string list = words.front() + " (the default)";
  for (std::size_t i = 1; i < words.size(); ++i) list += (i + 1 < words.size() ? ", " : " or ") + words[i];
  command.add_flag(
      "-j,--json", [&format](std::int64_t) { format = "json"; }, "Print JSON; the same as --format json");
  command.add_option("--format", format, list).check(one_of(words)).type_name(fmt::format("{}", fmt::join(words, "|")));
}

bool InputOptions::has_filters() const {
  return !selection.thread.empty() || !selection.process.empty() || !selection.not_thread.empty() || kept != 0 ||
         has_function || !not_function.empty() || request || !below.empty() || !range.empty() || !min_duration.empty();
}

Result<AskedRange> parse_range(std::string_view text) {
  AskedRange range;
  std::size_t middle = text.find("..");
  const std::size_t length = middle == std::string_view::npos ? 1 : 2;
  if (length == 1) middle = text.find('-');
  if (middle == std::string_view::npos)
    return Error{fmt::format("'{}' is no range; a range looks like 12.5ms..13ms", text)};
  const std::string_view begin = text.substr(0, middle), end = text.substr(middle + length);
  for (auto [part, to] : {std::pair(begin, &range.begin), std::pair(end, &range.end)}) {
    if (part.empty()) continue;
    to->from_end = part.starts_with('-');
    if (to->from_end) part.remove_prefix(1);
    const auto ns = part == "0" ? Result<std::uint64_t>(0) : parse_duration(part);
    if (!ns) return ns.error();
    to->ns = *ns;
  }
  const auto& [from, to] = range;
  if (from.from_end == to.from_end && (to.from_end ? from.ns <= to.ns : from.ns >= to.ns))
    return Error{fmt::format("'{}' is empty: its end must come behind its begin", text)};
  return range;
}

std::vector<std::string> function_words_of(std::span<const reader::Process> processes) {
  std::set<std::string> names;
  for (const reader::Process& process : processes)
    for (const reader::Function& function : process.functions)
      if (function.id != 0) names.insert(function.name);
  return function_words(names);
}

namespace {

/// The functions whose names match. Error: none does, and one must.
Result<analysis::FunctionSet> functions_that_match(const reader::Trace& trace, const InputOptions& options,
                                                   const std::string& pattern) {
  const auto keeper = std::make_shared<choice::FunctionFilter>(std::vector{pattern});
  analysis::FunctionSet functions(trace, [keeper](std::string_view name) { return keeper->keeps(name); });
  if (!functions.empty() || options.may_have_none) return functions;
  return Error{fmt::format("no function of {} has a name that matches '{}'{}{}", options.file, pattern,
                           keeper->complaint(), did_you_mean(pattern, function_words_of(trace.processes())))};
}

std::uint64_t ticks_in(const Clock& clock, std::uint64_t ns) {
  const unsigned __int128 ticks = static_cast<unsigned __int128>(ns) * clock.ticks_per_second / 1'000'000'000U;
  constexpr std::uint64_t kMost = ~std::uint64_t{0};
  return ticks > kMost ? kMost : static_cast<std::uint64_t>(ticks);
}

/// The part of the time from `origin` on, as `options` name it, within `kept`. Error: nothing happened in it.
Result<std::optional<columns::TickRange>> time_of(const InputOptions& options, const reader::Trace& trace,
                                                  std::uint64_t origin, std::uint64_t last,
                                                  std::optional<columns::TickRange> kept) {
  if (options.range.empty()) return kept;
  const auto asked = parse_range(options.range);
  if (!asked) return asked.error();
  const auto at = [&](const AskedRange::Edge& edge) {
    const std::uint64_t ticks = ticks_in(trace.clock(), edge.ns);
    if (edge.from_end) return last - std::min(ticks, last - origin);
    return ticks > columns::TickRange{}.end - origin ? columns::TickRange{}.end : origin + ticks;
  };
  columns::TickRange range{at(asked->begin), at(asked->end)};
  const auto since = [&](std::uint64_t ticks) {
    return duration_text(trace.clock().to_ns(ticks > origin ? std::min(ticks, last) - origin : 0));
  };
  if (range.begin > last || range.begin >= range.end)
    return Error{fmt::format("nothing is in {}: {} ends {} after its start", options.range, options.file, since(last))};
  if (kept) {
    range = {std::max(range.begin, kept->begin), std::min(range.end, kept->end)};
    if (range.begin >= range.end)
      return Error{fmt::format("nothing of kept moment {} is in {}: it goes from {} to {}", options.kept, options.range,
                               since(kept->begin), since(kept->end))};
  }
  return std::optional(range);
}

}  // namespace

Result<std::unique_ptr<Input>> open_input(const InputOptions& given) {
  InputOptions options = given;
  if (options.file.empty()) {
    auto newest = newest_trace();
    if (!newest) return newest.error();
    options.file = std::move(*newest);
  }
  std::vector<reader::Problem> unnamed;
  auto trace = symbols::open_trace(options.file, {}, &unnamed);
  if (!trace) return trace.error();
  for (const reader::Problem& problem : unnamed) say(problem.message);
  std::vector<std::byte> bytes;
  const bool growing = trace->growing();
  const bool damaged = trace->problems().size() > (growing ? 1U : 0U);
  const std::uint64_t origin = analysis::first_ticks(*trace), last = analysis::last_ticks(*trace);
  std::optional<columns::TickRange> kept;
  if (options.kept != 0) {
    const auto moment = reader::find_moment(*trace, options.kept);
    if (!moment) return moment.error();
    kept = columns::TickRange{(*moment)->kept_from, (*moment)->kept_to};
    auto cut = cut_to_moment(std::move(*trace), options.kept, bytes);
    if (!cut) return cut.error();
    const symbols::ResolveOptions names;
    symbols::name_functions(*cut, names.with(sandbox::Credentials::of_file(options.file)), nullptr);
    trace = std::move(*cut);
  }
  auto input = std::make_unique<Input>(Input{std::move(bytes), std::move(*trace), {}, {}, {}, {}, 0, {}, options.raw});
  const auto range = time_of(options, input->trace, origin, last, kept);
  if (!range) return range.error();
  input->filter.range = *range;
  if (growing)
    std::fprintf(stderr, "karst: the recording of %s goes on, or was ended by force; this shows what it had so far\n",
                 printable(options.file).c_str());
  if (damaged) {
    std::fprintf(stderr,
                 "karst: %s is damaged or incomplete; this shows what could be read ('karst info' tells more)\n",
                 printable(options.file).c_str());
  }
  auto threads = analysis::select_threads(input->trace, options.selection);
  const analysis::Selection& chosen = options.selection;
  input->has_all_threads = chosen.thread.empty() && chosen.process.empty() && chosen.not_thread.empty();
  if (!threads) return threads.error();
  input->threads = std::move(*threads);
  if (options.request && std::none_of(input->threads.begin(), input->threads.end(), [&](const reader::Thread* thread) {
        return analysis::worked_on(input->trace, *thread, *options.request);
      }))
    return Error{fmt::format("no thread said that it works on request {}: 'karst requests {}' lists those of {}",
                             *options.request, options.file, input->trace.name())};
  for (const reader::Thread* thread : input->threads) {
    for (const reader::StoredBlock& block : input->trace.blocks(*thread)) input->events += block.size();
  }
  if (options.has_function) {
    auto functions = functions_that_match(input->trace, options, options.function);
    if (!functions) return functions.error();
    input->functions = std::move(*functions);
  }
  if (!options.below.empty()) {
    auto functions = functions_that_match(input->trace, options, options.below);
    if (!functions) return functions.error();
    input->below = std::move(*functions);
    input->filter.below = &*input->below;
  }
  if (!options.not_function.empty()) {
    auto functions = functions_that_match(input->trace, options, options.not_function);
    if (!functions) return functions.error();
    input->without = std::move(*functions);
    input->filter.without = &*input->without;
  }
  input->filter.request = options.request;
  if (!options.min_duration.empty()) {
    const auto ns = parse_duration(options.min_duration);
    if (!ns) return ns.error();
    input->filter.min_ticks = input->ticks_of(*ns);
  }
  return input;
}

std::uint64_t Input::ticks_of(std::uint64_t ns) const { return ticks_in(trace.clock(), ns); }

void Input::choose(const reader::Thread& thread, reader::Calls& calls, CallParts* parts) const {
  analysis::CallFilter rest = filter;
  if (parts != nullptr) {
    parts->latest = parts->of(thread, calls);
    analysis::cut_at_requests(calls, parts->latest);
  }
  if (rest.request) analysis::cut_to_request(calls, *std::exchange(rest.request, std::nullopt));
  if (!raw) analysis::take_cost_out(calls, cost.value_or(trace.processes()[thread.process].cost), filter.range);
  analysis::filter_calls(calls, thread.process, rest);
}

reader::Calls Input::calls_of(const reader::Thread& thread, reader::Calls used, CallParts* parts) const {
  reader::Calls calls = reader::rebuild_calls(trace, thread, std::move(used));
  choose(thread, calls, parts);
  return calls;
}

void Input::each_thread(const char* what, const std::function<void(const reader::Thread&, const reader::Calls&)>& use,
                        CallParts* parts) const {
  Progress progress(what, events);
  reader::Calls calls;
  for (const reader::Thread* thread : threads) {
    calls = calls_of(*thread, std::move(calls), parts);
    use(*thread, calls);
    progress.done += calls.events;
  }
}

void Input::each_piece(const char* what,
                       const std::function<void(const reader::Thread&, const reader::Piece&)>& use) const {
  if (!filter.passes_all()) {
    each_thread(what, [&](const reader::Thread& thread, const reader::Calls& calls) {
      use(thread, reader::whole_piece(calls));
      use(thread, reader::last_piece(calls));
    });
    return;
  }
  Progress progress(what, events);
  reader::PieceOptions options;
  options.done = &progress.done;
  reader::Calls used;
  for (const reader::Thread* thread : threads) {
    analysis::CostOfPieces taken(raw ? reader::CallCost{} : cost.value_or(trace.processes()[thread->process].cost));
    const auto take = [&](const reader::Piece& piece, reader::Calls& calls) {
      taken.take_out(piece, calls);
      use(*thread, piece);
    };
    used = reader::each_piece(trace, *thread, options, take, std::move(used));
  }
}

const reader::Calls& CallsCache::of(const reader::Thread& thread) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 28;
  constexpr std::uint64_t kCallBytes = 31;  // of the columns
  if (latest_thread_ == &thread) return latest_;
  if (const auto at = kept_.find(&thread); at != kept_.end()) return at->second;
  reader::Calls calls = input_.calls_of(thread, std::move(latest_));
  latest_thread_ = nullptr;
  const std::uint64_t bytes = calls.size() * kCallBytes + calls.note_bytes.size() +
                              calls.notes.size() * sizeof(reader::Note) + sizeof(reader::Calls);
  if (bytes_ + bytes <= kMost) {
    bytes_ += bytes;
    const auto shrink = [](auto&... columns) { (columns.shrink_to_fit(), ...); };  // the memory may be a larger one's
    shrink(calls.function, calls.begin, calls.duration, calls.parent, calls.depth, calls.marks, calls.taken);
    return kept_.emplace(&thread, std::move(calls)).first->second;
  }
  latest_ = std::move(calls);
  latest_thread_ = &thread;
  return latest_;
}

void CallsCache::clear() {
  kept_.clear();
  bytes_ = 0;
  latest_ = {};
  latest_thread_ = nullptr;
}

CostRange call_cost_of(const Input& input) {
  CostRange cost;
  for (const reader::Thread* thread : input.threads) {
    const reader::CallCost of = input.cost.value_or(input.trace.processes()[thread->process].cost);
    const double ns = analysis::call_cost_ns(of, input.trace.clock());
    if (ns == 0) continue;
    cost.off_by = std::max(cost.off_by, analysis::call_cost_off_by_ns(of, input.trace.clock()));
    cost.least = cost.least == 0 ? ns : std::min(cost.least, ns);
    cost.most = std::max(cost.most, ns);
  }
  return cost;
}

void take_one_cost(const std::vector<Input*>& inputs) {
  std::vector<const reader::Trace*> traces(inputs.size());
  std::transform(inputs.begin(), inputs.end(), traces.begin(), [](const Input* input) { return &input->trace; });
  const auto cost = analysis::cost_to_compare(traces);
  for (Input* input : inputs) {
    input->cost = cost;
    input->raw = input->raw || (cost && cost->call == 0);
  }
}

std::string cost_text(const Input& input) {
  const auto [least, most, off_by] = call_cost_of(input);
  if (most == 0) return {};
  const std::string cost =
      most < least + 0.5 ? fmt::format("{:.0f} ns", most) : fmt::format("{:.0f} to {:.0f} ns", least, most);
  if (input.raw) return fmt::format("(as recorded: tracing's own {} a call are in these times)", cost);
  const std::string uncertainty = off_by == 0 ? "" : fmt::format(" that may be off by {:.0f} ns", off_by);
  return fmt::format("(without tracing's own {} a call, an estimate{}; --raw: with it)", cost, uncertainty);
}

void say_cost(Screen& screen, const Input& input) {
  const std::string line = cost_text(input);
  if (line.empty()) return;
  screen.output().append(screen.paint(Style::kFaint, shorten(line, screen.width(), Shorten::kEnd)) + "\n");
}

namespace {

/// Empty: nothing of what is asked for was overwritten.
std::string partial_text(const Input& input) {
  const auto span = analysis::kept_span(input.trace, input.threads, input.filter.range);
  if (!span) return {};
  const auto time = [&](std::uint64_t ticks) { return duration_text(input.trace.clock().to_ns(ticks)); };
  const bool alike = span->most - span->least <= span->most / 10;
  return fmt::format(
      "{}: only the last {} of {} are here{}; older calls were overwritten (karst run --memory keeps more, --slowest "
      "and --over keep what is slow)",
      printable(input.trace.name()), time(span->most), time(span->whole),
      alike ? "" : fmt::format(", of some threads only {}", time(span->least)));
}

}  // namespace

void say_partial(Screen& screen, const Input& input) {
  const std::string text = partial_text(input);
  if (text.empty()) return;
  screen.output().append(screen.paint(Style::kWarning, wrap(text, screen.width(), 2)) + "\n");
}

void warn_partial(const Input& input) {
  const std::string text = partial_text(input);
  if (!text.empty()) std::fprintf(stderr, "karst: %s\n", text.c_str());
}

Error nothing_passes(const Input& input) {
  return {"no call of " + input.trace.name() + " passes all filters" +
          (input.functions ? ", or none of these functions was called" : "")};
}

int finish_output(Output& output) {
  const Status status = output.finish();
  if (status) return kExitOk;
  return output.closed_pipe() ? kExitFailed : fail(status.error());
}

int finish_output(Output& output, const reader::Trace& read) {
  const Status status = read.unchanged();
  return status ? finish_output(output) : fail(status.error());
}

int print_data(const std::string& format, const Input& read, const std::function<void(Output&)>& json,
               const std::function<void(Output&)>& csv) {
  warn_partial(read);
  Output output = Output::to_stdout();
  (format == "json" ? json : csv)(output);
  return finish_output(output, read.trace);
}

}  // namespace karst::cli
