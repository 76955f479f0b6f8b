// SPDX-License-Identifier: MIT
// karst where: the calls that each thread is in: of a process that runs or hangs, a core, an arena's file, a trace.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>

#include "analysis/standing.h"
#include "analysis/waits.h"
#include "answers/standing.h"
#include "base/output.h"
#include "cli/command.h"
#include "cli/commands/answer.h"
#include "cli/input/target.h"
#include "cli/input/trace_input.h"
#include "cli/text/table.h"
#include "cli/text/terminal.h"
#include "cli/text/text.h"
#include "collect/live/threads.h"
#include "collect/recover/recover.h"
#include "format/moments.h"
#include "symbols/open_trace.h"
#include "words/wait_words.h"

namespace karst::cli {
namespace {

using answers::StandingCallRow;
using answers::StandingProcessRow;
using answers::StandingThreadRow;

struct Options {
  std::string of;
  std::string program;
  bool json = false;
  TextOptions text;
};

/// What the answer is made of, wherever it comes from.
struct Seen {
  std::vector<std::byte> bytes;  ///< of `trace`, if it was made for this
  std::optional<reader::Trace> trace;
  std::vector<collect::LiveThread> live;  ///< of a process that runs
  std::uint64_t now = 0;                  ///< ticks: open calls last until then
};

/// A trace of what a process has in its arena, in memory.
Status make_trace(Seen& seen, collect::Leftover left, const std::string& program) {
  auto writer = writing::TraceWriter::to_memory(seen.bytes);
  collect::RecoverOptions options;
  options.program = program;
  options.recording.source = false;
  const auto made = collect::recover(std::move(left), std::move(options), writer);
  if (!made) return made.error();
  for (const reader::Problem& problem : made->problems) say(problem.message);
  auto trace = reader::Trace::open_memory(seen.bytes, "what the process has");
  if (!trace) return trace.error();
  seen.trace.emplace(std::move(*trace));
  return Unit{};
}

Result<Seen> look_at_process(const Options& options) {
  auto target = find_target(options.of);
  if (!target) return target.error();
  Seen seen;
  seen.live = collect::live_threads(target->held);
  seen.now = read_clock_pair().ticks;
  auto rights = collect::resolve_options(*target).as;
  if (const Status made =
          make_trace(seen, {std::move(target->arena), std::move(rights), std::nullopt, true}, options.program);
      !made)
    return made.error();
  return seen;
}

Result<Seen> look_at_file(const Options& options) {
  Seen seen;
  std::vector<reader::Problem> problems;
  auto trace = symbols::open_trace(options.of, {}, &problems);
  if (trace) {
    for (const reader::Problem& problem : problems) say(problem.message);
    seen.trace.emplace(std::move(*trace));
    return seen;
  }
  auto left = collect::open_leftover(options.of);
  if (!left) return Error{options.of + ": " + left.error().message};
  const bool lives = left->lives;
  const auto pid = static_cast<pid_t>(left->arena.pid());
  if (const Status made = make_trace(seen, std::move(*left), options.program); !made) return made.error();
  if (const auto process = HeldProcess::open(pid); lives && process) {
    seen.live = collect::live_threads(*process);
    seen.now = read_clock_pair().ticks;
  }
  return seen;
}

/// The moment of the crash, if the process ended by one.
const reader::Moment* crash_of(const reader::Process& process) {
  for (const reader::Moment& moment : process.moments)
    if (moment.kind == static_cast<std::uint32_t>(format::MomentKind::kCrash)) return &moment;
  return nullptr;
}

/// "running", "blocked in futex, which looks like a mutex that 4712 worker holds"; empty: not known.
std::string words_for(const collect::LiveThread& thread, const std::vector<collect::LiveThread>& all) {
  switch (thread.state) {
    case 'R':
      return "running, or waiting for a CPU";
    case 'T':
      return "stopped by a signal";
    case 't':
      return "stopped by a debugger";
    case 'S':
    case 'D':
      break;
    default:
      return "";
  }
  const std::uint32_t call = thread.syscall >= 0 ? static_cast<std::uint32_t>(thread.syscall) + 1 : 0;
  std::string text = "blocked";
  if (const std::string where = words::blocked_words(call, thread.state); !where.empty()) text += " in " + where;
  const auto holder =
      std::find_if(all.begin(), all.end(), [&](const auto& t) { return t.tid == thread.holder && thread.holder != 0; });
  if (holder != all.end()) text += fmt::format("; it looks like a mutex that {} {} holds", holder->tid, holder->name);
  return text;
}

/// Makes the answer's rows.
class Finder {
 public:
  explicit Finder(const Seen& seen) : seen_(seen), trace_(*seen.trace), states_(trace_) {
    for (const analysis::Standing& s : analysis::standings(trace_)) last_ = std::max(last_, s.last_ticks);
    for (const reader::Process& p : trace_.processes()) last_ = std::max(last_, p.end_ticks);
    if (seen.now != 0) last_ = std::max(last_, seen.now);
  }

  std::vector<StandingProcessRow> processes() const {
    std::vector<StandingProcessRow> rows;
    for (const reader::Process& process : trace_.processes()) {
      const reader::Moment* const crash = crash_of(process);
      StandingProcessRow& row = rows.emplace_back(StandingProcessRow{process.pid, process.name, {}, {}, {}});
      if (crash != nullptr) {
        row.crash = crash->what;
        row.crashed_tid = crash->tid;
      }
      row.threads = threads_of(process, crash);
    }
    return rows;
  }

 private:
  /// The one that crashed first, then those with calls, then those that the kernel alone knows.
  std::vector<StandingThreadRow> threads_of(const reader::Process& process, const reader::Moment* crash) const {
    std::vector<analysis::Standing> all;
    for (const reader::Thread& thread : process.threads) {
      const bool is_gone = !seen_.live.empty() && live_of(thread.tid) == nullptr;
      if (!thread.exited && !is_gone)
        all.push_back(analysis::standing_of(thread, reader::rebuild_calls(trace_, thread)));
    }
    std::stable_partition(all.begin(), all.end(), [](const auto& s) { return !s.calls.empty(); });
    if (crash != nullptr)
      std::stable_partition(all.begin(), all.end(), [crash](const auto& s) { return s.thread->tid == crash->tid; });
    std::vector<StandingThreadRow> rows;
    for (const analysis::Standing& standing : all) rows.push_back(row_of(process, standing, standing.thread->tid));
    for (const collect::LiveThread& live : seen_.live) {
      const auto tid = static_cast<std::uint32_t>(live.tid);
      if (std::none_of(all.begin(), all.end(), [tid](const auto& s) { return s.thread->tid == tid; }))
        rows.push_back(row_of(process, {}, tid));
    }
    return rows;
  }

  StandingThreadRow row_of(const reader::Process& process, const analysis::Standing& standing,
                           std::uint32_t tid) const {
    const collect::LiveThread* const live = live_of(tid);
    StandingThreadRow row{tid, name_of(standing, live), state_of(standing, live), {}, standing.last_ticks != 0, {}};
    if (live != nullptr && live->holder != 0) row.holder = static_cast<std::uint32_t>(live->holder);
    for (const analysis::StandingCall& call : standing.calls)
      row.calls.push_back({trace_.function(process, call.function),
                           trace_.clock().to_ns(last_ - std::min(last_, call.begin)), call.since_earlier});
    return row;
  }

  const collect::LiveThread* live_of(std::uint32_t tid) const {
    const auto found = std::find_if(seen_.live.begin(), seen_.live.end(),
                                    [tid](const auto& t) { return static_cast<std::uint32_t>(t.tid) == tid; });
    return found != seen_.live.end() ? &*found : nullptr;
  }

  static std::string name_of(const analysis::Standing& standing, const collect::LiveThread* live) {
    if (live != nullptr) return live->name;
    return standing.thread != nullptr ? standing.thread->name : "";
  }

  /// What the thread does now, or did last; empty: not known.
  std::string state_of(const analysis::Standing& standing, const collect::LiveThread* live) const {
    if (live != nullptr) return words_for(*live, seen_.live);
    const reader::ThreadStates* states = standing.thread != nullptr ? states_.states_of(*standing.thread) : nullptr;
    if (states == nullptr || states->size() == 0) return "";
    const std::size_t last = states->size() - 1;
    if (states->state[last] == reader::ThreadState::kRunning) return "running";
    if (states->state[last] != reader::ThreadState::kBlocked) return "";
    const std::string where = words::blocked_words(states->syscall[last], states->letter[last]);
    return fmt::format("blocked for {}{}", duration_text(trace_.clock().to_ns(states->end - states->begin[last])),
                       where.empty() ? "" : " in " + where);
  }

  const Seen& seen_;
  const reader::Trace& trace_;
  analysis::StateThreads states_;
  std::uint64_t last_ = 0;  ///< open calls last until then
};

std::string thread_line(const StandingThreadRow& thread, bool crashed, std::size_t width) {
  std::string line = fmt::format("thread {} {}", thread.tid, printable(thread.name));
  if (crashed) line += ": crashed here";
  if (!thread.state.empty()) line += (crashed ? ", " : ": ") + printable(thread.state);
  if (thread.calls.empty()) line += thread.has_history ? " (in no traced call)" : " (no traced call)";
  return "\n" + wrap(line, width, 2) + "\n";
}

std::string call_line(const StandingCallRow& call, std::size_t number, std::size_t width) {
  const reader::Function& f = call.function;
  const std::string before =
      fmt::format("  {:>9}{} #{:<3} ", duration_text(call.open_ns), call.since_earlier ? "+" : " ", number);
  const std::string place =
      f.file.empty() ? "" : fmt::format("  {}:{}", printable(f.file.substr(f.file.find_last_of('/') + 1)), f.line);
  const std::size_t taken = before.size() + place.size();
  return before + shorten(printable(f.name), width > taken + 20 ? width - taken : width, Shorten::kName) + place + "\n";
}

void print(const std::vector<StandingProcessRow>& processes, Screen& screen) {
  for (const StandingProcessRow& process : processes) {
    const std::string crash =
        process.crash ? fmt::format(": {} in thread {}", printable(*process.crash), *process.crashed_tid) : "";
    screen.output().append(fmt::format("process {} {}{}\n", process.pid, printable(process.name), crash));
    for (const StandingThreadRow& thread : process.threads) {
      screen.output().append(thread_line(thread, process.crashed_tid == thread.tid, screen.width()));
      for (std::size_t i = 0; i < thread.calls.size(); ++i)
        screen.output().append(call_line(thread.calls[i], i, screen.width()));
    }
  }
}

int where(const Options& options) {
  std::error_code error;
  const bool is_file = std::filesystem::exists(options.of, error);
  auto seen = is_file || options.of.find('/') != std::string::npos ? look_at_file(options) : look_at_process(options);
  if (!seen) return fail(seen.error());
  const std::vector<StandingProcessRow> processes = Finder(*seen).processes();
  if (options.json) {
    AnswerOptions json;
    json.format = "json";
    Output output = Output::to_stdout();
    write_answer(json, Answer(*seen->trace, answers::standing_processes(), json, addresses(processes)), output);
    return finish_output(output);
  }
  Screen screen(options.text);
  print(processes, screen);
  return screen.finish();
}

constexpr const char* kFooter = R"(Output: a line for each thread, the one that crashed first, then the calls that it
is in, the innermost first, with the time that each has been open:

  thread 4712 work: blocked in futex; it looks like a mutex that 4713 other holds
    2.310 s  #0   take_both(Lock&, Lock&)  locks.cc:55
    2.311 s+ #1   run()  locks.cc:70

A + means that the call began before the kept history. What a thread waits for is
said of a process that runs, and where the trace has thread states. Whether memory
that is waited for is a mutex, and whose, is a guess from its content.)";

}  // namespace

void register_where(Command app, int& status) {
  auto options = std::make_shared<Options>();
  Command command =
      app.add_subcommand("where", "Show the calls that each thread is in: of a process, a core or a trace");
  command.footer(kFooter);
  command.add_option("OF", options->of, "PID or name of a traced process; a core, an arena's file or a trace")
      .required()
      .type_name("PID|FILE");
  command.add_option("--program", options->program, "Where the executable is now, if not where it was (of a core)")
      .type_name("PATH");
  command.add_flag("--json", options->json, "Write JSON");
  add_text_options(command, options->text);
  command.callback([options, &status] { status = where(*options); });
}

}  // namespace karst::cli
