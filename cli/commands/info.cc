// SPDX-License-Identifier: MIT
// karst info: what a trace holds.
#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analysis/program_facts.h"
#include "analysis/selection.h"
#include "answers/data.h"
#include "answers/traces.h"
#include "base/hex.h"
#include "base/json.h"
#include "base/output.h"
#include "base/plain_name.h"
#include "cli/command.h"
#include "cli/commands/samples.h"
#include "cli/commands/usage.h"
#include "cli/input/kept.h"
#include "cli/input/patched.h"
#include "cli/input/states.h"
#include "cli/input/trace_input.h"
#include "cli/text/progress.h"
#include "cli/text/switch_text.h"
#include "cli/text/table.h"
#include "cli/text/terminal.h"
#include "cli/text/text.h"
#include "reader/trace.h"
#include "symbols/open_trace.h"

namespace karst::cli {
namespace {

struct Options {
  InputOptions input;
  std::string format = "text";
  TextOptions text;
};

using answers::ThreadCounts;
using answers::TraceCounts;

std::string ending(const reader::Process& process) {
  const int status = process.wait_status;
  if (status == -1) {
    return (process.flags & format::kProcessEnded) != 0 ? "ended, status not known" : "had not ended";
  }
  if (WIFEXITED(status)) return fmt::format("exited with status {}", WEXITSTATUS(status));
  if (WIFSIGNALED(status)) {
    const char* name = ::sigabbrev_np(WTERMSIG(status));
    return fmt::format("killed by {}{}", name != nullptr ? "SIG" : "signal ",
                       name != nullptr ? std::string(name) : std::to_string(WTERMSIG(status)));
  }
  return fmt::format("ended with wait status {:#x}", status);
}

std::string command_of(const reader::Process& process) {
  std::string command;
  for (const std::string& argument : process.command_line)
    command += (command.empty() ? "" : " ") + printable(argument);
  return command;
}

const char* origin_of(const reader::Process& process) {
  return (process.flags & format::kProcessForked) != 0 ? "forked" : process.parent != 0 ? "started" : "";
}

void say(Screen& screen, const std::string& line) { screen.output().append(line + "\n"); }

/// The line above a part.
void head(Screen& screen, const std::string& text) {
  say(screen, screen.paint(Style::kStrong, shorten(text, screen.width(), Shorten::kEnd)));
}

/// What is left of a width, which may be 0 for any.
std::size_t less(std::size_t width, std::size_t by) { return width == 0 ? 0 : width - by; }

// Which process came from which, each below the one that made it, in order of their coming.
void print_process_tree(const reader::Trace& trace, const TraceCounts& facts, Screen& screen) {
  const auto& processes = trace.processes();
  std::unordered_map<std::uint32_t, std::size_t> place;  // of a process by its index in the file
  for (std::size_t i = 0; i < processes.size(); ++i) place[processes[i].index] = i;
  std::vector<std::vector<std::size_t>> children(processes.size() + 1);  // of each place; the last: of none
  for (std::size_t i = 0; i < processes.size(); ++i) {
    const auto parent = processes[i].parent != 0 ? place.find(processes[i].parent - 1) : place.end();
    // A parent is always an earlier one; what a damaged file says otherwise is no tree.
    children[parent != place.end() && parent->second < i ? parent->second : processes.size()].push_back(i);
  }
  say(screen, "");
  head(screen, "processes");
  std::vector<std::pair<std::size_t, std::size_t>> rest;  // place and level, the next one last
  const auto add = [&](std::size_t of, std::size_t level) {
    for (auto i = children[of].rbegin(); i != children[of].rend(); ++i) rest.emplace_back(*i, level);
  };
  add(processes.size(), 0);
  while (!rest.empty()) {
    const auto [i, level] = rest.back();
    rest.pop_back();
    const reader::Process& process = processes[i];
    std::uint64_t calls = 0;
    for (const ThreadCounts& t : facts.threads[i]) calls += t.calls;
    const std::size_t spaces = std::min<std::size_t>(level, screen.width() == 0 ? 40 : 10) * 2;
    const bool forked = (process.flags & format::kProcessForked) != 0;
    say(screen,
        shorten(fmt::format("  {:>14}  {:{}}{} {}  {}{}", count_text(calls), "", spaces, process.pid,
                            printable(process.name), origin_of(process), forked ? "" : "  " + command_of(process)),
                screen.width(), Shorten::kEnd));
    add(i, level + 1);
  }
}

/// Empty: it is in none.
std::string_view group_of(const std::map<std::uint32_t, std::string_view>& groups, const reader::Thread& thread) {
  const auto group = thread.fiber ? groups.end() : groups.find(thread.index);
  return group == groups.end() ? std::string_view() : group->second;
}

void print_threads(const reader::Process& process, const std::vector<ThreadCounts>& facts, Screen& screen) {
  const std::map<std::uint32_t, std::string_view> groups = analysis::thread_groups(process);
  std::vector<Column> columns{
      {"thread", "thread", false, true, 0, 8}, {"calls", "calls", false, true, 0, 14},
      {"span", "span", false, true, 0, 12},    {"overwritten", "overwritten", false, true, 1, 14},
      {"lost", "lost", false, true, 2, 10},    {"name", "name", true}};
  if (!groups.empty()) columns.insert(columns.end() - 1, {"group", "group", true, false, 0, 16});
  Table table(std::move(columns), Shorten::kEnd, "  ");
  for (std::size_t i = 0; i < process.threads.size(); ++i) {
    const reader::Thread& thread = process.threads[i];
    std::vector<std::string> row{std::to_string(thread.tid),      count_text(facts[i].calls),
                                 duration_text(facts[i].span_ns), count_text(thread.overwritten_events),
                                 count_text(thread.lost_events),  printable(thread.name)};
    if (!groups.empty()) row.insert(row.end() - 1, printable(group_of(groups, thread)));
    table.add(std::move(row));
  }
  table.print(screen);
}

void print_modules(const reader::Process& process, Screen& screen) {
  Table table({{"functions", "functions", false, true, 0, 9},
               {"unnamed", "unnamed", false, true, 2, 7},
               {"no-line", "no line", false, true, 2, 7},
               {"loaded", "loaded at", true, true, 1, 18},
               {"build-id", "build-id", true, false, 0, 40},
               {"module", "module", true}},
              Shorten::kPath, "  ");
  for (const reader::Module& module : process.modules) {
    const analysis::FunctionCounts functions = analysis::functions_of(process, module);
    table.add({count_text(functions.all), count_text(functions.unnamed), count_text(functions.without_line),
               fmt::format("{:#x}", module.bias), module.build_id.empty() ? "none" : hex(module.build_id),
               printable(module.path)});
  }
  table.print(screen);
}

void print_process(const reader::Trace& trace, const reader::Process& process, const std::vector<ThreadCounts>& threads,
                   const std::string& usage, Screen& screen) {
  const auto line = [&screen](const std::string& text) { say(screen, "  " + wrap(text, less(screen.width(), 2), 4)); };
  say(screen, "");
  head(screen, fmt::format("process {} {}: {}", process.pid, printable(process.name), command_of(process)));
  const std::uint64_t started = analysis::realtime_ns(trace.clock(), answers::tracing_begin(trace, process));
  line(fmt::format("{}{}; parent {}; executable {}", started != 0 ? "tracing began " + time_text(started) + "; " : "",
                   ending(process), process.parent_pid, printable(process.executable)));
  for (const std::string_view text : analysis::app_info(process)) line("says of itself: " + printable(text));
  if (!usage.empty()) line("used " + usage);
  if (!process.options.empty()) line("options " + printable(process.options));
  if ((process.flags & format::kProcessForked) != 0) {
    std::uint64_t inherited = 0;
    for (const reader::Thread& thread : process.threads) inherited += thread.inherited;
    line(
        fmt::format("forked by its parent, inside {} of its parent's calls (not counted here)", count_text(inherited)));
  }
  if ((process.flags & format::kProcessOff) != 0) line("started with tracing off");
  if ((process.flags & format::kProcessLate) != 0) line("ran already when tracing came (karst attach)");
  const auto duration = [&](std::uint64_t ticks) { return duration_text(trace.clock().to_ns(ticks)); };
  if (process.min_duration_ticks != 0) {
    std::uint64_t left_out = 0;
    for (const ThreadCounts& t : threads) left_out += t.short_calls;
    line(fmt::format("calls shorter than {} that contain nothing kept are left out ({} of them by the reader)",
                     duration(process.min_duration_ticks), count_text(left_out)));
  }
  if (process.clock_period_ticks != 0) {
    line(fmt::format("times by a clock thread, every {}; the longest time that it did not run: {}",
                     duration(process.clock_period_ticks), duration(process.clock_longest_ticks)));
  }
  if ((process.flags & format::kProcessDamaged) != 0) {
    line("its trace memory held values that cannot be: what was sound was kept");
  }
  const std::vector<std::string> untraced = switch_lines(trace, process);
  for (std::size_t i = 0; i < untraced.size(); ++i)
    say(screen,
        "  " + wrap(fmt::format("{:<12} {}", i == 0 ? "not traced:" : "", untraced[i]), less(screen.width(), 2), 15));
  const auto fibers = std::count_if(process.threads.begin(), process.threads.end(),
                                    [](const reader::Thread& thread) { return thread.fiber; });
  if (fibers != 0)
    line(fmt::format("{}, each as a thread of its own below, numbered from {} on",
                     plural(static_cast<std::uint64_t>(fibers), "fiber"), reader::kFirstFiberTid));
  say(screen, "");
  print_threads(process, threads, screen);
  if (process.modules.empty()) return;
  say(screen, "");
  print_modules(process, screen);
  for (const std::string& words : left_alone(process.modules)) line(words);
}

void print_text(const reader::Trace& trace, const TraceCounts& facts, Screen& screen) {
  const Clock& clock = trace.clock();
  const auto line = [&screen](const char* what, const std::string& text) {
    screen.output().append(fact(what, text, screen.width()));
  };
  head(screen,
       fmt::format("{}: {}, Karst trace version {}.{}, {}, {}", printable(trace.name()), size_text(trace.file_size()),
                   format::kMajorVersion, trace.minor_version(), trace.resolved() ? "with names" : "without names",
                   trace.complete()  ? "complete"
                   : trace.growing() ? "not finished"
                                     : "cut short"));
  line("calls", fmt::format("{}, {} of them open ({} events)", count_text(facts.calls), count_text(facts.open_calls),
                            count_text(trace.event_count())));
  if (facts.unwound_calls + facts.jumped_calls + facts.tail_calls != 0) {
    line("ended by",
         fmt::format("exceptions {}, longjmp {}, tail calls {}; the others returned", count_text(facts.unwound_calls),
                     count_text(facts.jumped_calls), count_text(facts.tail_calls)));
    if (facts.left_calls != 0)
      line("",
           fmt::format("{} of the tail calls were left before what they called came back: it stands beside them, and "
                       "is not in their times",
                       count_text(facts.left_calls)));
  }
  if (facts.notes != 0) line("notes", fmt::format("{} (karst notes)", count_text(facts.notes)));
  line("span", fmt::format("{} kept; {} events overwritten, {} lost", duration_text(facts.span_ns),
                           count_text(facts.overwritten), count_text(facts.lost)));
  line("clock",
       fmt::format("{} ticks a second, {}; {} readings of the kernel's clocks", count_text(clock.ticks_per_second),
                   answers::rate_source_words(clock.rate_source), clock.pairs.size()));
  const std::uint64_t started = analysis::realtime_ns(clock, analysis::first_ticks(trace));
  if (started != 0 && trace.event_count() != 0) line("first event", time_text(started));
  line("sources", plural(trace.sources().size(), "file"));
  print_states(trace, screen);
  print_samples(trace, screen);
  const UsageWords usage(trace);
  if (const std::string words = usage.of(format::UsageOf::kMachine); !words.empty()) line("machine", words);
  if (const std::string words = usage.of(format::UsageOf::kGroup); !words.empty()) line("cgroup", words);
  print_moments(trace, screen);
  if (trace.processes().size() > 1) print_process_tree(trace, facts, screen);
  for (std::size_t i = 0; i < trace.processes().size(); ++i) {
    print_process(trace, trace.processes()[i], facts.threads[i], usage.of_process(static_cast<std::uint32_t>(i)),
                  screen);
  }
  if (!trace.untraced().empty()) {
    say(screen, "");
    head(screen, "not in the trace, though started by what is");
  }
  for (const reader::UntracedProgram& u : trace.untraced())
    say(screen, "  " + wrap(printable(u.program) + " " + printable(u.reason), less(screen.width(), 2), 4));
  if (facts.problems.empty()) return;
  say(screen, "");
  head(screen, "problems");
  for (const reader::Problem& problem : facts.problems) {
    say(screen, fmt::format("  {:>6}  ", count_text(problem.count)) +
                    wrap(printable(problem.message), less(screen.width(), 1), 10));
  }
}

void print_json(const reader::Trace& trace, const TraceCounts& facts, Output& out) {
  const answers::TraceRow row(trace, facts);
  Json json;
  json.open('{');
  answers::write_fields(json, trace, answers::traces(), &row);
  json.close('}').flush(out);
  out.append("\n");
}

int info(const Options& options) {
  std::string file = options.input.file;
  if (file.empty()) {
    auto newest = newest_trace();
    if (!newest) return fail(newest.error());
    file = std::move(*newest);
  }
  auto trace = reader::Trace::open(file);
  // Of functions only those of kept moments are named here.
  const auto keeps = [](const reader::Process& process) { return !process.moments.empty(); };
  if (trace && std::any_of(trace->processes().begin(), trace->processes().end(), keeps)) {
    const symbols::ResolveOptions names;
    symbols::name_functions(*trace, names.with(sandbox::Credentials::of_file(file)), nullptr);
  }
  if (!trace) return fail(trace.error());
  TraceCounts facts;
  {
    Progress progress("counting calls", trace->event_count());
    facts = answers::count_trace(*trace, &progress.done);
  }
  if (options.format == "json") {
    Output out = Output::to_stdout();
    print_json(*trace, facts, out);
    return finish_output(out, *trace);
  }
  Screen screen(options.text);
  print_text(*trace, facts, screen);
  return screen.finish(&*trace);
}

}  // namespace

void register_info(Command app, int& status) {
  auto options = std::make_shared<Options>();
  Command command =
      app.add_subcommand("info", "Show what a trace holds: processes, threads, modules, counts, problems");
  command.footer(
      "'open' calls have a begin or an end that is not known; 'overwritten' events\n"
      "gave way to newer ones when memory was full; 'lost' ones were never recorded.\n"
      "A trace with problems is still a trace: each line of 'problems' says what is\n"
      "affected.");
  add_file_option(command, options->input);
  add_format_options(command, options->format, {"text", "json"});
  add_text_options(command, options->text);
  command.callback([options, &status] { status = info(*options); });
}

}  // namespace karst::cli
