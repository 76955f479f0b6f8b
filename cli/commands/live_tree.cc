// SPDX-License-Identifier: MIT
#include "cli/commands/live_tree.h"

#include <fmt/compile.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <iterator>
#include <utility>

#include "analysis/log_text.h"
#include "analysis/notes.h"
#include "analysis/values.h"
#include "arch/cpu.h"
#include "cli/input/trace_input.h"
#include "cli/text/help.h"
#include "cli/text/names.h"
#include "cli/text/table.h"
#include "cli/text/text.h"

namespace karst::cli {

using collect::TailKind;
using collect::TailLine;

namespace {

constexpr std::size_t kBeforeIndent = 35;  // columns of time, thread, duration and marks
constexpr std::size_t kLeastName = 20;     // columns that indentation leaves to a name
constexpr std::uint32_t kMostIndented = 100;
constexpr std::uint64_t kMostLagNs = 2'000'000'000;
constexpr std::uint64_t kSettledNs = 10'000'000'000;  // after which the clock's rate is known well enough

constexpr const char* kThreadColours[] = {"36", "33", "35", "32", "34", "31"};
constexpr const char* kFaint = "2";
constexpr const char* kHead = "1;36";
constexpr const char* kWarning = "1;33";

bool is_number(std::string_view text, std::uint32_t& number) {
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  return !text.empty() && read.ec == std::errc() && read.ptr == text.data() + text.size();
}

bool is_thread(const std::string& wanted, const reader::Thread& thread) {
  std::uint32_t tid = 0;
  return thread.name == wanted || (is_number(wanted, tid) && thread.tid == tid);
}

/// Behind the duration, as `karst tree` has it.
char end_mark(const TailLine& line) {
  if (line.kind == TailKind::kBegin) return ' ';
  switch (line.way) {
    case walk::Way::kReturned:
      return ' ';
    case walk::Way::kTailCalled:
      return '=';
    case walk::Way::kUnwound:
      return '!';
    case walk::Way::kJumped:
      return '~';
    case walk::Way::kSwitched:
      return ')';
    case walk::Way::kUnseen:
    case walk::Way::kCut:
      break;
  }
  return '>';
}

}  // namespace

void add_live_options(Command command, LiveArguments& arguments) {
  in_group(command, "Which part", [&] {
    command
        .add_option("-f,--function", arguments.function,
                    "Only calls of functions whose name matches, with what they call")
        .type_name("REGEX");
    command
        .add_option("--not-function", arguments.not_function,
                    "Without calls of functions whose name matches, and what they call")
        .type_name("REGEX");
    command
        .add_option("-d,--depth", arguments.depths,
                    "Show N levels. REGEX:N: within calls of functions whose name matches N levels, wherever they are "
                    "(of nested ones the outermost); may be given several times")
        .type_name("[REGEX:]N")
        .allow_extra_args(false);
    command.add_option("-t,--thread", arguments.thread, "Only threads of this name or thread id").type_name("NAME|TID");
    command.add_option("--not-thread", arguments.not_thread, "Without threads of this name or thread id")
        .type_name("NAME|TID");
    command
        .add_option("--min-duration", arguments.min_duration,
                    "Leave out calls shorter than this (10us, 1.5ms, 2s), unless the program says something in them. A "
                    "call's line comes once it has lasted so long")
        .type_name("TIME");
    command.add_flag("--no-notes", arguments.no_notes, "Leave out what the program said of itself");
  });
  in_group(command, "Text", [&] { add_width_options(command, arguments.text); });
}

Result<LiveFilter> LiveFilter::of(const LiveArguments& arguments) {
  LiveFilter filter;
  if (!arguments.function.empty()) filter.only = choice::FunctionFilter({arguments.function});
  if (!arguments.not_function.empty()) filter.not_these = choice::FunctionFilter({arguments.not_function});
  for (const std::string& text : arguments.depths) {
    const std::size_t colon = text.rfind(':');
    std::uint32_t levels = 0;
    if (!is_number(std::string_view(text).substr(colon == std::string::npos ? 0 : colon + 1), levels) || colon == 0 ||
        (colon == std::string::npos && levels == 0))
      return Error{"--depth " + text + ": a number of levels is needed, like 3 or 'parse:3'"};
    if (colon == std::string::npos) {
      filter.depth = levels;
      continue;
    }
    if (filter.depths.size() == collect::kMostTailDepths)
      return Error{fmt::format("--depth: at most {} of them can have a REGEX", collect::kMostTailDepths)};
    filter.depths.push_back({choice::FunctionFilter({text.substr(0, colon)}), levels});
  }
  if (!arguments.min_duration.empty()) {
    const auto ns = parse_duration(arguments.min_duration);
    if (!ns) return Error{"--min-duration: " + ns.error().message};
    filter.min_ns = *ns;
  }
  filter.thread = arguments.thread;
  filter.not_thread = arguments.not_thread;
  filter.notes = !arguments.no_notes;
  return filter;
}

bool LiveFilter::chooses() const {
  return only || not_these || depth != ~0U || !depths.empty() || !thread.empty() || !not_thread.empty() || min_ns != 0;
}

collect::TailRule LiveFilter::rule_of(const std::string& name) const {
  collect::TailRule rule;
  rule.root = only && only->keeps(name);
  rule.hidden = not_these && not_these->keeps(name);
  for (std::size_t i = 0; i < depths.size(); ++i)
    if (depths[i].functions.keeps(name)) rule.depths |= std::uint32_t{1} << i;
  return rule;
}

bool LiveFilter::wants(const reader::Thread& of) const {
  return (thread.empty() || is_thread(thread, of)) && (not_thread.empty() || !is_thread(not_thread, of));
}

/// A name as often as its line is drawn.
struct ShortName {
  std::string text;  // empty: not made yet
  std::size_t width = 0;
};

struct LiveTree::Watched {
  Watched(std::uint32_t number, collect::ArenaView view, const symbols::ResolveOptions& options)
      : pid(number), arena(std::move(view)), names(arena, options) {
    name = printable(arena.process_without_functions().name);
    find_rate();
  }
  void find_rate() {
    const ClockPair now = read_clock_pair();
    clock = make_clock({arena.start(), now});
    rate_of = now.monotonic_raw_ns;
    age = now.monotonic_raw_ns - std::min(now.monotonic_raw_ns, arena.start().monotonic_raw_ns);
  }
  const ShortName& short_name(std::uint32_t id, bool plain) {
    static const ShortName kUnknown{"?", 1};
    if (id >= shorts.size()) {
      if (id > arena.function_count()) return kUnknown;
      shorts.resize(std::size_t{id} + 1);
    }
    ShortName& made = shorts[id];
    if (made.text.empty()) {
      const std::string& full = names.of(id);
      made.text = plain ? plain_name(full) : full;
      made.width = text_width(made.text);
    }
    return made;
  }

  const std::uint32_t pid;
  const collect::ArenaView arena;
  LiveNames names;
  std::string name;
  Clock clock;
  std::uint64_t rate_of = 0;  // CLOCK_MONOTONIC_RAW when the rate was found
  std::uint64_t age = 0;      // of the process then
  std::uint64_t zero = 0;     // ticks
  std::vector<ShortName> shorts;
  std::vector<bool> told;  // by TailLine::thread
  std::unique_ptr<collect::Tail> tail;
};

LiveTree::~LiveTree() = default;

LiveTree::LiveTree(const LiveFilter& filter, std::size_t width, bool colour)
    : filter_(filter), width_(width), colour_(colour) {}

std::size_t LiveTree::add(std::uint32_t pid, collect::ArenaView arena, const symbols::ResolveOptions& names,
                          std::uint64_t from, std::uint64_t zero) {
  auto made = std::make_unique<Watched>(pid, std::move(arena), names);
  made->zero = zero;
  Watched* const of = made.get();
  const auto ticks = [of](std::uint64_t ns) {
    const double all = static_cast<double>(ns) / 1e9 * static_cast<double>(of->clock.ticks_per_second);
    return all < 1e18 ? static_cast<std::uint64_t>(all) : std::uint64_t{1} << 60;
  };
  collect::TailOptions options;
  options.from = from;
  options.min_ticks = ticks(filter_.min_ns);
  options.most_lag = ticks(kMostLagNs);
  options.notes = filter_.notes;
  options.roots = filter_.only.has_value();
  options.depth = filter_.depth;
  for (const LiveFilter::Depth& depth : filter_.depths) options.depths.push_back(depth.levels);
  options.rule_of = [this, of](std::uint32_t id) { return filter_.rule_of(of->names.of(id)); };
  options.wants = [this](const reader::Thread& thread) { return filter_.wants(thread); };
  of->tail = std::make_unique<collect::Tail>(of->arena, std::move(options));
  processes_.push_back(std::move(made));
  return processes_.size() - 1;
}

const collect::ArenaView& LiveTree::arena(std::size_t process) const { return processes_[process]->arena; }

bool LiveTree::look(std::size_t process, bool ended, std::string& text) {
  Watched& of = *processes_[process];
  const std::uint64_t now_ns = clock_ns(CLOCK_MONOTONIC_RAW);
  if (of.age < kSettledNs && now_ns - of.rate_of > of.age) of.find_rate();
  const bool more = of.tail->look(arch::time_stamp(), ended);
  for (const TailLine& line : of.tail->lines()) draw(of, line, text);
  return more;
}

void LiveTree::remove(std::size_t process) {
  const collect::TailCounts counts = processes_[process]->tail->counts();
  gone_.shown += counts.shown;
  gone_.missed += counts.missed;
  gone_.overwritten += counts.overwritten;
  gone_.threads += counts.threads;
  gone_.lines += counts.lines;
  processes_[process].reset();
}

collect::TailCounts LiveTree::counts() const {
  collect::TailCounts sum = gone_;
  for (const auto& of : processes_) {
    if (!of) continue;
    const collect::TailCounts counts = of->tail->counts();
    sum.shown += counts.shown;
    sum.missed += counts.missed;
    sum.overwritten += counts.overwritten;
    sum.threads += counts.threads;
    sum.lines += counts.lines;
  }
  return sum;
}

void LiveTree::paint(std::string_view code, std::string_view what, std::string& text) const {
  if (!colour_) {
    text += what;
    return;
  }
  text += "\x1b[";
  text += code;
  text += 'm';
  text += what;
  text += "\x1b[0m";
}

void LiveTree::draw_thread(const Watched& of, const reader::Thread& thread, std::string& text) const {
  const std::string line =
      fmt::format("# process {} {} thread {} {}", of.pid, of.name, thread.tid, printable(thread.name));
  paint(kHead, shorten(line, width_, Shorten::kEnd), text);
  text += '\n';
}

std::size_t LiveTree::indent(std::uint32_t level, std::string& text) const {
  const std::uint32_t most = width_ == 0 ? kMostIndented
                             : width_ > kBeforeIndent + kLeastName
                                 ? static_cast<std::uint32_t>((width_ - kBeforeIndent - kLeastName) / 2)
                                 : 0;
  const std::uint32_t shift = std::min(level, most);
  text.append(std::size_t{shift} * 2, ' ');
  if (level == shift) return kBeforeIndent + std::size_t{shift} * 2;
  const std::string deep = fmt::format("[{}] ", level);
  text += deep;
  return kBeforeIndent + std::size_t{shift} * 2 + deep.size();
}

void LiveTree::draw(Watched& of, const TailLine& line, std::string& text) {
  if (line.thread >= of.told.size()) of.told.resize(line.thread + std::size_t{1});
  const reader::Thread& thread = of.tail->thread(line);
  if (!of.told[line.thread]) draw_thread(of, thread, text);
  of.told[line.thread] = true;

  // Before the start there is time, too: of calls that were open then.
  const bool before = line.ticks < of.zero;
  const std::uint64_t us = of.clock.to_ns(before ? of.zero - line.ticks : line.ticks - of.zero) / 1000;
  const auto out = std::back_inserter(text);
  char number[32];
  const auto time =
      fmt::format_to(number, FMT_COMPILE("{}{}.{:06}"), before ? "-" : "", us / 1'000'000, us % 1'000'000);
  const std::size_t time_width = static_cast<std::size_t>(time - number);
  text.append(time_width < 11 ? 11 - time_width : 0, ' ');
  text.append(number, time_width);
  const char* const colour = kThreadColours[line.thread % std::size(kThreadColours)];
  const auto tid = fmt::format_to(number, FMT_COMPILE("{:>9} "), thread.tid);
  paint(colour, {number, static_cast<std::size_t>(tid - number)}, text);
  const bool has_duration = line.kind == TailKind::kEnd || line.kind == TailKind::kCall;
  fmt::format_to(out, FMT_COMPILE("{:>10} {}{} "), has_duration ? duration_text(of.clock.to_ns(line.duration)) : "",
                 line.resumed && line.kind != TailKind::kEnd ? '('
                 : line.unentered && has_duration            ? '<'
                                                             : ' ',
                 has_duration ? end_mark(line) : ' ');
  const std::size_t used = indent(line.level, text);
  const std::size_t left = width_ == 0 ? 0 : width_ > used + 10 ? width_ - used : 10;

  if (line.kind == TailKind::kMissed) {
    paint(kWarning, fmt::format("... {}{} not shown", line.unentered ? "about " : "", plural(line.duration, "call")),
          text);
    text += '\n';
    return;
  }
  const collect::TailTexts* const texts = line.texts != 0 ? &of.tail->texts()[line.texts - 1] : nullptr;
  if (line.kind == TailKind::kNote) {
    const auto kind = static_cast<format::NoteKind>(line.note);
    const std::string bytes = texts != nullptr ? texts->returned : std::string();
    const reader::Function& named = of.names.function(line.function);
    const std::string_view name = line.function != 0 ? std::string_view(named.name) : "";
    const std::string value = analysis::note_value(kind, bytes, name, named.values);
    const std::uint32_t level = analysis::note_level(kind, bytes);
    std::string said = printable(analysis::note_line(kind, name, value, level));
    if (format::kind_of_note(kind).bytes == format::NoteBytes::kText) said = fmt::format("\"{}\"", said);
    paint(kFaint, left == 0 ? said : fit_text(said, left), text);
    text += '\n';
    return;
  }
  const std::string_view open = line.kind == TailKind::kEnd ? "} " : "";
  const std::string_view close = line.kind == TailKind::kBegin ? " {" : "";
  text += open;
  const std::size_t room = left == 0 ? 0 : left - open.size() - close.size();
  if (texts != nullptr) {
    const reader::Function& function = of.names.function(line.function);
    const auto values = [&](format::NoteKind kind, const std::string& bytes) {
      return analysis::values_in(function.values, kind, bytes);
    };
    const std::string full =
        printable(analysis::name_with_values(function.name, values(format::NoteKind::kArguments, texts->arguments),
                                             values(format::NoteKind::kReturned, texts->returned)));
    paint(colour, room == 0 ? full : fit_text(full, room), text);
  } else {
    const ShortName& name = of.short_name(line.function, width_ != 0);
    paint(colour, room == 0 || name.width <= room ? name.text : fit_name(of.names.of(line.function), room), text);
  }
  text += close;
  text += '\n';
}

bool write_live(int descriptor, std::string_view text, const volatile bool* stop) {
  while (!text.empty()) {
    const ssize_t done = ::write(descriptor, text.data(), text.size());
    if (done >= 0) {
      text.remove_prefix(static_cast<std::size_t>(done));
    } else if (errno != EINTR || (stop != nullptr && *stop)) {
      return false;
    }
  }
  return true;
}

std::string live_summary(const collect::TailCounts& counts, const LiveFilter& filter) {
  std::string text;
  if (counts.lines == 0)
    text = filter.chooses() ? "no call was seen that the options let through" : "no traced function was called";
  else
    text = plural(counts.shown, "call") + " shown";
  std::vector<std::string> lost;
  if (counts.missed != 0) lost.push_back(plural(counts.missed, "call") + " came too fast to be shown");
  if (const std::uint64_t calls = (counts.overwritten + 1) / 2; calls != 0)
    lost.push_back("about " + plural(calls, "call") + (calls == 1 ? " was" : " were") + " overwritten before " +
                   (calls == 1 ? "it was" : "they were") + " read");
  if (counts.threads != 0) lost.push_back("of " + plural(counts.threads, "thread") + " nothing was left to be read");
  for (std::size_t i = 0; i < lost.size(); ++i)
    text += (i == 0 ? "; " : i + 1 == lost.size() ? ", and " : ", ") + lost[i];
  return text;
}

}  // namespace karst::cli
