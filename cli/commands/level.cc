// karst on --level, karst ps --levels: functions with handlers of a process that runs, and how much these are to do.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/output.h"
#include "choice/function_filter.h"
#include "cli/command.h"
#include "cli/commands/process_views.h"
#include "cli/input/target.h"
#include "cli/input/trace_input.h"
#include "cli/text/table.h"
#include "cli/text/text.h"
#include "collect/live/handlers.h"

namespace karst::cli {
namespace {

int print(const LevelOptions& options, const std::vector<collect::Handled>& handled) {
  if (options.json) {
    Output out = Output::to_stdout();
    Json json;
    json.open('{').key("functions").open('[');
    for (const collect::Handled& f : handled)
      json.open('{').key("function").value(f.name).key("level").value(f.level).key("calls").value(f.calls).close('}');
    json.close(']').close('}');
    out.append(json.take() + "\n");
    return finish_output(out);
  }
  Screen screen(options.text);
  Table table({{"calls", "calls", false, true, 0, 10}, {"level", "level", false, true, 0, 6}, {"function", "function"}},
              Shorten::kName);
  for (const collect::Handled& f : handled)
    table.add({count_text(f.calls), std::to_string(f.level), printable(f.name)});
  table.print(screen);
  return screen.finish();
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
