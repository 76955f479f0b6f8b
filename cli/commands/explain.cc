// SPDX-License-Identifier: MIT
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

#include "analysis/locks.h"
#include "analysis/outliers.h"
#include "answers/data.h"
#include "answers/explanation.h"
#include "base/json.h"
#include "base/output.h"
#include "base/plain_name.h"
#include "cli/command.h"
#include "cli/commands/explain_page.h"
#include "cli/input/trace_input.h"
#include "cli/text/call_name.h"
#include "cli/text/progress.h"
#include "cli/text/table.h"
#include "cli/text/terminal.h"
#include "cli/text/text.h"
#include "columns/selection.h"
#include "reader/trace.h"
#include "words/explanation.h"

namespace karst::cli {
namespace {

using analysis::Cause;
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
A noted value (karst run --args, --returns) that typical calls do not have is a
line below, as a hint; it has no share of the excess.
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
      : input_(input),
        calls_(input),
        options_(options),
        min_ticks_(std::exchange(input.filter.min_ticks, 0)),
        lock_names_(input.trace) {}

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
        [&](const reader::Thread& thread, const columns::CallColumns& calls) { explainer_->learn(thread, calls); });
    for (const reader::Thread* thread : input_.threads) {
      const reader::Calls& calls = calls_.of(*thread);
      const analysis::CallValues noted(calls);
      values_.look_at(trace(), *thread, &noted);
      explainer_->compare(*thread, columns::CallColumns(calls), waits_.get(), &values_);
    }
    // What others did meanwhile is told whatever the filter leaves of it.
    const auto calls_of = [this](const reader::Thread& of) {
      others_ = reader::rebuild_calls(trace(), of);
      return columns::CallColumns(others_);
    };
    explained_ = std::make_unique<words::ExplainedCall>(
        words::ExplainedCall::About{trace(), chosen_.call, chosen_.function, analysis::first_ticks(trace()),
                                    waits_.get(), calls_of},
        *explainer_, explainer_->take());
    find_lock(calls_of);
  }

  /// For people; call once explain() has been.
  ExplainAnswer answer() {
    ExplainAnswer answer;
    const Explanation& of = explained_->explanation();
    answer.head = explained_->headline();
    if (of.siblings != 0 && of.stands_out) say_difference(answer);
    if (lock_) answer.values.insert(answer.values.begin(), lock_words());
    const reader::Thread& thread = *chosen_.call.thread;
    answer.call = fmt::format("call {} in thread {} {}{}", explained_->id(), thread.tid, printable(thread.name),
                              of.first && of.siblings != 0 ? "; the first call of its function" : "");
    return answer;
  }

  void print_json(Output& output) {
    const answers::Explained explained(*explained_);
    const answers::LockContext locks{trace(), lock_names_, analysis::has_holds(trace()), answers::Times(trace())};
    std::optional<answers::LockWaitRow> lock;
    if (lock_) lock.emplace(answers::LockWaitRow{locks, *lock_});
    const answers::ExplanationRow row{explained, lock ? &*lock : nullptr};
    Json json;
    json.open('{').field("trace", trace().name());
    answers::write_fields(json, trace(), answers::explanations(), &row);
    json.close('}').flush(output);
    output.append("\n");
  }

 private:
  const reader::Trace& trace() const { return input_.trace; }
  std::uint64_t ns(std::uint64_t ticks) const { return trace().clock().to_ns(ticks); }

  const reader::Process& process() const { return trace().processes()[chosen_.call.thread->process]; }

  /// The longest wait for a lock that the call was inside of, or that lies in it, if it is a tenth of the call.
  void find_lock(const analysis::CallsOf& calls_of) {
    constexpr std::uint64_t kTenth = 10;
    const reader::Thread& thread = *chosen_.call.thread;
    std::vector<analysis::LockWait> waits = analysis::lock_waits(trace(), thread, calls_.of(thread), nullptr);
    std::erase_if(waits, [&](const analysis::LockWait& wait) {
      return wait.open || wait.begin < chosen_.call.begin || wait.begin + wait.duration > chosen_.call.end ||
             wait.duration < chosen_.call.duration / kTenth ||
             !analysis::has_holder(analysis::lock_kind(trace(), thread.process, wait.zone));
    });
    const auto longest = std::max_element(waits.begin(), waits.end(),
                                          [](const auto& a, const auto& b) { return a.duration < b.duration; });
    if (longest == waits.end()) return;
    std::vector<analysis::LockWait> one = {*longest};
    analysis::find_holders(trace(), one, calls_of);
    lock_ = one.front();
  }

  std::string_view lock_kind() const { return analysis::lock_kind(trace(), chosen_.call.thread->process, lock_->zone); }

  std::string held_in() const {
    const std::uint32_t function = lock_->held_in.thread != nullptr ? lock_->held_in.function : 0;
    return function == 0 ? std::string() : printable(plain_name(trace().function(process(), function).name));
  }

  /// "29.83 ms of it were a wait for mutex cache (0x4040), which 6576 worker had while it was in Cache::put"
  std::string lock_words() const {
    const std::string_view name = lock_names_.of(process().index, lock_->lock);
    const std::string lock =
        name.empty() ? fmt::format("{:#x}", lock_->lock) : fmt::format("{} ({:#x})", printable(name), lock_->lock);
    std::string words =
        fmt::format("{} of it were a wait for {} {}", duration_text(ns(lock_->duration)), lock_kind(), lock);
    if (lock_->holder == 0) return words + "; who had it is not known";
    words += fmt::format(", which {}", lock_->holder);
    if (lock_->held_in.thread != nullptr) words += " " + printable(lock_->held_in.thread->name);
    words += " had";
    return held_in().empty() ? words : words + " while it was in " + held_in();
  }

  template <typename Use>
  void each_thread(Use&& use) {
    for (const reader::Thread* thread : input_.threads) {
      use(*thread, columns::CallColumns(calls_.of(*thread)));
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
    each_thread([&](const reader::Thread& thread, const columns::CallColumns& calls) { finder.learn(thread, calls); });
    input_.filter.request = request;
    if (request) calls_.clear();
    each_thread([&](const reader::Thread& thread, const columns::CallColumns& calls) { finder.find(thread, calls); });
    const auto found = finder.take();
    if (found.empty()) return {};
    return Chosen{found[0].call, found[0].function};
  }

  std::optional<Chosen> slowest_of() {
    std::optional<Chosen> best;
    each_thread([&](const reader::Thread& thread, const columns::CallColumns& calls) {
      for (std::uint32_t row = 0; row < calls.size(); ++row) {
        const std::uint64_t time = calls.time(row);
        if (time < min_ticks_ || (best && time <= best->call.duration)) continue;
        if (!columns::is_complete(calls.marks[row]) || !is_asked_for(thread, calls.function[row])) continue;
        bool nested = false;
        for (std::uint32_t up = calls.parent[row]; up != reader::kNoParent && !nested; up = calls.parent[up])
          nested = calls.function[up] == calls.function[row];
        if (!nested) best = Chosen{{&thread, row, time, calls.begin[row], calls.end(row)}, calls.function[row]};
      }
    });
    return best;
  }

  Result<Chosen> call_at() {
    const auto name = parse_call_name(options_.call);
    if (!name) return name.error();
    const std::uint64_t start = analysis::first_ticks(trace());
    std::optional<Chosen> found;
    bool open = false;
    each_thread([&](const reader::Thread& thread, const columns::CallColumns& calls) {
      for (std::uint32_t row = 0; row < calls.size() && thread.tid == name->tid && !found; ++row) {
        const std::uint64_t since = calls.begin[row] > start ? ns(calls.begin[row] - start) : 0;
        if (since > name->begin_ns) break;
        if (since != name->begin_ns || calls.time(row) < min_ticks_ || !is_asked_for(thread, calls.function[row]))
          continue;
        if (columns::is_complete(calls.marks[row]))
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

  void say_difference(ExplainAnswer& answer) {
    const Explanation& of = explained_->explanation();
    answer.usual = explained_->comparison();
    for (const analysis::ValueHint& hint : of.values) answer.values.push_back(explained_->words(hint));
    double shown = 0;
    double rest = of.rest;
    for (std::size_t i = 0; i < of.causes.size(); ++i) {
      const Cause& cause = of.causes[i];
      if (i >= kMostShown) {
        rest += cause.ticks;
        continue;
      }
      // Shares as they are printed, so that the lines add up.
      const double percent = std::round(1000 * explained_->share(cause.ticks)) / 10;
      shown += percent;
      answer.rows.push_back(
          {percent, explained_->time(cause.ticks), explained_->place(cause) + ": " + explained_->what(cause)});
      if (i == 0)
        for (const words::ToldLink& link : explained_->chain(0)) answer.rows.back().more.push_back(link.words);
      for (const analysis::ValueHint& hint : cause.values) answer.rows.back().more.push_back(explained_->words(hint));
    }
    const double percent = std::round(10 * (100 - shown)) / 10 + 0.0;  // no "-0.0"
    answer.rows.push_back({percent, explained_->time(rest), "the rest"});
  }

  static constexpr std::size_t kMostShown = 8;
  Input& input_;
  CallsCache calls_;
  const Options& options_;
  const std::uint64_t min_ticks_;
  Chosen chosen_;
  analysis::ValueSamples values_;
  std::unique_ptr<analysis::Explainer> explainer_;
  std::unique_ptr<analysis::Waits> waits_;
  std::unique_ptr<words::ExplainedCall> explained_;
  std::optional<analysis::LockWait> lock_;
  const analysis::LockNames lock_names_;
  reader::Calls others_;
};

void print_text(const ExplainAnswer& answer, Screen& screen) {
  constexpr std::size_t kBeforeText = 21;  // columns of share and excess
  Output& output = screen.output();
  const std::size_t width = screen.width();
  const bool differs = !answer.rows.empty();
  output.append(wrap(answer.head, width, differs ? 2 : 0) + "\n");
  if (differs) output.append(wrap(answer.usual, width, 2) + "\n");
  for (const std::string& value : answer.values) output.append(wrap(value, width, 2) + "\n");
  if (differs) {
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
  add_file_option(command, options->input);
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
