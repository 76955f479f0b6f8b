// SPDX-License-Identifier: MIT
// karst tail: the calls of a traced process while it makes them, as text.
#include <fmt/format.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>

#include "arch/cpu.h"
#include "base/clock.h"
#include "cli/command.h"
#include "cli/commands/live_tree.h"
#include "cli/input/target.h"
#include "cli/text/text.h"
#include "collect/live/control.h"

namespace karst::cli {
namespace {

constexpr std::uint64_t kBetweenNs = 40'000'000;         // looks
constexpr std::uint64_t kMostBetweenNs = 1'000'000'000;  // in an arena that takes long to look at
constexpr std::uint64_t kShareOfLooks = 8;  // they take at most so much of the time when there is little to say
constexpr std::uint64_t kSilenceNs = 1'000'000'000;  // after which it is worth a word, or a look at the process

constexpr const char* kFooter = R"(Output: a line for each thread, then lines for calls in order of time:

# process 4711 app thread 4712 worker
   0.012345     4712               Queue::drain() {
   0.012350     4712   1.021 ms      Queue::pop(Item&)
   0.013380     4712                 "cache is full"
   0.013391     4712   1.046 ms    } Queue::drain()

The columns are the time since karst began to look, the thread, how long the
call took, and the call. A call within which something is shown has two lines:
where it begins and where it ends. What was open at the start comes first; its
time is negative. Behind the time a call took stands how it ended, as
'karst tree --help' says.

karst reads the memory that the program records into, and takes a share of a
CPU for that. Of a program that calls faster than lines can be written, calls
are left out in whole stretches, each with its number; what is open stays known:

   0.214006     4712                 ... 129,024 calls not shown

Calls are known until the memory for the history is full ('karst run -m');
what was overwritten before it was read is counted, too. The process alone is
followed, not those that it starts. Ctrl-C ends karst, and the program goes
on.)";

struct Options {
  std::string target;
  LiveArguments live;
};

volatile bool g_stop = false;

/// Ctrl-C and the like end the looking, for as long as this lives; the second one ends karst in the usual way.
class Stops {
 public:
  Stops() {
    struct sigaction stop {};
    stop.sa_handler = [](int) { g_stop = true; };
    stop.sa_flags = static_cast<int>(SA_RESETHAND);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
      struct sigaction before {};
      // What was ignored stays so.
      if (sigaction(signal, nullptr, &before) == 0 && before.sa_handler != SIG_IGN) sigaction(signal, &stop, nullptr);
    }
  }
};

/// The number is another process's now, or the process runs another program.
bool is_another(pid_t pid, std::uint64_t inode) {
  const auto now = collect::attach(pid);
  return !now || now->arena.inode() != inode;
}

void sleep_ns(std::uint64_t ns) {
  timespec time{static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
  nanosleep(&time, nullptr);  // a signal ends it
}

std::string why_silent(pid_t pid, const collect::ArenaView& arena) {
  const collect::ControlState s = collect::control_state(arena);
  const auto facts = collect::process_facts(pid);
  if (facts && (facts->state == 'T' || facts->state == 't')) return "; the process is stopped";
  if (!s.enabled || s.chosen == 0) return fmt::format("; tracing is off ('karst on {}' begins it)", pid);
  return "; Ctrl-C ends this";
}

int tail(const Options& options) {
  const auto filter = LiveFilter::of(options.live);
  if (!filter) return usage_error(filter.error().message, "tail");
  auto target = find_target(options.target);
  if (!target) return fail(target.error());
  if (!target->arena.counts().empty())
    return fail({fmt::format("process {} ({}) counts its calls only ('karst run --count'); there is no order to show",
                             target->process.pid, target->process.name)});
  const pid_t pid = target->process.pid;
  const std::uint64_t inode = target->arena.inode();
  const Stops stops;
  LiveTree tree(*filter, chosen_width(options.live.text), has_colour(STDOUT_FILENO));
  const std::uint64_t from = arch::time_stamp();
  const symbols::ResolveOptions names = collect::resolve_options(*target);
  const std::size_t process = tree.add(static_cast<std::uint32_t>(pid), std::move(target->arena), names, from, from);
  std::string text;
  std::uint64_t heard_ns = clock_ns(CLOCK_MONOTONIC);
  bool has_said = false;
  const char* end = nullptr;
  while (!g_stop) {
    // First, so that what it did last is there when it is read for the last time.
    if (collect::has_ended(pid)) end = "has ended";
    const std::uint64_t before_ns = clock_ns(CLOCK_MONOTONIC);
    text.clear();
    const bool more = tree.look(process, end != nullptr, text);
    if (!write_live(STDOUT_FILENO, text, &g_stop) && !g_stop)
      return errno == EPIPE ? kExitFailed
                            : fail({std::string("cannot write standard output: ") + std::strerror(errno)});
    if (more) continue;
    if (end != nullptr) break;
    const std::uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    if (!text.empty()) heard_ns = now_ns;
    if (now_ns - heard_ns >= kSilenceNs) {
      heard_ns = now_ns;
      if (is_another(pid, inode)) {
        end = collect::has_ended(pid) ? "has ended" : "runs another program now";
        continue;
      }
      if (!has_said && tree.counts().lines == 0)
        say((filter->chooses() ? "no call was seen yet that the options let through"
                               : "no traced function was called yet") +
            why_silent(pid, tree.arena(process)));
      has_said = true;
    }
    sleep_ns(std::clamp(kShareOfLooks * (now_ns - before_ns), kBetweenNs, kMostBetweenNs));
  }
  if (end != nullptr) say(fmt::format("process {} ({}) {}", pid, target->process.name, end));
  say(live_summary(tree.counts(), *filter));
  return kExitOk;
}

}  // namespace

void register_tail(Command app, int& status) {
  auto options = std::make_shared<Options>();
  Command command = app.add_subcommand("tail", "Print the calls of a traced process while it makes them");
  command.footer(kFooter);
  add_target(command, options->target);
  add_live_options(command, options->live);
  command.callback([options, &status] { status = tail(*options); });
}

}  // namespace karst::cli
