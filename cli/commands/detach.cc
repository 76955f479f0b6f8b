// SPDX-License-Identifier: MIT
// karst off --detach: the process runs on with the code that its files have, until it is attached to again.
#include <fmt/format.h>

#include <chrono>
#include <string>

#include "cli/command.h"
#include "cli/commands/process_views.h"
#include "cli/input/system.h"
#include "cli/input/target.h"
#include "cli/text/text.h"
#include "collect/inject/patch.h"
#include "collect/live/control.h"
#include "collect/live/system.h"

namespace karst::cli {
namespace {

constexpr std::chrono::milliseconds kLimit{10'000};

/// Watches end first: they would come back with tracing.
Status end_all(collect::Attached& target) {
  auto requester = collect::Requester::take(target);
  if (!requester) return requester.error();
  const std::size_t rules = target.arena.rules().size();
  for (std::size_t rule = 0; rule < rules; ++rule) requester->writer().end_watches(static_cast<std::uint32_t>(rule));
  requester->set_off_at(0);
  requester->set_enabled(false);
  return requester->apply(kLimit);
}

}  // namespace

int detach(const std::string& of) {
  auto target = find_target(of);
  if (!target) return fail(target.error());
  const bool was_on = collect::control_state(target->arena).enabled;
  if (const Status done = end_all(*target); !done) return fail(done.error());
  if (const Status done = end_all_systems(*target); !done) return fail(done.error());
  const auto restored = collect::take_back_jumps(target->held);
  if (!restored) return fail({"its functions are untraced, but still have their jumps: " + restored.error().message});
  if (const Status done = collect::give_back_functions(*target, kLimit); !done) return fail(done.error());
  const pid_t pid = target->process.pid;
  say(fmt::format("process {} ({}) {}", pid, printable(target->process.name),
                  was_on ? "is not traced any more" : "was detached already"));
  say(fmt::format("what was recorded: karst snapshot {}; again: karst attach {}", pid, pid));
  return kExitOk;
}

}  // namespace karst::cli
