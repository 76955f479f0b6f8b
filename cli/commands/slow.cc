// karst slow: calls that took far longer than their function usually does, and what they waited for.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/kept_off.h"
#include "analysis/outliers.h"
#include "analysis/path_text.h"
#include "analysis/values.h"
#include "base/json.h"
#include "base/output.h"
#include "cli/command.h"
#include "cli/input/trace_input.h"
#include "cli/text/names.h"
#include "cli/text/progress.h"
#include "cli/text/table.h"
#include "cli/text/terminal.h"
#include "cli/text/text.h"
#include "columns/scope.h"
#include "reader/trace.h"

namespace karst::cli {
namespace {

struct Options {
  InputOptions input;
  std::string format = "text";
  std::size_t limit = 10;
  bool each = false;
  bool follow = false;
  TextOptions text;
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

Calls that slept as they were told to, or waited for work (usleep, poll, the
rest of a suspended fiber), come last.

--follow goes on from who ended the wait, or had the lock that was waited for,
to what that thread did meanwhile, and whom it waited for itself.
json gives all times in whole nanoseconds.)";

class SlowPrinter {
 public:
  SlowPrinter(const Input& input, CallsCache& calls, const Options& options, analysis::OutlierFinder& finder,
              Screen& screen)
      : options_(options),
        trace_(input.trace),
        finder_(finder),
        screen_(screen),
        width_(screen.width()),
        lock_waits_(trace_),
        calls_(calls),
        kept_off_(trace_, [this](const reader::Thread& of) { return columns::CallColumns(all_calls_of(of)); }) {
    if (!trace().states().empty()) waits_ = std::make_unique<analysis::Waits>(trace(), 0);
    const columns::TickRange asked = input.filter.range.value_or(columns::TickRange{});
    length_ = asked.clip(analysis::first_ticks(trace()), analysis::last_ticks(trace()));
  }

  void print_text(const std::vector<analysis::OutlierGroup>& groups, std::uint64_t calls) {
    print_groups(groups, calls);
    if (options_.follow && unknown_waker_) {
      screen_.output().append("\n");
      line(
          "Who ended some of these waits is not known. The rights to tracefs or to perf's events of all CPUs tell it "
          "(run karst as root); --system locks tells who had a lock.");
    }
    const std::vector<analysis::RareFunction> rare = rare_beside(groups);
    if (rare.empty() || screen_.output().failed()) return;
    screen_.output().append("\n");
    line("called fewer than ten times; the longest by themselves:");
    for (const analysis::RareFunction& function : rare) print_rare(function);
  }

  void print_groups(const std::vector<analysis::OutlierGroup>& groups, std::uint64_t calls) {
    if (groups.empty() && !finder_.knows_any()) {
      line(fmt::format("{}: no function has ten complete calls, so nothing says what is usual",
                       printable(trace().name())));
      return;
    }
    if (groups.empty()) {
      line(fmt::format("{}: no call took {} its function's usual time", printable(trace().name()),
                       options_.input.min_duration.empty() ? "three times" : "so long and three times"));
      return;
    }
    line(fmt::format("{}: {} of {} took three times their function's usual time or more", printable(trace().name()),
                     count_text(finder_.found()), plural(calls, "call")));
    for (std::size_t i = 0; i < groups.size() && !screen_.output().failed(); ++i) print_group(i + 1, groups[i]);
  }

  void print_json(const std::vector<analysis::OutlierGroup>& groups, std::uint64_t calls, Output& output) {
    json_.open('{').field("trace", trace().name()).field("calls", calls).field("slow_calls", finder_.found());
    json_.key("slow").open('[');
    for (std::size_t i = 0; i < groups.size() && !output.failed(); ++i) {
      write_group(groups[i]);
      json_.flush(output);
    }
    json_.close(']');
    json_.key("rare").open('[');
    for (const analysis::RareFunction& function : rare_beside(groups)) {
      write_call(function.longest);
      json_.field("own_ns", ns(function.longest.excess())).field("calls", function.calls);
      if (const analysis::Wait* wait = own_wait_of(function.longest); wait != nullptr) write_wait(*wait);
      json_.close('}');
    }
    json_.close(']').close('}').flush(output);
    output.append("\n");
  }

  /// The longest wait in it, if that is a tenth of its excess.
  const analysis::Wait* wait_of(const analysis::Outlier& outlier) const {
    if (waits_ == nullptr) return nullptr;
    const std::uint64_t begin = outlier.call.begin;
    const analysis::Wait* wait = analysis::longest_wait(waits_->of(*outlier.call.thread), begin, outlier.call.end);
    return wait != nullptr && wait->length() * 10 >= outlier.excess() ? wait : nullptr;
  }

 private:
  /// Functions without a usual time whose calls are long beside what is listed; or, if nothing is, beside all.
  std::vector<analysis::RareFunction> rare_beside(const std::vector<analysis::OutlierGroup>& groups) const {
    constexpr std::uint64_t kOfExcess = 10;
    constexpr std::uint64_t kOfAll = 100;
    constexpr std::size_t kMost = 3;
    const std::uint64_t least = groups.empty() ? length_ / kOfAll : groups.front().worst.excess() / kOfExcess;
    return finder_.rare(std::max<std::uint64_t>(least, 1), kMost);
  }

  void print_rare(const analysis::RareFunction& function) {
    const analysis::Outlier& longest = function.longest;
    const std::string rest = fmt::format(" {}", time(longest.excess()));
    const std::string full = name(*longest.call.thread, longest.function);
    screen_.output().append(
        "    " + screen_.paint(Style::kName, width_ == 0 ? full : fit_name(full, width_ > 34 ? width_ - 24 : 10)) +
        rest + "\n");
    print_place(longest, function.calls > 1 ? fmt::format("; {} in all", plural(function.calls, "call")) : "");
    if (const analysis::Wait* wait = own_wait_of(longest); wait != nullptr)
      line(fmt::format("      {} {}", time(wait->length()), words(*wait)));
  }

  /// A longer one than the call by itself was a callee's.
  const analysis::Wait* own_wait_of(const analysis::Outlier& call) const {
    const analysis::Wait* wait = wait_of(call);
    return wait != nullptr && wait->length() <= call.excess() + call.excess() / 16 ? wait : nullptr;
  }

  const reader::Trace& trace() const { return trace_; }
  const reader::Process& process(const reader::Thread& thread) const { return trace().processes()[thread.process]; }
  std::uint64_t ns(std::uint64_t ticks) const { return trace().clock().to_ns(ticks); }
  std::string time(std::uint64_t ticks) const { return duration_text(ns(ticks)); }
  std::uint64_t since_start(std::uint64_t ticks) const {
    const std::uint64_t start = analysis::first_ticks(trace());
    return ticks > start ? ns(ticks - start) : 0;
  }
  const std::string& full_name(const reader::Thread& thread, std::uint32_t id) const {
    return trace().function(process(thread), id).name;
  }
  std::string name(const reader::Thread& thread, std::uint32_t id) const {
    return printable(plain_name(full_name(thread, id)));
  }

  // What others did meanwhile is told whatever the filter leaves of it.
  const reader::Calls& all_calls_of(const reader::Thread& thread) {
    if (all_calls_thread_ != &thread) all_calls_ = reader::rebuild_calls(trace(), thread, std::move(all_calls_));
    all_calls_thread_ = &thread;
    return all_calls_;
  }

  std::string words(const analysis::Wait& wait, const analysis::KeptOff& kept) const {
    const auto name_of = [this](const reader::Thread& of, std::uint32_t id) { return plain_name(full_name(of, id)); };
    const auto time_of = [this](std::uint64_t ticks) { return time(ticks); };
    return printable(analysis::describe(wait, trace().states(), name_of, time_of,
                                        analysis::kept_off_words(kept, trace().states(), name_of, time_of)));
  }
  std::string words(const analysis::Wait& wait) const { return words(wait, kept_off_.of(wait)); }

  // A path of names; on a terminal the first ones give way to the last.
  std::string path_text(const reader::Thread& thread, const std::vector<std::uint32_t>& functions, std::size_t used) {
    const std::size_t width = width_ > used + 20 ? width_ - used : width_ == 0 ? std::string::npos : 20;
    std::vector<std::string> names;
    names.reserve(functions.size());
    for (const std::uint32_t id : functions) names.push_back(name(thread, id));
    names = analysis::folded(std::move(names));
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

  // What is too long goes on in the next line, two columns further in.
  void line(const std::string& text) {
    const std::size_t indent = std::min(text.find_first_not_of(' '), text.size());
    const std::string rest = wrap(std::string_view(text).substr(indent), width_, indent + 2);
    screen_.output().append(std::string(indent, ' ') + rest + "\n");
  }

  // Slow calls of one thread mostly follow each other.
  const analysis::CallValues& values_of(const reader::Thread& thread, const reader::Calls& calls) {
    if (!values_ || values_thread_ != &thread || values_calls_ != &calls) values_.emplace(calls);
    values_thread_ = &thread;
    values_calls_ = &calls;
    return *values_;
  }

  // What a call was given and what it returned, if that is noted.
  void print_values(const reader::Thread& thread, const reader::Calls& calls, const analysis::CallValues& values,
                    std::uint32_t row) {
    if (!values.has(row)) return;
    line("      " + printable(analysis::name_with_values(full_name(thread, calls.function[row]), values, trace(),
                                                         thread, calls, row)));
  }

  void write_values(const reader::Thread& thread, const reader::Calls& calls, const analysis::CallValues& values,
                    std::uint32_t row) {
    const auto write = [&](std::string_view key, const reader::Note* note) {
      if (note != nullptr) json_.field(key, analysis::values_text(analysis::values_in(trace(), thread, calls, *note)));
    };
    write("arguments", values.arguments(row));
    write("returned", values.returned(row));
  }

  void print_group(std::size_t number, const analysis::OutlierGroup& group) {
    const analysis::Outlier& outlier = group.worst;
    const reader::Thread& thread = *outlier.call.thread;
    const std::uint64_t times = (outlier.call.duration + outlier.usual / 2) / outlier.usual;
    const std::string rest =
        ns(outlier.usual) == 0
            ? fmt::format(" took {}; usually too little to tell from tracing's own", time(outlier.call.duration))
            : fmt::format(" took {}, {} times its usual {}", time(outlier.call.duration), count_text(times),
                          time(outlier.usual));
    const std::string head = fmt::format("{:>2}. ", number);
    const std::size_t taken = head.size() + rest.size();
    const std::string full = name(thread, outlier.function);
    const std::string shown = width_ == 0 ? full : fit_name(full, width_ > taken + 10 ? width_ - taken : 10);
    screen_.output().append("\n" + head + screen_.paint(Style::kName, shown) +
                            shorten(rest, width_ == 0 ? 0 : width_ - head.size() - text_width(shown), Shorten::kEnd) +
                            "\n");
    print_place(outlier, group.calls > 1 ? fmt::format("; {}, {} in all", plural(group.calls - 1, "more such call"),
                                                       time(group.duration))
                                         : "");
    const reader::Calls& calls = calls_.of(thread);
    const analysis::CallValues& values = values_of(thread, calls);
    print_values(thread, calls, values, outlier.call.row);
    std::vector<std::uint32_t> path;
    std::uint64_t last = 0;
    const std::vector<std::uint32_t> rows = finder_.path_below(thread, calls, outlier.call.row);
    for (const std::uint32_t row : rows) {
      path.push_back(calls.function[row]);
      last = calls.time(row);
    }
    if (!path.empty()) line(fmt::format("      {} in {}", time(last), path_text(thread, path, 20)));
    for (const std::uint32_t row : rows) print_values(thread, calls, values, row);
    const analysis::Wait* wait = wait_of(outlier);
    if (wait != nullptr) {
      line(fmt::format("      {} {}", time(wait->length()), words(*wait)));
      if (options_.follow) print_chain(thread, *wait);
      unknown_waker_ |= wait->state == reader::ThreadState::kBlocked && wait->by == reader::kNoTask;
      return;
    }
    if (waits_ != nullptr) {
      print_running(outlier);
    } else if (path.empty()) {
      line("      in no call that is longer than usual; whether it ran or waited is not known without thread states");
    }
    const auto lock = options_.follow ? lock_wait_of(outlier) : std::nullopt;
    if (lock) print_chain(thread, *lock);
  }

  void print_place(const analysis::Outlier& outlier, const std::string& more) {
    const reader::Thread& thread = *outlier.call.thread;
    std::string where = fmt::format("      at {} in thread {} {}", duration_text(since_start(outlier.call.begin)),
                                    thread.tid, printable(thread.name));
    if (trace().processes().size() > 1) where += fmt::format(" of process {}", process(thread).pid);
    line(where + more);
  }

  // A long call without a wait: how much of it was on a CPU.
  void print_running(const analysis::Outlier& outlier) {
    const analysis::StateThreads threads(trace());
    const reader::ThreadStates* states = threads.states_of(*outlier.call.thread);
    if (states == nullptr) return;
    line(fmt::format("      {} of it on a CPU", time(analysis::states_of(outlier, *states).running)));
  }

  /// A wait for a lock, whose thread may have run now and then meanwhile to try again.
  std::optional<analysis::Wait> lock_wait_of(const analysis::Outlier& outlier) {
    const analysis::LockWait* lock = lock_waits_.longest(*outlier.call.thread, outlier.call.begin, outlier.call.end);
    if (lock == nullptr || lock->open || lock->duration * 10 < outlier.excess()) return std::nullopt;
    analysis::Wait wait;
    wait.begin = lock->begin;
    wait.end = lock->begin + lock->duration;
    return wait;
  }

  void print_chain(const reader::Thread& thread, const analysis::Wait& wait) {
    for (const analysis::ChainLink& link : chain(thread, wait)) {
      std::string text = fmt::format("      meanwhile {} {}", link.thread->tid, printable(link.thread->name));
      if (!link.functions.empty()) text += " in " + path_text(*link.thread, link.functions, text.size() + 4);
      line(text);
      if (link.waited) line(fmt::format("        {} {}", time(link.wait.length()), words(link.wait)));
    }
  }

  std::vector<analysis::ChainLink> chain(const reader::Thread& thread, const analysis::Wait& wait) {
    return analysis::follow_waits(waits_.get(), lock_waits_, thread, wait,
                                  [this](const reader::Thread& of) { return columns::CallColumns(all_calls_of(of)); });
  }

  void write_wait(const analysis::Wait& wait) {
    json_.key("wait").open('{').field("begin_ns", since_start(wait.begin)).field("duration_ns", ns(wait.length()));
    const analysis::KeptOff& kept = kept_off_.of(wait);
    json_.field("words", words(wait, kept));
    analysis::write_kept_off(
        json_, kept, trace().states(), [this](const reader::Thread& of, std::uint32_t id) { return full_name(of, id); },
        [this](std::uint64_t ticks) { return ns(ticks); });
    json_.close('}');
  }

  void write_call(const analysis::Outlier& outlier) {
    const reader::Thread& thread = *outlier.call.thread;
    json_.line().open('{').field("function", full_name(thread, outlier.function));
    json_.field("begin_ns", since_start(outlier.call.begin)).field("duration_ns", ns(outlier.call.duration));
    json_.field("pid", process(thread).pid).field("tid", thread.tid).field("thread", thread.name);
  }

  void write_group(const analysis::OutlierGroup& group) {
    const analysis::Outlier& outlier = group.worst;
    const reader::Thread& thread = *outlier.call.thread;
    write_call(outlier);
    json_.field("usual_ns", ns(outlier.usual));
    json_.field("such_calls", group.calls).field("such_ns", ns(group.duration));
    const reader::Calls& calls = calls_.of(thread);
    const analysis::CallValues& values = values_of(thread, calls);
    write_values(thread, calls, values, outlier.call.row);
    json_.key("path").open('[');
    for (const std::uint32_t row : finder_.path_below(thread, calls, outlier.call.row)) {
      json_.open('{').field("function", full_name(thread, calls.function[row]));
      json_.field("duration_ns", ns(calls.time(row)));
      write_values(thread, calls, values, row);
      json_.close('}');
    }
    json_.close(']');
    if (const analysis::Wait* wait = wait_of(outlier); wait != nullptr) {
      write_wait(*wait);
      if (options_.follow) write_chain(thread, *wait);
    } else if (const auto lock = options_.follow ? lock_wait_of(outlier) : std::nullopt; lock) {
      write_chain(thread, *lock);
    }
    json_.close('}');
  }

  void write_chain(const reader::Thread& thread, const analysis::Wait& wait) {
    json_.key("chain").open('[');
    for (const analysis::ChainLink& link : chain(thread, wait)) {
      json_.open('{').field("tid", link.thread->tid).field("thread", link.thread->name);
      json_.list("path", link.functions, [&](std::uint32_t id) { return full_name(*link.thread, id); });
      if (link.waited) write_wait(link.wait);
      json_.close('}');
    }
    json_.close(']');
  }

  const Options& options_;
  const reader::Trace& trace_;
  analysis::OutlierFinder& finder_;
  Screen& screen_;
  Json json_;
  const std::size_t width_;
  std::unique_ptr<analysis::Waits> waits_;
  analysis::LockWaitFinder lock_waits_;
  bool unknown_waker_ = false;  // a wait was told of which nobody knows who ended it
  CallsCache& calls_;
  const analysis::KeptOffFinder kept_off_;
  std::uint64_t length_ = 0;  // ticks of what was asked about
  std::optional<analysis::CallValues> values_;
  const reader::Thread* values_thread_ = nullptr;
  const reader::Calls* values_calls_ = nullptr;
  reader::Calls all_calls_;
  const reader::Thread* all_calls_thread_ = nullptr;
};

int slow(const Options& options) {
  auto input = open_input(options.input);
  if (!input) return fail(input.error());
  const reader::Trace& trace = (*input)->trace;
  // What is usual is learnt from short calls, too.
  const std::uint64_t min_ticks = std::exchange((*input)->filter.min_ticks, 0);
  analysis::OutlierFinder finder(trace, (*input)->function_set(), min_ticks, analysis::kMostOutliers);
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
      calls += static_cast<std::uint64_t>(std::count_if(of.marks.begin(), of.marks.end(), columns::is_counted));
      progress.done += of.events;
    }
  }
  std::vector<analysis::OutlierGroup> groups = analysis::group_outliers(finder.take(), options.each);
  Screen screen(options.text);
  SlowPrinter printer(**input, calls_of, options, finder, screen);
  analysis::put_idle_last(groups, trace, [&](const analysis::Outlier& of) { return printer.wait_of(of); });
  if (groups.size() > options.limit) groups.resize(options.limit);
  if (options.format == "json") {
    warn_partial(**input);
    Output output = Output::to_stdout();
    printer.print_json(groups, calls, output);
    return finish_output(output, trace);
  }
  say_partial(screen, **input);
  printer.print_text(groups, calls);
  say_cost(screen, **input);
  return screen.finish(&trace);
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
  add_format_options(command, options->format, {"text", "json"});
  add_selection_options(command, options->input, "Show only calls of functions whose name matches");
  add_raw_option(command, options->input);
  add_text_options(command, options->text);
  command.callback([options, &status] { status = slow(*options); });
}

}  // namespace karst::cli
