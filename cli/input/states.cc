// SPDX-License-Identifier: MIT
#include "cli/input/states.h"

#include <fmt/format.h>

#include <cstdio>
#include <utility>

#include "answers/traces.h"
#include "base/cache_directory.h"
#include "cli/command.h"
#include "cli/input/trace_input.h"
#include "cli/text/table.h"
#include "cli/text/text.h"
#include "format/options.h"

namespace karst::cli {
namespace {

/// True the first time for this user: a file remembers it. False where there is no place for it.
bool is_first_time() { return CacheDirectory(CacheDirectory::of_user(), {}, 0).make_mark("no-thread-states-said"); }

const char* backend_name(format::StateBackend backend) {
  return backend == format::StateBackend::kFtrace ? "ftrace" : "perf events";
}

}  // namespace

void add_state_options(Command command, StateArguments& arguments) {
  command
      .add_option("--sched", arguments.sched,
                  "How to record when threads run and wait: auto (the best that works; ftrace joins after 50 ms,\n"
                  "nothing waits for it), ftrace (for root: also who woke whom and what else ran, from the begin),\n"
                  "perf (without privileges), off; karst info says which it was")
      .check(one_of({"auto", "perf", "ftrace", "off"}))
      .type_name("auto|perf|ftrace|off");
  command.add_flag("--syscalls", arguments.syscalls, "Record system calls too, by which blocked threads wait (ftrace)");
  command.add_flag("--cpus", arguments.cpus,
                   "A lane per CPU in the timeline: which thread and function ran there, with ftrace other\n"
                   "processes' threads too");
  command
      .add_option("--sched-memory", arguments.memory,
                  "Memory for what is recorded of thread states; when it is full, the oldest goes (default 64M)")
      .type_name("SIZE");
}

Result<kernel::StateOptions> state_options(const StateArguments& arguments) {
  kernel::StateOptions options;
  if (arguments.sched == "perf") options.wanted = kernel::Wanted::kPerf;
  if (arguments.sched == "ftrace") options.wanted = kernel::Wanted::kFtrace;
  if (arguments.sched == "off") options.wanted = kernel::Wanted::kOff;
  options.syscalls = arguments.syscalls;
  options.cpus = arguments.cpus;
  if (arguments.memory) {
    std::uint64_t bytes = 0;
    if (!format::parse_memory_size(arguments.memory->c_str(), bytes) || bytes < kernel::kLeastStateMemory)
      return Error{"--sched-memory " + *arguments.memory + ": a size from 1M to 64G is needed, like 256M"};
    options.memory = bytes;
  }
  return options;
}

void report_missing_states(const StateArguments& arguments, const reader::StateSource& source) {
  if (source.backend != format::StateBackend::kNone || arguments.sched == "off") return;
  if (arguments.sched == "auto" && !is_first_time()) return;
  say("when threads ran and waited is not in the trace: " + source.note +
      (arguments.sched == "auto" ? " (said once; karst info says it of each trace)" : ""));
}

void print_states(const reader::Trace& trace, Screen& screen) {
  const reader::States& states = trace.states();
  const reader::StateSource& s = states.source();
  const char* label = "states";
  const auto line = [&](const std::string& text) {
    screen.output().append(fact(std::exchange(label, ""), text, screen.width()));
  };
  if (s.backend == format::StateBackend::kNone) return line("not recorded: " + printable(answers::why_no_states(s)));
  const auto has = [&s](format::StatesFlag flag) { return (s.flags & flag) != 0; };
  // A snapshot may have taken them over without the time in which they were recorded.
  const std::string over =
      s.end_ticks > s.begin_ticks ? " over " + duration_text(trace.clock().to_ns(s.end_ticks - s.begin_ticks)) : "";
  line(fmt::format("by {}{}; {} of {} on {}; times within {} ns of the calls'", backend_name(s.backend), over,
                   plural(states.log().records.size(), "record"), plural(states.threads().size(), "thread"),
                   plural(s.cpus, "CPU"), s.clock_error_ns));
  const std::uint64_t wakes_from = states.log().wakes_from();
  const char* const wakers = has(format::kStatesWakes)      ? "with wakers, "
                             : has(format::kStatesOwnWakes) ? "with wakers of the program's own, "
                                                            : "";
  line(fmt::format("{}{}{}{}{} lost, {} overwritten{}", wakers, has(format::kStatesOthers) ? "other processes, " : "",
                   has(format::kStatesWakes) && wakes_from > s.begin_ticks
                       ? "both from " + duration_text(trace.clock().to_ns(wakes_from - s.begin_ticks)) + " on" +
                             (has(format::kStatesOwnWakes) ? " (wakers of the program's own from the begin), " : ", ")
                       : "",
                   has(format::kStatesSyscalls) ? "system calls, " : "", count_text(s.lost_events),
                   count_text(s.overwritten_events),
                   s.overwritten_events != 0 ? " (memory was full; see --sched-memory)" : ""));
  line(plural(s.migrations, "migration") + " of threads between CPUs" +
       (has(format::kStatesFaults) ? ", " + plural(s.page_faults, "page fault") + " in user code" : ""));
  if (const reader::StateDoubts& d = states.doubts(); d.stretches != 0 || d.left_out != 0)
    line(fmt::format("not known: {} of threads, {} together, the longest {}{}", plural(d.stretches, "stretch", "es"),
                     duration_text(trace.clock().to_ns(d.ticks)), duration_text(trace.clock().to_ns(d.longest)),
                     d.left_out != 0 ? "; the kernel left out records in " + plural(d.left_out, "place") : ""));
  if (!s.note.empty()) line(printable(s.note));
}

}  // namespace karst::cli
