// SPDX-License-Identifier: MIT
// karst ps PID: one traced process, looked at from outside.
#include <fmt/format.h>

#include <vector>

#include "answers/data.h"
#include "base/output.h"
#include "cli/command.h"
#include "cli/commands/live.h"
#include "cli/commands/process_views.h"
#include "cli/input/target.h"
#include "cli/input/trace_input.h"
#include "cli/text/table.h"
#include "cli/text/text.h"
#include "format/moments.h"
#include "format/watch.h"

namespace karst::cli {
namespace {

const char* control_text(const collect::ControlState& c) {
  if (c.controllable) return "can be switched while it runs";
  return c.thread == format::ControlThread::kStopped
             ? "cannot be switched any more: the program asked for what a process of several threads cannot have, or "
               "for a "
               "seccomp filter"
             : "cannot be switched while it runs (control=0, or no thread could be made for that)";
}

}  // namespace

int show_process(const std::string& of, bool json, const TextOptions& text) {
  const auto target = find_target(of);
  if (!target) return fail(target.error());
  const LiveFacts f = live_facts(*target);
  const collect::ControlState& c = f.control;
  if (json) {
    Output out = Output::to_stdout();
    const LiveRow row{*target, f};
    Json object;
    object.open('{');
    answers::write_fields(object, nullptr, live_processes(), &row);
    object.close('}').flush(out);
    out.append("\n");
    return finish_output(out);
  }
  Screen screen(text);
  const auto line = [&screen](const char* what, const std::string& words) {
    screen.output().append(fact(what, words, screen.width()));
  };
  const std::string head = fmt::format("process {} {}, user {}{}", target->process.pid, printable(target->process.name),
                                       printable(collect::user_name(target->process.uid)),
                                       target->process.state == 'T'   ? ", stopped"
                                       : target->process.state == 't' ? ", in a debugger"
                                                                      : "");
  screen.output().append(screen.paint(Style::kStrong, shorten(head, screen.width(), Shorten::kEnd)) + "\n");
  line("tracing", (c.enabled ? std::string("on") : std::string("off")) +
                      (f.off_in_ns != 0 ? ", goes off in " + duration_text(f.off_in_ns) : "") + "; " + control_text(c));
  line("functions",
       fmt::format("{} of {} traced; {} chosen, {} kept out by the budget{}", count_text(c.patched),
                   count_text(c.functions), count_text(c.chosen), count_text(c.culled),
                   c.given_back != 0 ? fmt::format(", {} of them for good", count_text(c.given_back)) : ""));
  line("sites",
       fmt::format("{} patched{}", count_text(c.sites),
                   c.unpatchable_sites != 0
                       ? fmt::format("; {} cannot be changed while threads may execute them", c.unpatchable_sites)
                       : ""));
  for (const std::string& module : f.left_alone) line("not patched", module);
  line("cost", c.cost_ppm ? cost_text(c) + " of its time" : std::string("not estimated"));
  if (c.budget_ppm != 0) line("budget", fmt::format("{:.2f}%", c.budget_ppm / 10'000.0));
  const std::vector<format::ArenaWatchRule> rules = target->arena.rules();
  const std::vector<std::size_t> watched = target->arena.watched_by_rule();
  for (std::size_t i = 0; i < rules.size(); ++i)
    if (rules[i].kind != 0 && watched[i] != 0)
      line("watching",
           fmt::format("{} {}: {}",
                       rules[i].kind == static_cast<std::uint32_t>(format::MomentKind::kOver) ? "--over" : "--slowest",
                       printable(rules[i].text), plural(watched[i], "function")));
  line("calls", fmt::format("{} a second in the last second, by {:.0f}% of its blocks", count_text(f.calls_per_second),
                            f.read_share * 100));
  line("threads", fmt::format("{} of {} have made traced calls", f.threads, target->process.threads));
  line("history", fmt::format("{} in {}; {} events overwritten, {} lost", duration_text(f.history_ns),
                              size_text(f.memory), count_text(f.overwritten), count_text(f.lost)));
  line("switches", fmt::format("{}{}", count_text(c.switches),
                               c.last_patch_ns != 0 ? "; the last took " + duration_text(c.last_patch_ns) : ""));
  if (c.dropped_messages != 0)
    line("messages", fmt::format("{} of libkarst's not written: its stderr is closed, full, or another file by now",
                                 count_text(c.dropped_messages)));
  return screen.finish();
}

}  // namespace karst::cli
