// karst explain: why one call took longer than its siblings.
#include "analysis/explain.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/outliers.h"
#include "base/json.h"
#include "base/output.h"
#include "cli/command.h"
#include "cli/explain_page.h"
#include "cli/names.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "cli/text.h"
#include "cli/trace_input.h"
#include "query/selection.h"
#include "reader/trace.h"

namespace karst::cli {
namespace {

using analysis::Cause;
using analysis::CauseKind;
using analysis::Explanation;

struct Options {
  InputOptions input;
  std::string call;
  std::string slowest;
  std::string format = "text";
  TextOptions text;
};

constexpr const char* kFooter = R"(Which call: the one that 'karst slow' lists first, of --function's if given;
--slowest REGEX: the slowest of those functions' calls; --call TID@TIME: the
outermost one that begins then in that thread, as the last line names it.

It is compared with typical calls of its function: those whose durations are
next to the median. Each line is one difference, with its share of the excess:

   share   excess  where and what
   98.2%  20.3 ms  Cache::lookup: blocked in futex, woken by 812 server
    1.1%  220 us   parse: computing
    0.7%  140 us   the rest

  computing   longer on a CPU in the function's own code; 'own time' where the
              trace has no thread states (karst run --sched)
  blocked     waited longer; 'without a CPU' was ready to run, and had none
  N more calls  than its callers' number explains, at what such a call usually
              takes
  in no typical call   with all it called

Fewer calls and missing ones have shares below 0. Causes under 1% are in the
rest. A call stands out if its excess is eight times what its siblings usually
differ, and a tenth of the median at least. Page faults are not told apart.
json gives all times in whole nanoseconds; html is a page of one file.)";

/// A call and the id of its function.
struct Chosen {
  analysis::CallRef call;
  std::uint32_t function = 0;
};

class Explain {
 public:
  /// What is usual is learnt from short calls, too; so --min-duration is about the call that is chosen.
  Explain(Input& input, const Options& options)
      : input_(input), calls_(input), options_(options), min_ticks_(std::exchange(input.filter.min_ticks, 0)) {}

  /// The call that was asked for; Error: there is none, or its time is not known.
  Result<Chosen> choose() {
    if (!options_.call.empty()) return call_at();
    if (options_.slowest.empty()) {
      if (auto outlier = worst()) return *outlier;
    }
    if (auto slowest = slowest_of()) return *slowest;
    return Error{fmt::format("{} has no complete call to explain{}", trace().name(),
                             options_.input.has_filters() ? " that passes the filter" : "")};
  }

  void explain(const Chosen& chosen) {
    chosen_ = chosen;
    if (input_.filter.request) look_at_all_requests();
    explainer_ = std::make_unique<analysis::Explainer>(trace(), chosen_.call, chosen_.function);
    if (!trace().states().empty()) waits_ = std::make_unique<analysis::Waits>(trace(), 0);
    each_thread(
        [&](const reader::Thread& thread, const query::CallColumns& calls) { explainer_->learn(thread, calls); });
    each_thread([&](const reader::Thread& thread, const query::CallColumns& calls) {
      explainer_->compare(thread, calls, waits_.get());
    });
    of_ = explainer_->take();
  }

  /// For people; call once explain() has been.
  ExplainAnswer answer() {
    ExplainAnswer answer;
    const std::string name = function_name(*chosen_.call.thread, chosen_.function);
    if (of_.siblings == 0) {
      answer.head = fmt::format("{} took {}; it is the only complete call, so nothing says what is usual", name,
                                time(static_cast<double>(of_.duration)));
    } else if (!of_.stands_out) {
      answer.head = fmt::format("nothing stands out: {} took {}; usual are {} (median of {}), and calls differ as much",
                                name, time(static_cast<double>(of_.duration)), time(static_cast<double>(of_.usual)),
                                plural(of_.siblings, "other call"));
    } else {
      say_difference(name, answer);
    }
    const reader::Thread& thread = *chosen_.call.thread;
    answer.call = fmt::format("call {} in thread {} {}{}", id(), thread.tid, printable(thread.name),
                              of_.first && of_.siblings != 0 ? "; the first call of its function" : "");
    return answer;
  }

  void print_json(Output& output) {
    Json json;
    const reader::Thread& thread = *chosen_.call.thread;
    json.open('{').field("trace", trace().name()).field("call", id());
    json.field("function", trace().function(process(thread), chosen_.function).name);
    json.field("pid", process(thread).pid).field("tid", thread.tid).field("thread", thread.name);
    json.field("begin_ns", since_start()).field("duration_ns", ns(of_.duration)).field("siblings", of_.siblings);
    json.field("typical", of_.typical).field("usual_ns", ns(of_.usual)).field("first", of_.first);
    json.field("stands_out", of_.stands_out).field("excess_ns", signed_ns(of_.excess())).key("causes").open('[');
    for (const Cause& cause : of_.causes) {
      json.line().open('{').field("kind", kind_name(cause.kind)).list("path", cause.path, [&](std::uint32_t number) {
        return explainer_->functions().functions()[number].name;
      });
      json.field("excess_ns", signed_ns(cause.ticks)).field("share", share(cause.ticks));
      json.field("calls", cause.calls).field("usual_calls", cause.usual_calls);
      if (cause.wait) {
        json.field("wait", words(*cause.wait)).field("wait_ns", ns(cause.wait->length()));
        const auto links = chain(*cause.wait);
        json.key("chain").open('[');
        for (const analysis::ChainLink& link : links) {
          json.open('{').field("tid", link.thread->tid).field("thread", link.thread->name);
          json.list("path", link.functions,
                    [&](std::uint32_t of) { return trace().function(process(*link.thread), of).name; });
          json.close('}');
        }
        json.close(']');
      }
      json.close('}').flush(output);
    }
    json.close(']').field("rest_ns", signed_ns(of_.rest)).field("rest_share", share(of_.rest)).close('}').flush(output);
    output.append("\n");
  }

 private:
  const reader::Trace& trace() const { return input_.trace; }
  const reader::Process& process(const reader::Thread& thread) const { return trace().processes()[thread.process]; }
  std::uint64_t ns(std::uint64_t ticks) const { return trace().clock().to_ns(ticks); }
  std::int64_t signed_ns(double ticks) const {
    const auto size = static_cast<std::int64_t>(ns(static_cast<std::uint64_t>(std::llround(std::abs(ticks)))));
    return ticks < 0 ? -size : size;
  }
  std::string time(double ticks) const {
    const std::int64_t of = signed_ns(ticks);
    return (of < 0 ? "-" : "") + duration_text(static_cast<std::uint64_t>(std::abs(of)));
  }
  double share(double ticks) const { return of_.excess() == 0 ? 0 : ticks / of_.excess(); }
  std::uint64_t since_start() const {
    const std::uint64_t start = analysis::first_ticks(trace());
    return chosen_.call.begin > start ? ns(chosen_.call.begin - start) : 0;
  }
  std::string id() const { return fmt::format("{}@{}ns", chosen_.call.thread->tid, since_start()); }
  std::string function_name(const reader::Thread& thread, std::uint32_t id) const {
    return printable(plain_name(trace().function(process(thread), id).name));
  }
  std::string words(const analysis::Wait& wait) const {
    return printable(analysis::describe(
        wait, trace().states(),
        [this](const reader::Thread& of, std::uint32_t id) {
          return plain_name(trace().function(process(of), id).name);
        },
        [this](std::uint64_t ticks) { return duration_text(ns(ticks)); }));
  }
  std::vector<analysis::ChainLink> chain(const analysis::Wait& wait) {
    if (waits_ == nullptr) return {};
    return analysis::follow_wakers(*waits_, wait, [this](const reader::Thread& of) -> const reader::Calls& {
      others_ = reader::rebuild_calls(trace(), of, std::move(others_));
      return others_;
    });
  }

  template <typename Use>
  void each_thread(Use&& use) {
    for (const reader::Thread* thread : input_.threads) {
      use(*thread, query::CallColumns(calls_.of(*thread)));
    }
  }

  // A call of one request is compared with those of all. Whole calls are the same there, in other rows.
  void look_at_all_requests() {
    input_.filter.request.reset();
    calls_.clear();
    const reader::Calls& calls = calls_.of(*chosen_.call.thread);
    for (std::uint32_t row = 0; row < calls.size(); ++row)
      if (calls.begin[row] == chosen_.call.begin && calls.begin[row] + calls.duration[row] == chosen_.call.end &&
          calls.function[row] == chosen_.function)
        chosen_.call.row = row;
  }

  bool is_asked_for(const reader::Thread& thread, std::uint32_t function) const {
    return !input_.functions || input_.functions->contains(thread.process, function);
  }

  std::optional<Chosen> worst() {
    analysis::OutlierFinder finder(trace(), input_.function_set(), min_ticks_, 1);
    const auto request = std::exchange(input_.filter.request, std::nullopt);
    each_thread([&](const reader::Thread& thread, const query::CallColumns& calls) { finder.learn(thread, calls); });
    input_.filter.request = request;
    if (request) calls_.clear();
    each_thread([&](const reader::Thread& thread, const query::CallColumns& calls) { finder.find(thread, calls); });
    const auto found = finder.take();
    if (found.empty()) return {};
    return Chosen{found[0].call, found[0].function};
  }

  std::optional<Chosen> slowest_of() {
    std::optional<Chosen> best;
    each_thread([&](const reader::Thread& thread, const query::CallColumns& calls) {
      for (std::uint32_t row = 0; row < calls.size(); ++row) {
        const std::uint64_t time = calls.time(row);
        if (time < min_ticks_ || (best && time <= best->call.duration)) continue;
        if (!query::is_complete(calls.marks[row]) || !is_asked_for(thread, calls.function[row])) continue;
        bool nested = false;
        for (std::uint32_t up = calls.parent[row]; up != reader::kNoParent && !nested; up = calls.parent[up])
          nested = calls.function[up] == calls.function[row];
        if (!nested) best = Chosen{{&thread, row, time, calls.begin[row], calls.end(row)}, calls.function[row]};
      }
    });
    return best;
  }

  Result<Chosen> call_at() {
    const std::size_t at = options_.call.find('@');
    std::uint32_t tid = 0;
    const auto [end, error] =
        std::from_chars(options_.call.data(), options_.call.data() + std::min(at, options_.call.size()), tid);
    const auto begin =
        at == std::string::npos ? Result<std::uint64_t>(Error{}) : parse_duration(options_.call.substr(at + 1));
    if (error != std::errc() || at == std::string::npos || end != options_.call.data() + at || !begin)
      return Error{fmt::format("'{}' names no call: 'karst explain' prints names like 4505@54731245ns", options_.call)};
    const std::uint64_t start = analysis::first_ticks(trace());
    std::optional<Chosen> found;
    bool open = false;
    each_thread([&](const reader::Thread& thread, const query::CallColumns& calls) {
      for (std::uint32_t row = 0; row < calls.size() && thread.tid == tid && !found; ++row) {
        const std::uint64_t since = calls.begin[row] > start ? ns(calls.begin[row] - start) : 0;
        if (since > *begin) break;
        if (since != *begin || calls.time(row) < min_ticks_ || !is_asked_for(thread, calls.function[row])) continue;
        if (query::is_complete(calls.marks[row]))
          found = Chosen{{&thread, row, calls.time(row), calls.begin[row], calls.end(row)}, calls.function[row]};
        else
          open = true;
      }
    });
    if (found) return *found;
    if (open)
      return Error{fmt::format("the end or begin of call {} is not known, so its duration is not", options_.call)};
    return Error{fmt::format("{} has no call that begins at {}{}", trace().name(), options_.call,
                             options_.input.has_filters() ? " and passes the filter" : "")};
  }

  static const char* kind_name(CauseKind kind) {
    switch (kind) {
      case CauseKind::kOwnTime:
        return "own time";
      case CauseKind::kComputing:
        return "computing";
      case CauseKind::kWaiting:
        return "blocked";
      case CauseKind::kRunnable:
        return "without a CPU";
      case CauseKind::kUnknown:
        return "not known";
      case CauseKind::kMoreCalls:
        return "more calls";
      case CauseKind::kFewerCalls:
        return "fewer calls";
      case CauseKind::kNew:
        return "new";
      case CauseKind::kMissing:
        return "missing";
    }
    return "";
  }

  std::string place(const Cause& cause) const {
    std::string text;
    for (const std::uint32_t number : cause.path)
      text += (text.empty() ? "" : " > ") + printable(plain_name(explainer_->functions().functions()[number].name));
    return text.empty() ? std::string("its own code") : text;
  }

  // What was different, without where.
  std::string what(const Cause& cause) {
    const auto more = std::abs(static_cast<double>(cause.calls) - cause.usual_calls);
    std::string text;
    switch (cause.kind) {
      case CauseKind::kOwnTime:
        return "own time";
      case CauseKind::kComputing:
        return "computing";
      case CauseKind::kUnknown:
        return "in states that were not recorded";
      case CauseKind::kMoreCalls:
        return fmt::format("{:.4g} more calls ({} instead of {:.4g})", more, count_text(cause.calls),
                           cause.usual_calls);
      case CauseKind::kFewerCalls:
        return fmt::format("{:.4g} fewer calls ({} instead of {:.4g})", more, count_text(cause.calls),
                           cause.usual_calls);
      case CauseKind::kMissing:
        return "not called, as typical calls do";
      case CauseKind::kNew:
        text = fmt::format("{}, in no typical call", plural(cause.calls, "call"));
        return cause.wait ? text + "; " + words(*cause.wait) : text;
      case CauseKind::kWaiting:
        return cause.wait ? words(*cause.wait) : "blocked";
      case CauseKind::kRunnable:
        return cause.wait ? words(*cause.wait) : "runnable, without a CPU";
    }
    return text;
  }

  // The first line names the first cause, and behind a wait who was waited for.
  void say_difference(const std::string& name, ExplainAnswer& answer) {
    answer.head = fmt::format("{} took {} instead of {}", name, time(static_cast<double>(of_.duration)),
                              time(static_cast<double>(of_.usual)));
    std::vector<std::string> meanwhile;
    if (!of_.causes.empty()) {
      const Cause& first = of_.causes[0];
      answer.head += fmt::format(": {:.1f}% of the excess in {}, ", 100 * share(first.ticks), place(first));
      const auto links = first.wait ? chain(*first.wait) : std::vector<analysis::ChainLink>();
      for (const analysis::ChainLink& link : links) meanwhile.push_back(link_words(link));
      // Who was waited for in the end says more than who woke the thread.
      const bool known = !links.empty() && !links.back().functions.empty();
      answer.head += known ? "waiting for " + who(links.back(), true) : what(first);
    }
    answer.usual =
        fmt::format("usual: the median of {}; compared with {} next to it{}", plural(of_.siblings, "other call"),
                    count_text(of_.typical), of_.siblings < 10 ? ", which are few to tell what is usual" : "");
    double shown = 0;
    for (std::size_t i = 0; i < of_.causes.size() && i < kMostShown; ++i) {
      const Cause& cause = of_.causes[i];
      // Shares as they are printed, so that the lines add up.
      const double percent = std::round(1000 * share(cause.ticks)) / 10;
      shown += percent;
      answer.rows.push_back({percent, time(cause.ticks), place(cause) + ": " + what(cause)});
      if (i == 0) answer.rows.back().more = meanwhile;
    }
    double rest = of_.rest;
    for (std::size_t i = kMostShown; i < of_.causes.size(); ++i) rest += of_.causes[i].ticks;
    const double percent = std::round(10 * (100 - shown)) / 10 + 0.0;  // no "-0.0"
    answer.rows.push_back({percent, time(rest), "the rest"});
  }

  // "812 server in Cache::lookup > Disk::flush"; `innermost`: the last function alone.
  std::string who(const analysis::ChainLink& link, bool innermost = false) const {
    std::string path;
    for (const std::uint32_t of : link.functions) {
      if (innermost) path.clear();
      path += (path.empty() ? "" : " > ") + function_name(*link.thread, of);
    }
    const std::string thread = fmt::format("{} {}", link.thread->tid, printable(link.thread->name));
    return path.empty() ? thread : thread + " in " + path;
  }
  std::string link_words(const analysis::ChainLink& link) const {
    const std::string text = "meanwhile " + who(link);
    return link.waited ? fmt::format("{}: {} {}", text, duration_text(ns(link.wait.length())), words(link.wait)) : text;
  }

  static constexpr std::size_t kMostShown = 8;
  Input& input_;
  CallsCache calls_;
  const Options& options_;
  const std::uint64_t min_ticks_;
  Chosen chosen_;
  std::unique_ptr<analysis::Explainer> explainer_;
  std::unique_ptr<analysis::Waits> waits_;
  Explanation of_;
  reader::Calls others_;
};

void print_text(const ExplainAnswer& answer, Screen& screen) {
  constexpr std::size_t kBeforeText = 21;  // columns of share and excess
  Output& output = screen.output();
  const std::size_t width = screen.width();
  const bool differs = !answer.rows.empty();
  output.append(wrap(answer.head, width, differs ? 2 : 0) + "\n");
  if (differs) {
    output.append(wrap(answer.usual, width, 2) + "\n");
    output.append(fmt::format("{:>8} {:>10}  where and what\n", "share", "excess"));
  }
  for (const ExplainAnswer::Row& row : answer.rows) {
    const std::string begin = fmt::format("{:>7.1f}% {:>10}  ", row.percent, row.excess);
    output.append(begin + wrap(row.text, width, begin.size()) + "\n");
    for (const std::string& text : row.more)
      output.append(std::string(kBeforeText, ' ') + wrap(text, width, kBeforeText + 2) + "\n");
  }
  output.append(wrap(answer.call, width, 0) + "\n");
}

int explain(Options options) {
  if (!options.slowest.empty()) {
    if (options.input.has_function || !options.call.empty())
      return usage_error("--slowest does not go with --function or --call: each says which call", "explain");
    options.input.function = options.slowest;
    options.input.has_function = true;
  }
  auto input = open_input(options.input);
  if (!input) return fail(input.error());
  Explain explain(**input, options);
  const auto chosen = explain.choose();
  if (!chosen) return fail(chosen.error());
  explain.explain(*chosen);
  if (options.format != "text") {
    Output output = Output::to_stdout();
    if (options.format == "json") {
      explain.print_json(output);
    } else {
      ExplainAnswer answer = explain.answer();
      answer.cost = cost_text(**input);
      print_explain_page(answer, (*input)->trace.name(), output);
    }
    return finish_output(output, (*input)->trace);
  }
  Screen screen(options.text);
  print_text(explain.answer(), screen);
  say_cost(screen, **input);
  return screen.finish(&(*input)->trace);
}

}  // namespace

void register_explain(Command app, int& status) {
  auto options = std::make_shared<Options>();
  Command command = app.add_subcommand("explain", "Say why a call took longer than others of its function");
  command.footer(kFooter);
  add_newest_file_option(command, options->input);
  command.add_option("--slowest", options->slowest, "Explain the slowest call of functions whose name matches")
      .type_name("REGEX");
  command.add_option("--call", options->call, "Explain the call that begins then in that thread").type_name("TID@TIME");
  add_format_options(command, options->format, {"text", "json", "html"});
  add_selection_options(command, options->input, "Explain a call of functions whose name matches");
  add_raw_option(command, options->input);
  add_text_options(command, options->text);
  command.callback([options, &status] { status = explain(*options); });
}

}  // namespace karst::cli
