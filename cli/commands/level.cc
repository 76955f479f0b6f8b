// SPDX-License-Identifier: MIT
// karst on --level, karst ps --levels: functions with handlers of a process that runs, and how much these are to do.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <vector>

#include "answers/programs.h"
#include "choice/function_filter.h"
#include "cli/command.h"
#include "cli/commands/answer.h"
#include "cli/commands/process_views.h"
#include "cli/input/target.h"
#include "cli/input/trace_input.h"
#include "cli/text/text.h"
#include "collect/live/handlers.h"

namespace karst::cli {
namespace {

int print(const LevelOptions& options, const std::vector<collect::Handled>& handled) {
  std::vector<answers::HandledFunctionRow> rows;
  rows.reserve(handled.size());
  for (const collect::Handled& f : handled) rows.push_back({f.name, f.calls, f.level});
  return print_answer(options.answer, Answer(answers::handled_functions(), options.answer, addresses(rows)));
}

}  // namespace

int list_or_set_levels(const LevelOptions& options) {
  std::int32_t level = 0;
  const char* const end = options.level.data() + options.level.size();
  const auto parsed = std::from_chars(options.level.data(), end, level);
  if (!options.level.empty() && (parsed.ec != std::errc() || parsed.ptr != end || level < 0))
    return usage_error("--level " + options.level + ": a whole number from 0 to 2147483647 is needed", "on");
  const choice::FunctionFilter filter(options.functions);
  const auto target = find_target(options.target);
  if (!target) return fail(target.error());
  auto found = collect::handled_functions(*target);
  if (!found) return fail(found.error());
  std::vector<collect::Handled>& handled = found->all;
  const std::string process = fmt::format("process {} ({})", target->process.pid, printable(target->process.name));
  if (handled.empty()) return fail({process + " has no functions with handlers; karst_handle() makes them"});
  std::erase_if(handled, [&](const collect::Handled& f) { return !filter.keeps(f.name); });
  if (handled.empty())
    return fail({process + " has no handlers for functions of these names" + filter.complaint() +
                 "; without --function karst lists all"});
  if (options.level.empty()) return print(options, handled);
  if (const Status set = collect::set_level(*target, *found, level); !set) return fail(set.error());
  say(fmt::format("{}: level {} for the handlers of {}", process, level, plural(handled.size(), "function")));
  return kExitOk;
}

}  // namespace karst::cli
