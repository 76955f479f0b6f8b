// karst where: the calls that each thread is in: of a process that runs or hangs, a core, an arena's file, a trace.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>

#include "analysis/standing.h"
#include "analysis/waits.h"
#include "base/json.h"
#include "base/output.h"
#include "cli/command.h"
#include "cli/input/target.h"
#include "cli/input/trace_input.h"
#include "cli/text/table.h"
#include "cli/text/terminal.h"
#include "cli/text/text.h"
#include "collect/live/threads.h"
#include "collect/recover/recover.h"
#include "format/moments.h"
#include "symbols/open_trace.h"

namespace karst::cli {
namespace {

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
  if (const std::string where = analysis::blocked_words(call, thread.state); !where.empty()) text += " in " + where;
  const auto holder =
      std::find_if(all.begin(), all.end(), [&](const auto& t) { return t.tid == thread.holder && thread.holder != 0; });
  if (holder != all.end()) text += fmt::format("; it looks like a mutex that {} {} holds", holder->tid, holder->name);
  return text;
}

class Printer {
 public:
  /// Lines of text of at most `width` columns; 0: of any length.
  Printer(const Seen& seen, std::size_t width) : seen_(seen), trace_(*seen.trace), states_(trace_), width_(width) {
    for (const analysis::Standing& s : analysis::standings(trace_)) last_ = std::max(last_, s.last_ticks);
    for (const reader::Process& p : trace_.processes()) last_ = std::max(last_, p.end_ticks);
    if (seen.now != 0) last_ = std::max(last_, seen.now);
  }

  std::string text() {
    for_each_process([this](const reader::Process& process, const reader::Moment* crash) {
      text_ +=
          fmt::format("process {} {}{}\n", process.pid, printable(process.name),
                      crash != nullptr ? fmt::format(": {} in thread {}", printable(crash->what), crash->tid) : "");
      for_each_thread(process, crash, [this, &process, crash](const analysis::Standing& standing, std::uint32_t tid) {
        thread_line(standing, tid, crash != nullptr && crash->tid == tid);
        std::size_t number = 0;
        for (const analysis::StandingCall& call : standing.calls) {
          const reader::Function& f = trace_.function(process, call.function);
          const std::string before =
              fmt::format("  {:>9}{} #{:<3} ", open_for(call), call.since_earlier ? "+" : " ", number++);
          const std::string place = place_of(f);
          const std::size_t taken = before.size() + place.size();
          text_ += before;
          text_ += shorten(printable(f.name), width_ > taken + 20 ? width_ - taken : width_, Shorten::kName);
          text_ += place;
          text_ += "\n";
        }
      });
    });
    return std::move(text_);
  }

  std::string json() {
    Json json;
    json.open('{').key("processes").open('[');
    for_each_process([&](const reader::Process& process, const reader::Moment* crash) {
      json.line().open('{').field("pid", process.pid).field("name", process.name);
      json.field("crash", crash != nullptr ? std::optional(crash->what) : std::nullopt);
      json.field("crashed_tid", crash != nullptr ? std::optional(crash->tid) : std::nullopt).key("threads").open('[');
      for_each_thread(process, crash, [&](const analysis::Standing& standing, std::uint32_t tid) {
        const collect::LiveThread* live = live_of(tid);
        json.line().open('{').field("tid", tid).field("name", name_of(standing, tid));
        json.field("state", state_of(standing, tid));
        json.field("holder_tid", live != nullptr && live->holder != 0 ? std::optional(live->holder) : std::nullopt);
        json.key("calls").open('[');
        for (const analysis::StandingCall& call : standing.calls) {
          const reader::Function& f = trace_.function(process, call.function);
          json.line().open('{').field("function", f.name).field("file", f.file).field("line", f.line);
          json.field("open_ns", trace_.clock().to_ns(last_ - std::min(last_, call.begin)));
          json.field("since_earlier", call.since_earlier).close('}');
        }
        json.close(']').close('}');
      });
      json.close(']').close('}');
    });
    json.close(']').close('}');
    return json.take() + "\n";
  }

 private:
  template <typename Use>
  void for_each_process(Use&& use) {
    for (const reader::Process& process : trace_.processes()) use(process, crash_of(process));
  }

  /// The one that crashed first, then those with calls, then those that the kernel alone knows.
  template <typename Use>
  void for_each_thread(const reader::Process& process, const reader::Moment* crash, Use&& use) {
    std::vector<analysis::Standing> all;
    for (const reader::Thread& thread : process.threads) {
      const bool is_gone = !seen_.live.empty() && live_of(thread.tid) == nullptr;
      if (!thread.exited && !is_gone)
        all.push_back(analysis::standing_of(thread, reader::rebuild_calls(trace_, thread)));
    }
    std::stable_partition(all.begin(), all.end(), [](const auto& s) { return !s.calls.empty(); });
    if (crash != nullptr)
      std::stable_partition(all.begin(), all.end(), [crash](const auto& s) { return s.thread->tid == crash->tid; });
    for (const analysis::Standing& standing : all) use(standing, standing.thread->tid);
    for (const collect::LiveThread& live : seen_.live) {
      const auto is_it = [&](const auto& s) { return s.thread->tid == static_cast<std::uint32_t>(live.tid); };
      if (std::none_of(all.begin(), all.end(), is_it)) use(analysis::Standing{}, static_cast<std::uint32_t>(live.tid));
    }
  }

  const collect::LiveThread* live_of(std::uint32_t tid) const {
    const auto found = std::find_if(seen_.live.begin(), seen_.live.end(),
                                    [tid](const auto& t) { return static_cast<std::uint32_t>(t.tid) == tid; });
    return found != seen_.live.end() ? &*found : nullptr;
  }

  std::string name_of(const analysis::Standing& standing, std::uint32_t tid) const {
    if (const collect::LiveThread* live = live_of(tid)) return live->name;
    return standing.thread != nullptr ? standing.thread->name : "";
  }

  /// What the thread does now, or did last; empty: not known.
  std::string state_of(const analysis::Standing& standing, std::uint32_t tid) const {
    if (const collect::LiveThread* live = live_of(tid)) return words_for(*live, seen_.live);
    const reader::ThreadStates* states = standing.thread != nullptr ? states_.states_of(*standing.thread) : nullptr;
    if (states == nullptr || states->size() == 0) return "";
    const std::size_t last = states->size() - 1;
    if (states->state[last] == reader::ThreadState::kRunning) return "running";
    if (states->state[last] != reader::ThreadState::kBlocked) return "";
    const std::string where = analysis::blocked_words(states->syscall[last], states->letter[last]);
    return fmt::format("blocked for {}{}", duration_text(trace_.clock().to_ns(states->end - states->begin[last])),
                       where.empty() ? "" : " in " + where);
  }

  void thread_line(const analysis::Standing& standing, std::uint32_t tid, bool crashed) {
    std::string line = fmt::format("\nthread {} {}", tid, printable(name_of(standing, tid)));
    if (crashed) line += ": crashed here";
    if (const std::string state = state_of(standing, tid); !state.empty())
      line += (crashed ? ", " : ": ") + printable(state);
    if (standing.calls.empty()) line += standing.last_ticks == 0 ? " (no traced call)" : " (in no traced call)";
    text_ += (width_ != 0 ? "\n" + wrap(line.substr(1), width_, 2) : line) + "\n";
  }

  std::string open_for(const analysis::StandingCall& call) const {
    return duration_text(trace_.clock().to_ns(last_ - std::min(last_, call.begin)));
  }
  static std::string place_of(const reader::Function& f) {
    if (f.file.empty()) return "";
    return fmt::format("  {}:{}", printable(f.file.substr(f.file.find_last_of('/') + 1)), f.line);
  }

  const Seen& seen_;
  const reader::Trace& trace_;
  analysis::StateThreads states_;
  std::size_t width_;
  std::uint64_t last_ = 0;  ///< open calls last until then
  std::string text_;
};

int where(const Options& options) {
  std::error_code error;
  const bool is_file = std::filesystem::exists(options.of, error);
  auto seen = is_file || options.of.find('/') != std::string::npos ? look_at_file(options) : look_at_process(options);
  if (!seen) return fail(seen.error());
  if (options.json) {
    Output output = Output::to_stdout();
    output.append(Printer(*seen, 0).json());
    return finish_output(output);
  }
  Screen screen(options.text);
  screen.output().append(Printer(*seen, screen.width()).text());
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
