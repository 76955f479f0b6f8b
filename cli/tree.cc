// karst tree: the calls of a trace, nested.
#include "analysis/tree.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/waits.h"
#include "base/output.h"
#include "cli/command.h"
#include "cli/progress.h"
#include "cli/switch_text.h"
#include "cli/text.h"
#include "cli/trace_input.h"
#include "reader/trace.h"

namespace karst::cli {
namespace {

struct Options {
  InputOptions input;
  std::uint32_t depth = std::numeric_limits<std::uint32_t>::max();
  std::size_t slowest = 0;
  std::string min_duration;
  bool plain = false;
  bool inlined = false;
  bool marks = false;
  bool states = false;
  std::string min_wait = "100us";
};

constexpr const char* kFooter = R"(Output: a line for each thread, then one for each call in order of time:

  # process 4711 app thread 4712 worker
     1.234 ms    Queue::drain()
     1.021 ms      Queue::pop(Item&)
     13.00 us  >     Item::~Item()

The time is the call's, with all it called. Behind it:

  <  the call began before the kept history     >  its end is not known
     (the time is then what is known of it)
  !  an exception (or a thread's cancellation) ended it
  ~  a longjmp over it ended it
  =  it ended with a tail call: what it called follows beside it
  )  the thread switched to another stack here  (  and here came back

Calls nested deeper than 100 levels are no longer indented; their level is
printed instead.

--inlined adds, below a function's first call behind each thread's line, the
functions that the compiler made part of it, as debug information lists them:

     1.021 ms      Queue::pop(Item&)
     inlined         Queue::empty() const
     inlined         std::unique_lock<std::mutex>::lock() (2 copies)

They have no times, because an inlined function has no call. It says that their
code is part of the function, not that it ran; what it calls appears as called
by the function that it is part of.

--states adds, where the trace has thread states (karst run --sched), a line for
each long wait (--min-wait) below the call that waited:

    20.12 ms    Queue::pop(Item&)
    19.90 ms      [blocked in futex, woken by 4711 main in Queue::push(Item); then 12.00 us for a CPU]
     4.00 ms      [runnable, kept off CPU 3 by 812 stress]

Who woke a thread and who took its CPU is known if ftrace recorded it, and the
system call with --syscalls; 'karst info' says what there is.

--plain prints names alone, two spaces a level, for programs and diff.)";

constexpr std::uint32_t kMostIndented = 100;

class TreePrinter {
 public:
  TreePrinter(const Input& input, const Options& options, const analysis::TreeOptions& tree, Output& output,
              Progress& progress, std::uint64_t min_wait_ticks)
      : input_(input), options_(options), tree_(tree), output_(output), progress_(progress) {
    if (options.states) waits_ = std::make_unique<analysis::Waits>(input.trace, min_wait_ticks);
  }

  void print_threads() {
    for (const reader::Thread* thread : input_.threads) {
      if (output_.failed()) return;
      const reader::Calls calls = rebuild(*thread);
      header_due_ = true;
      // Threads without a matching call are not worth a line each when one looks for some calls.
      if (!options_.input.has_function) print_thread_line(*thread);
      print(*thread, calls, reader::kNoParent);
    }
  }

  void print_slowest() {
    analysis::SlowestCalls slowest(options_.slowest);
    for (const reader::Thread* thread : input_.threads) slowest.add(*thread, rebuild(*thread), tree_);
    const reader::Thread* of = nullptr;  // whose calls we have: one thread's at a time, to bound memory
    reader::Calls calls;
    for (const analysis::CallRef& call : slowest.take()) {
      if (output_.failed()) return;
      if (of != call.thread) calls = rebuild(*call.thread);
      of = call.thread;
      print_thread_line(*call.thread);
      if (!options_.plain) print_path(*call.thread, calls, call.row);
      print(*call.thread, calls, call.row);
    }
  }

 private:
  reader::Calls rebuild(const reader::Thread& thread) { return reader::rebuild_calls(input_.trace, thread); }

  const reader::Process& process(const reader::Thread& thread) const {
    return input_.trace.processes()[thread.process];
  }

  const std::string& name(const reader::Thread& thread, std::uint32_t id) {
    if (named_process_ != thread.process) names_.clear();
    named_process_ = thread.process;
    if (id >= names_.size()) names_.resize(id + 1);  // ids have 23 bits
    std::string& text = names_[id];
    if (text.empty()) text = printable(input_.trace.function(process(thread), id).name);
    return text;
  }

  void print_thread_line(const reader::Thread& thread) {
    header_due_ = false;
    inlined_shown_.clear();
    const reader::Process& owner = process(thread);
    output_.append(fmt::format("# process {} {} thread {} {}\n", owner.pid, printable(owner.name), thread.tid,
                               printable(thread.name)));
  }

  void print_path(const reader::Thread& thread, const reader::Calls& calls, std::uint32_t row) {
    const std::uint64_t start = analysis::first_ticks(input_.trace);
    const std::uint64_t begin = calls.begin[row] > start ? calls.begin[row] - start : 0;
    output_.append(fmt::format("# at {} ", duration_text(input_.trace.clock().to_ns(begin))));
    const std::vector<std::uint32_t> path = analysis::path_to(calls, row);
    output_.append(path.empty() ? "called by nothing traced" : "in ");
    for (std::size_t i = 0; i < path.size() && !output_.failed(); ++i) {
      // Of a deep recursion the two ends say enough.
      if (path.size() > kMostIndented && i == kMostIndented / 2) {
        output_.append(fmt::format(" > ... ({} calls) ...", path.size() - kMostIndented));
        i = path.size() - kMostIndented / 2;
      }
      if (i != 0) output_.append(" > ");
      output_.append(name(thread, calls.function[path[i]]));
    }
    output_.append("\n");
  }

  void print(const reader::Thread& thread, const reader::Calls& calls, std::uint32_t only_root) {
    untraced_ = untraced_times(process(thread));
    next_untraced_ = 0;
    // Only what lies within the thread's own history is passed.
    while (next_untraced_ < untraced_.size() && untraced_[next_untraced_].end <= calls.first_ticks) ++next_untraced_;
    WaitCursor waits(waits_ == nullptr ? kNoWaits : waits_->of(thread), calls, only_root);
    analysis::walk(
        calls, thread.process, tree_,
        [&](std::uint32_t row, std::uint32_t level) {
          print_waits(waits, calls.begin[row]);
          if (header_due_) print_thread_line(thread);
          print_untraced(calls.begin[row]);
          if (options_.plain) {
            indent(level);
          } else {
            print_time(calls, row);
            indent(std::min(level, kMostIndented));
            if (level > kMostIndented) output_.append(fmt::format("[{}] ", level));
          }
          output_.append(name(thread, calls.function[row]));
          if (options_.marks) print_marks(calls.marks[row]);
          output_.append("\n");
          if (options_.inlined) print_inlined(thread, calls.function[row], level);
          waits.enter(level, calls.begin[row] + calls.duration[row]);
          if ((row & 0xfff) == 0) progress_.done.fetch_add(0x1000, std::memory_order_relaxed);
          return !output_.failed();
        },
        [&](std::uint32_t row, std::uint32_t) {
          print_waits(waits, calls.begin[row] + calls.duration[row]);
          waits.leave();
        },
        only_root);
  }

  // Walks a thread's waits along with its calls.
  class WaitCursor {
   public:
    WaitCursor(const std::vector<analysis::Wait>& waits, const reader::Calls& calls, std::uint32_t only_root)
        : next_(waits.begin()), end_(waits.end()) {
      if (only_root == reader::kNoParent) return;
      next_ = std::lower_bound(next_, end_, calls.begin[only_root],
                               [](const analysis::Wait& wait, std::uint64_t ticks) { return wait.begin < ticks; });
    }
    void enter(std::uint32_t level, std::uint64_t end) { open_.push_back({level, end}); }
    void leave() { open_.pop_back(); }
    /// The next wait that began before `ticks` within a call that is shown, and its level.
    const analysis::Wait* next(std::uint64_t ticks, std::uint32_t& level) {
      while (next_ != end_ && next_->begin < ticks) {
        const analysis::Wait& wait = *next_++;
        if (open_.empty() || wait.begin >= open_.back().end) continue;
        level = open_.back().level + 1;
        return &wait;
      }
      return nullptr;
    }

   private:
    struct Open {
      std::uint32_t level;
      std::uint64_t end;
    };
    std::vector<analysis::Wait>::const_iterator next_, end_;
    std::vector<Open> open_;
  };

  // Those of the innermost open call that began before `ticks`.
  void print_waits(WaitCursor& waits, std::uint64_t ticks) {
    const Clock& clock = input_.trace.clock();
    std::uint32_t level = 0;
    while (const analysis::Wait* const wait = waits.next(ticks, level)) {
      if (output_.failed()) return;
      if (!options_.plain) output_.append(fmt::format("{:>10}    ", duration_text(clock.to_ns(wait->length()))));
      indent(options_.plain ? level : std::min(level, kMostIndented));
      const std::string words = analysis::describe(
          *wait, input_.trace.states(),
          [&](const reader::Thread& of, std::uint32_t id) { return input_.trace.function(process(of), id).name; },
          [&](std::uint64_t of) { return duration_text(clock.to_ns(of)); });
      output_.append("[" + printable(words) + "]\n");
    }
  }

  // Lines for the times in which nothing was traced, before `ticks`.
  void print_untraced(std::uint64_t ticks) {
    for (; next_untraced_ < untraced_.size() && untraced_[next_untraced_].begin < ticks; ++next_untraced_) {
      const Untraced& time = untraced_[next_untraced_];
      const std::uint64_t start = analysis::first_ticks(input_.trace);
      const std::uint64_t begin = time.begin > start ? time.begin - start : 0;
      if (options_.plain || time.end < time.begin || time.end == ~std::uint64_t{0}) continue;
      output_.append(fmt::format("# nothing was traced for {} from {} on ({})\n",
                                 duration_text(input_.trace.clock().to_ns(time.end - time.begin)),
                                 duration_text(input_.trace.clock().to_ns(begin)), reason_text(time.reason)));
    }
  }

  void indent(std::uint32_t level) {
    static constexpr std::string_view kSpaces = "                                                                ";
    for (std::uint64_t left = std::uint64_t{level} * 2; left != 0 && !output_.failed();) {
      const std::uint64_t some = std::min<std::uint64_t>(left, kSpaces.size());
      output_.append(kSpaces.substr(0, some));
      left -= some;
    }
  }

  // Below the first call of its function behind each thread's line: what is the same each time is said once.
  void print_inlined(const reader::Thread& thread, std::uint32_t id, std::uint32_t level) {
    if (id >= inlined_shown_.size()) inlined_shown_.resize(id + std::size_t{1});
    if (inlined_shown_[id]) return;
    inlined_shown_[id] = true;
    const reader::InlinedTable& table = process(thread).inlined;
    for (const reader::InlinedCall& call : table.of(id)) {
      const std::uint64_t at = std::uint64_t{level} + call.depth;
      if (at >= options_.depth) continue;
      const std::string text = printable(table.text(call.name));
      const std::string copies = call.copies > 1 ? fmt::format(" ({} copies)", call.copies) : "";
      if (!options_.plain) output_.append("   inlined    ");
      indent(static_cast<std::uint32_t>(options_.plain ? at : std::min<std::uint64_t>(at, kMostIndented)));
      if (options_.plain) output_.append("[inlined] ");
      output_.append(text + copies + "\n");
    }
  }

  void print_marks(std::uint8_t marks) {
    static constexpr std::pair<std::uint8_t, std::string_view> kWords[] = {
        {reader::kCallResumed, "resumed"},   {reader::kCallOpenBegin, "begun before"},
        {reader::kCallSwitched, "switched"}, {reader::kCallOpenEnd, "open"},
        {reader::kCallUnwound, "unwound"},   {reader::kCallJumped, "jumped"},
        {reader::kCallTail, "tail"},         {reader::kCallInherited, "inherited"},
    };
    // The words of a switch say more than those of an open end.
    if ((marks & reader::kCallResumed) != 0) marks &= static_cast<std::uint8_t>(~reader::kCallOpenBegin);
    if ((marks & reader::kCallSwitched) != 0) marks &= static_cast<std::uint8_t>(~reader::kCallOpenEnd);
    std::string_view before = "  [";
    if (reader::call_is_cut(marks)) {
      marks &= static_cast<std::uint8_t>(~reader::kCallCut);
      output_.append("  [cut");
      before = ", ";
    }
    for (const auto& [mark, word] : kWords) {
      if ((marks & mark) == 0) continue;
      output_.append(before);
      output_.append(word);
      before = ", ";
    }
    if (before == ", ") output_.append("]");
  }

  void print_time(const reader::Calls& calls, std::uint32_t row) {
    const std::uint8_t marks = calls.marks[row];
    const char begin = (marks & reader::kCallResumed) != 0 ? '(' : (marks & reader::kCallOpenBegin) != 0 ? '<' : ' ';
    const char end = (marks & reader::kCallSwitched) != 0  ? ')'
                     : (marks & reader::kCallOpenEnd) != 0 ? '>'
                     : (marks & reader::kCallUnwound) != 0 ? '!'
                     : (marks & reader::kCallJumped) != 0  ? '~'
                     : (marks & reader::kCallTail) != 0    ? '='
                                                           : ' ';
    fmt::memory_buffer line;
    fmt::format_to(std::back_inserter(line), "{:>10} {}{} ",
                   duration_text(input_.trace.clock().to_ns(calls.duration[row])), begin, end);
    output_.append({line.data(), line.size()});
  }

  const Input& input_;
  const Options& options_;
  const analysis::TreeOptions& tree_;
  Output& output_;
  Progress& progress_;
  std::vector<Untraced> untraced_;  // of the process at hand
  std::size_t next_untraced_ = 0;
  std::vector<std::string> names_;  // printable, by id of named_process_
  std::uint32_t named_process_ = 0;
  std::vector<bool> inlined_shown_;  // by id, since the last thread's line
  bool header_due_ = false;
  inline static const std::vector<analysis::Wait> kNoWaits;
  std::unique_ptr<analysis::Waits> waits_;
};

int tree(const Options& options) {
  std::uint64_t min_ns = 0;
  if (!options.min_duration.empty()) {
    const auto parsed = parse_duration(options.min_duration);
    if (!parsed) return usage_error("--min-duration: " + parsed.error().message, "tree");
    min_ns = *parsed;
  }
  if (options.slowest != 0 && !options.input.has_function) {
    return usage_error("--slowest needs --function: the slowest calls of which functions?", "tree");
  }
  const auto min_wait = parse_duration(options.min_wait);
  if (!min_wait) return usage_error("--min-wait: " + min_wait.error().message, "tree");
  auto input = open_input(options.input);
  if (!input) return fail(input.error());
  if (options.states && (*input)->trace.states().empty()) {
    return fail({(*input)->trace.name() +
                 " has no thread states: 'karst info' says why; 'karst run --sched auto' records them"});
  }

  analysis::TreeOptions shown;
  shown.roots = (*input)->function_set();
  shown.max_levels = options.depth;
  const auto to_ticks = [&](std::uint64_t ns) {
    return static_cast<std::uint64_t>(static_cast<unsigned __int128>(ns) * (*input)->trace.clock().ticks_per_second /
                                      1'000'000'000U);
  };
  shown.min_ticks = to_ticks(min_ns);
  Output output = Output::to_stdout();
  {
    Progress progress("printing calls", (*input)->events / 2);
    TreePrinter printer(**input, options, shown, output, progress, to_ticks(*min_wait));
    if (options.slowest != 0) {
      printer.print_slowest();
    } else {
      printer.print_threads();
    }
  }
  return finish_output(output, (*input)->trace);
}

}  // namespace

void register_tree(CLI::App& app, int& status) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("tree", "Print every call of every thread, nested, with its duration");
  command->footer(kFooter);
  add_file_option(*command, options->input);
  add_selection_options(*command, options->input,
                        "Show only calls of functions whose name matches, with what they called (of nested ones the "
                        "outermost)");
  command->add_option("--depth", options->depth, "Show N levels and leave out what is below them")
      ->type_name("N")
      ->check(positive());
  command
      ->add_option("--min-duration", options->min_duration,
                   "Leave out calls shorter than this (10us, 1.5ms, 2s), with what they called")
      ->type_name("TIME");
  command
      ->add_option("--slowest", options->slowest,
                   "With --function: show only the N slowest of these calls, the slowest first, each after its path "
                   "of callers")
      ->type_name("N")
      ->check(positive());
  command->add_flag("--inlined", options->inlined,
                    "Show below the first call of each function what the compiler inlined into it (no times: it has "
                    "no calls)");
  command->add_flag("--states", options->states,
                    "Show long waits inside calls, with their reason, where the trace has thread states");
  command
      ->add_option("--min-wait", options->min_wait, "With --states: leave out waits shorter than this (default 100us)")
      ->type_name("TIME");
  command->add_flag("--plain", options->plain, "Print names alone, two spaces a level");
  command->add_flag("--marks", options->marks, "Say behind each name in words how its call began and ended");
  command->callback([options, &status] { status = tree(*options); });
}

}  // namespace karst::cli
