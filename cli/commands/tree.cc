// SPDX-License-Identifier: MIT
// karst tree: the calls of a trace, nested.
#include "analysis/tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analysis/kept_off.h"
#include "analysis/notes.h"
#include "analysis/values.h"
#include "analysis/waits.h"
#include "base/output.h"
#include "cli/command.h"
#include "cli/commands/tree_cursors.h"
#include "cli/commands/tree_fold.h"
#include "cli/commands/tree_lines.h"
#include "cli/commands/tree_records.h"
#include "cli/input/trace_input.h"
#include "cli/text/names.h"
#include "cli/text/progress.h"
#include "cli/text/switch_text.h"
#include "cli/text/table.h"
#include "cli/text/terminal.h"
#include "cli/text/text.h"
#include "format/note.h"
#include "reader/trace.h"
#include "words/wait_words.h"

namespace karst::cli {
namespace {

struct Options {
  InputOptions input;
  std::uint32_t depth = std::numeric_limits<std::uint32_t>::max();
  std::size_t slowest = 0;
  bool plain = false;
  bool inlined = false;
  bool marks = false;
  bool states = false;
  bool no_states = false;
  bool no_notes = false;
  bool fold = false;
  bool no_fold = false;
  TextOptions text;
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
  =  it ended with a tail call, as what that called came back
  /  it was left by a tail call: what that called follows beside it, and is not
     in its time; "perhaps" tells the time with the call beside it
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

Where the trace has thread states (karst run --sched), a line stands for each
long wait (--min-wait) below the call that waited; --no-states leaves them out:

    20.12 ms    Queue::pop(Item&)
    19.90 ms      [blocked in futex, woken by 4711 main in Queue::push(Item); the last 12.00 us waiting for a CPU]
     4.00 ms      [runnable, kept off CPU 3: 3.81 ms by 4713 cleaner in Cache::sweep(), 190.0 us by 4711 main]

Who had the CPU meanwhile stands there with its share, the longest first; of
other programs' threads all shares are known with --cpus. Who woke a thread is
known if ftrace recorded it, and the system call with --syscalls; 'karst info'
says what there is. A wait that had begun before the recording, or was not over
at its end, says so: its time is what was recorded of it.

Where the program said something of itself (karst.h), a line has it in its
place; --no-notes leaves these out:

                    "cache is full"
                    queue length = 12

What calls were given and returned (karst run --args, --returns) stands at
their names:

     12.00 us    open(path="/etc/passwd", flags=0) = 3

On a terminal, calls of one function that follow each other, with nothing shown
below them, are one line with their number and the sum of their times:

     40.00 us      Item::~Item()  x19

--no-fold shows each, --fold does the same in a pipe.

--plain prints names alone, two spaces a level, for programs and diff.)";

constexpr std::size_t kMostInPath = 100;

class TreePrinter {
 public:
  TreePrinter(const Input& input, const Options& options, const analysis::TreeOptions& tree, Screen& screen,
              Progress& progress, std::uint64_t min_wait_ticks)
      : input_(input),
        options_(options),
        tree_(tree),
        lines_(screen, input.trace.clock(), options.plain),
        output_(screen.output()),
        progress_(progress),
        width_(lines_.width()),
        fold_(!options.plain && !options.no_fold && !options.inlined && (options.fold || width_ != 0)),
        folded_(PrintFolded{this}),
        records_(PrintRecord{this}) {
    const bool states = !options.no_states && (options.states || !options.plain) && !input.trace.states().empty();
    if (states) find_waits(min_wait_ticks);
  }
  TreePrinter(const TreePrinter&) = delete;
  TreePrinter& operator=(const TreePrinter&) = delete;

  void print_threads() {
    for (const reader::Thread* thread : input_.threads) {
      if (output_.failed()) return;
      const reader::Calls calls = rebuild(*thread);
      header_due_ = true;
      // Threads without a matching call are not worth a line each when one looks for some calls.
      if (!options_.input.has_function && !options_.input.request) print_thread_line(*thread);
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
  reader::Calls rebuild(const reader::Thread& thread) { return input_.calls_of(thread); }

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
    const std::string line = fmt::format("# process {} {} thread {} {}", owner.pid, printable(owner.name), thread.tid,
                                         printable(thread.name));
    lines_.line(line, Style::kName);
  }

  void print_path(const reader::Thread& thread, const reader::Calls& calls, std::uint32_t row) {
    const std::uint64_t start = analysis::first_ticks(input_.trace);
    const std::uint64_t begin = calls.begin[row] > start ? calls.begin[row] - start : 0;
    std::string line = fmt::format("# at {} ", duration_text(input_.trace.clock().to_ns(begin)));
    const std::vector<std::uint32_t> path = analysis::path_to(calls, row);
    line += path.empty() ? "called by nothing traced" : "in ";
    const std::size_t used = line.size();
    std::string names;
    for (std::size_t i = 0; i < path.size(); ++i) {
      // Of a deep recursion the two ends say enough.
      if (path.size() > kMostInPath && i == kMostInPath / 2) {
        names += fmt::format(" > ... ({} calls) ...", path.size() - kMostInPath);
        i = path.size() - kMostInPath / 2;
      }
      if (i != 0) names += " > ";
      const std::string& full = name(thread, calls.function[path[i]]);
      names += width_ == 0 ? full : plain_name(full);
    }
    const bool narrow = width_ != 0 && width_ < used + 10;
    output_.append((narrow ? fit_text(line + names, width_)
                           : line + shorten(names, width_ == 0 ? 0 : width_ - used, Shorten::kPath)) +
                   "\n");
  }

  void print(const reader::Thread& thread, const reader::Calls& calls, std::uint32_t only_root) {
    untraced_ = untraced_times(process(thread));
    next_untraced_ = 0;
    // Only what lies within the thread's own history is passed.
    while (next_untraced_ < untraced_.size() && untraced_[next_untraced_].end <= calls.first_ticks) ++next_untraced_;
    WaitCursor waits(waits_ == nullptr ? kNoWaits : waits_->of(thread), calls, only_root);
    const analysis::CallValues values(calls);
    values_ = &values;
    const bool notes = !options_.plain && !options_.no_notes && !calls.notes.empty();
    NoteCursor noted(notes ? calls.notes : kNoNotes, calls, only_root);
    analysis::walk(
        calls, thread.process, tree_,
        [&](std::uint32_t row, std::uint32_t level) {
          print_waits(waits, calls.begin[row]);
          if (header_due_) print_thread_line(thread);
          print_notes(noted, thread, calls, calls.begin[row], row);
          print_untraced(calls.begin[row]);
          add_call(thread, calls, row, level);
          waits.enter(level, calls.begin[row] + calls.duration[row]);
          noted.enter(row, level);
          if ((row & 0xfff) == 0) progress_.done.fetch_add(0x1000, std::memory_order_relaxed);
          return !output_.failed();
        },
        [&](std::uint32_t row, std::uint32_t level) {
          print_waits(waits, calls.begin[row] + calls.duration[row]);
          waits.leave();
          print_notes(noted, thread, calls, calls.begin[row] + calls.duration[row], row + 1);
          noted.leave();
          records_.flush();
          folded_.left(level);
        },
        only_root);
    records_.flush();
    folded_.flush();
    values_ = nullptr;
    if (only_root == reader::kNoParent && tree_.roots == nullptr)
      print_notes(noted, thread, calls, ~std::uint64_t{0}, reader::kNoParent);
    records_.flush();
  }

  // Prints a call, or adds it to those before it that are due.
  void add_call(const reader::Thread& thread, const reader::Calls& calls, std::uint32_t row, std::uint32_t level) {
    records_.flush();
    if (fold_ && calls.marks[row] == reader::kCallComplete && !values_->has(row)) {
      folded_.add(thread, calls.function[row], level, calls.time(row));
      return;
    }
    folded_.before_call(level);
    print_call(thread, calls, row, level);
  }

  struct PrintFolded {
    TreePrinter* printer;
    template <typename Line>
    void operator()(const Line& folded) const {
      printer->lines_.time(folded.ticks);
      const std::string times = folded.calls > 1 ? fmt::format("  x{}", count_text(folded.calls)) : "";
      printer->lines_.name(printer->name(*folded.thread, folded.function), folded.level, times);
      printer->lines_.end();
    }
  };

  struct PrintRecord {
    TreePrinter* printer;
    void operator()(const std::string& text, std::uint32_t level) const {
      printer->lines_.no_time();
      printer->lines_.remark(text, level, Style::kFaint);
    }
  };

  void print_call(const reader::Thread& thread, const reader::Calls& calls, std::uint32_t row, std::uint32_t level) {
    if (!options_.plain) lines_.call_time(calls, row);
    std::string marks = options_.marks ? tree_marks_text(calls.marks[row]) : "";
    if (!options_.plain && reader::call_is_left(calls.marks[row])) marks += perhaps(calls, row);
    if (!options_.plain && !options_.no_notes && values_->has(row)) {
      const std::string& full = input_.trace.function(process(thread), calls.function[row]).name;
      lines_.name_with_values(printable(analysis::name_with_values(lines_.width() == 0 ? full : plain_name(full),
                                                                   *values_, input_.trace, thread, calls, row)),
                              level, marks);
    } else {
      lines_.name(name(thread, calls.function[row]), level, marks);
    }
    lines_.end();
    if (options_.inlined) print_inlined(thread, calls.function[row], level);
  }

  /// How long a call that was left may have lasted, where that is much longer than its time.
  std::string perhaps(const reader::Calls& calls, std::uint32_t row) const {
    constexpr std::uint64_t kMuch = 2;
    constexpr std::uint64_t kLeast = 1000;  // ns
    const std::uint64_t likely = reader::likely_end(calls, row) - calls.begin[row];
    const std::uint64_t likely_ns = input_.trace.clock().to_ns(likely);
    if (likely / kMuch < calls.time(row) || likely_ns < kLeast) return {};
    return "  perhaps " + duration_text(likely_ns);
  }

  // Who had the CPUs meanwhile is found for all waits at once, as calls have to be rebuilt for it.
  void find_waits(std::uint64_t min_ticks) {
    const reader::Trace& trace = input_.trace;
    waits_ = std::make_unique<analysis::Waits>(trace, min_ticks);
    std::vector<const analysis::Wait*> all;
    for (const reader::Thread* thread : input_.threads)
      for (const analysis::Wait& wait : waits_->of(*thread)) all.push_back(&wait);
    reader::Calls calls;
    const analysis::KeptOffFinder finder(trace, [&](const reader::Thread& of) {
      calls = reader::rebuild_calls(trace, of, std::move(calls));
      return columns::CallColumns(calls);
    });
    std::vector<analysis::KeptOff> found = finder.of(all);
    for (std::size_t i = 0; i < all.size(); ++i)
      if (!found[i].empty()) kept_off_.emplace(all[i], std::move(found[i]));
  }

  // Those of the innermost open call that began before `ticks`.
  void print_waits(WaitCursor& waits, std::uint64_t ticks) {
    std::uint32_t level = 0;
    while (const analysis::Wait* const wait = waits.next(ticks, level)) {
      if (output_.failed()) return;
      records_.flush();
      folded_.before_remark();
      if (!options_.plain) lines_.time(wait->length());
      const words::Writing writing{[&](const reader::Thread& of, std::uint32_t id) {
                                     const std::string& full = input_.trace.function(process(of), id).name;
                                     return width_ == 0 ? full : std::string(plain_name(full));
                                   },
                                   [&](std::uint64_t of) { return duration_text(input_.trace.clock().to_ns(of)); }};
      const reader::States& states = input_.trace.states();
      const auto kept = kept_off_.find(wait);
      const std::string kept_off =
          kept == kept_off_.end() ? std::string() : words::kept_off_words(kept->second, states, writing);
      const std::string told = words::wait_words(*wait, states, writing, kept_off);
      lines_.remark("[" + printable(told) + "]", level, Style::kWarning);
    }
  }

  void print_notes(NoteCursor& notes, const reader::Thread& thread, const reader::Calls& calls, std::uint64_t ticks,
                   std::uint32_t before) {
    std::uint32_t level = 0;
    while (const reader::Note* const note = notes.next(ticks, before, level)) {
      if (output_.failed()) return;
      const format::KindOfNote& kind = format::kind_of_note(note->kind);
      if (!kind.is_listed()) continue;
      folded_.before_remark();
      if (header_due_) print_thread_line(thread);
      std::string text = printable(analysis::note_line(input_.trace, thread, calls, *note));
      if (fold_ && note->is(format::NoteKind::kRecord)) {
        records_.add(level, input_.trace.function(process(thread), note->name), std::move(text), calls.bytes_of(*note));
        continue;
      }
      records_.flush();
      if (kind.bytes == format::NoteBytes::kText) text = fmt::format("\"{}\"", text);
      lines_.no_time();
      lines_.remark(text, level, Style::kFaint);
    }
  }

  // Lines for the times in which nothing was traced, before `ticks`.
  void print_untraced(std::uint64_t ticks) {
    for (; next_untraced_ < untraced_.size() && untraced_[next_untraced_].begin < ticks; ++next_untraced_) {
      const Untraced& time = untraced_[next_untraced_];
      const std::uint64_t start = analysis::first_ticks(input_.trace);
      const std::uint64_t begin = time.begin > start ? time.begin - start : 0;
      if (options_.plain || time.end < time.begin || time.end == ~std::uint64_t{0}) continue;
      records_.flush();
      folded_.before_remark();
      lines_.line(fmt::format("# nothing was traced for {} from {} on ({})",
                              duration_text(input_.trace.clock().to_ns(time.end - time.begin)),
                              duration_text(input_.trace.clock().to_ns(begin)), reason_text(time.reason)),
                  Style::kWarning);
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
      lines_.inlined(text, at, copies);
    }
  }

  const Input& input_;
  const Options& options_;
  const analysis::TreeOptions& tree_;
  const analysis::CallValues* values_ = nullptr;  // of the thread that is printed
  TreeLines lines_;
  Output& output_;
  Progress& progress_;
  const std::size_t width_;  // 0: any
  const bool fold_;
  TreeFold<PrintFolded> folded_;
  RecordFold<PrintRecord> records_;
  std::vector<Untraced> untraced_;  // of the process at hand
  std::size_t next_untraced_ = 0;
  std::vector<std::string> names_;  // printable, by id of named_process_
  std::uint32_t named_process_ = 0;
  std::vector<bool> inlined_shown_;  // by id, since the last thread's line
  bool header_due_ = false;
  inline static const std::vector<analysis::Wait> kNoWaits;
  inline static const std::vector<reader::Note> kNoNotes;
  std::unique_ptr<analysis::Waits> waits_;
  std::unordered_map<const analysis::Wait*, analysis::KeptOff> kept_off_;
};

int tree(const Options& options) {
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
  Screen screen(options.text);
  {
    Progress progress("printing calls", (*input)->events / 2, screen.width() == 0);
    TreePrinter printer(**input, options, shown, screen, progress, (*input)->ticks_of(*min_wait));
    if (options.slowest != 0) {
      printer.print_slowest();
    } else {
      printer.print_threads();
    }
  }
  if (screen.width() != 0 && !options.plain) say_cost(screen, **input);
  return screen.finish(&(*input)->trace);
}

}  // namespace

void register_tree(Command app, int& status) {
  auto options = std::make_shared<Options>();
  Command command = app.add_subcommand("tree", "Print every call of every thread, nested, with its duration");
  command.footer(kFooter);
  add_file_option(command, options->input);
  add_selection_options(command, options->input,
                        "Show only calls of functions whose name matches, with what they called (of nested ones the "
                        "outermost)");
  add_raw_option(command, options->input);
  command.add_option("-d,--depth", options->depth, "Show N levels and leave out what is below them")
      .type_name("N")
      .check(positive());
  command
      .add_option("--slowest", options->slowest,
                  "With --function: show only the N slowest of these calls, the slowest first, each after its path "
                  "of callers")
      .type_name("N")
      .check(positive());
  command.add_flag("--inlined", options->inlined,
                   "Show below the first call of each function what the compiler inlined into it (no times: it has "
                   "no calls)");
  command.add_flag("--states", options->states, "Fail where the trace has no thread states; with --plain show waits");
  command.add_flag("--no-states", options->no_states, "Leave out the lines of long waits");
  command.add_option("--min-wait", options->min_wait, "Leave out waits shorter than this (default 100us)")
      .type_name("TIME");
  command.add_flag("--no-notes", options->no_notes, "Leave out what the program said of itself");
  command.add_flag("--fold", options->fold, "Show repeated calls and records as one line, also in a pipe");
  command.add_flag("--no-fold", options->no_fold, "Show each call and record on a line of its own, also on a terminal");
  command.add_flag("--plain", options->plain, "Print names alone, two spaces a level");
  command.add_flag("--marks", options->marks, "Say behind each name in words how its call began and ended");
  add_text_options(command, options->text);
  command.callback([options, &status] { status = tree(*options); });
}

}  // namespace karst::cli
