// SPDX-License-Identifier: MIT
#include "cli/commands/watching.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/input/program_options.h"
#include "cli/text/text.h"
#include "collect/live/control.h"
#include "symbols/resolve.h"

namespace karst::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kLimit{10'000};
constexpr timespec kLook{0, 20'000'000};  // between two looks for libraries

void say_of(const collect::Attached& target, const std::string& what) {
  say(fmt::format("process {} ({}): {}", target.process.pid, printable(target.process.name), what));
}

/// Functions that are watched, and that cannot be.
struct Watched {
  std::size_t matching = 0;
  std::size_t refused = 0;
};

/// Those of the functions from `first` on that the rules mean.
Result<Watched> watch_from(collect::Attached& target, const collect::WatchOptions& watch, std::uint32_t first) {
  reader::Process process = target.arena.process();
  symbols::resolve(process, collect::resolve_options(target));
  std::vector<const reader::Function*> functions;
  std::vector<std::uint32_t> ids;
  for (const reader::Function& f : process.functions) {
    if (f.id < first || f.id == 0 || !watch.watches(f.name)) continue;
    functions.push_back(&f);
    ids.push_back(f.id);
  }
  Watched done;
  if (functions.empty()) return done;
  auto requester = collect::Requester::take(target);
  if (!requester) return requester.error();
  requester->choose(ids, true);
  requester->set_enabled(true);
  const std::uint32_t refused_before = target.arena.watch_losses().functions_refused;
  std::size_t no_room = 0;
  done.matching = collect::watch_functions(requester->writer(), watch, functions, no_room) + no_room;
  if (const Status applied = requester->apply(kLimit); !applied) return applied.error();
  done.refused = no_room + (target.arena.watch_losses().functions_refused - refused_before);
  return done;
}

Status end_rules(collect::Attached& target, const std::vector<std::uint32_t>& rules, std::size_t& ended) {
  auto requester = collect::Requester::take(target);
  if (!requester) return requester.error();
  for (const std::uint32_t rule : rules) ended += requester->writer().end_watches(rule);
  return ended == 0 ? Status(Unit{}) : requester->apply(kLimit);
}

std::vector<std::uint32_t> rules_of(const collect::ArenaView& arena, const collect::WatchOptions& watch) {
  const std::vector<format::ArenaWatchRule> all = arena.rules();
  std::vector<std::uint32_t> found;
  for (const collect::WatchRule& rule : watch.rules) {
    const format::ArenaWatchRule record = rule.record(watch.margin_ns);
    for (std::uint32_t i = 0; i < all.size(); ++i)
      if (std::memcmp(&all[i], &record, sizeof record) == 0) found.push_back(i);
  }
  return found;
}

bool has_ended(const collect::Attached& target) {
  const auto facts = collect::process_facts(target.held);
  return !facts || facts->state == 'Z' || facts->state == 'X';
}

/// Until the time is up, somebody is tired of it, or the process has ended (then false).
Result<bool> follow_libraries(collect::Attached& target, const collect::WatchOptions& watch, const WatchStay& stay,
                              std::uint32_t known) {
  sigset_t ends;
  sigemptyset(&ends);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&ends, signal);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  const auto end = steady_clock::now() + std::chrono::nanoseconds(stay.time_ns);
  while (sigtimedwait(&ends, nullptr, &kLook) < 0 && (stay.time_ns == 0 || steady_clock::now() < end)) {
    if (has_ended(target)) return false;
    const std::uint32_t count = target.arena.function_count();
    if (count == known) continue;
    auto more = watch_from(target, watch, known + 1);
    if (!more) {
      if (has_ended(target)) return false;
      return more.error();
    }
    known = count;
    if (more->matching != more->refused)
      say_of(target, plural(more->matching - more->refused, "function") + " of a library that has come watched");
  }
  return !has_ended(target);
}

}  // namespace

int begin_watching(collect::Attached& target, const collect::WatchOptions& watch, const WatchStay& stay) {
  const std::string pid = std::to_string(target.process.pid);
  const bool stays = stay.stay || stay.time_ns != 0;
  const std::uint32_t known = target.arena.function_count();
  auto writer = collect::ArenaWriter::of(target.arena);
  const std::size_t replaced = writer ? collect::end_replaced(*writer, watch) : 0;
  const auto done = watch_from(target, watch, 1);
  if (!done) return fail(done.error());
  if (done->matching == 0 && !stays)
    return fail({"no function of process " + pid +
                 " is one that --slowest or --over means; --stay waits for libraries that have such"});
  if (done->refused != 0)
    say(plural(done->refused, "function") + " of process " + pid +
        " cannot be watched: it counts calls or forbids itself system calls (prefault), memory is short, or there "
        "are more than 64 rules");
  say_of(target, plural(done->matching - done->refused, "function") + " watched" +
                     (replaced != 0 ? " in the place of " + std::to_string(replaced) : std::string()) +
                     "; 'karst snapshot' gets what is kept" +
                     (!stays              ? std::string()
                      : stay.time_ns != 0 ? "; for " + duration_text(stay.time_ns) + ", Ctrl-C ends that at once"
                                          : "; libraries that come are watched, too, until Ctrl-C"));
  if (stays) {
    const auto lives = follow_libraries(target, watch, stay, known);
    if (!lives) return fail(lives.error());
    if (*lives && stay.time_ns != 0) {
      std::size_t ended = 0;
      if (const Status s = end_rules(target, rules_of(target.arena, watch), ended); !s) return fail(s.error());
      say_of(target, plural(ended, "watch", "es") + " ended; 'karst snapshot' gets what was kept");
    }
  }
  return done->refused == 0 ? kExitOk : kExitFailed;
}

int end_watching(collect::Attached& target) {
  std::vector<std::uint32_t> rules(target.arena.rules().size());
  for (std::uint32_t i = 0; i < rules.size(); ++i) rules[i] = i;
  std::size_t ended = 0;
  if (const Status s = end_rules(target, rules, ended); !s) return fail(s.error());
  say_of(target, ended == 0 ? "nothing was watched"
                            : plural(ended, "watch", "es") + " ended; 'karst snapshot' gets what was kept");
  return kExitOk;
}

}  // namespace karst::cli
