// karst level: functions with handlers of a process that runs, and how much these are to do.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/output.h"
#include "choice/function_filter.h"
#include "cli/command.h"
#include "cli/table.h"
#include "cli/target.h"
#include "cli/terminal.h"
#include "cli/text.h"
#include "cli/trace_input.h"
#include "collect/live/handlers.h"

namespace karst::cli {
namespace {

struct Options {
  std::string target;
  std::vector<std::string> functions;
  std::string level;
  bool json = false;
  TextOptions text;
};

int print(const Options& options, const std::vector<collect::Handled>& handled) {
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

int list_or_set(const Options& options) {
  std::int32_t level = 0;
  const char* const end = options.level.data() + options.level.size();
  const auto parsed = std::from_chars(options.level.data(), end, level);
  if (!options.level.empty() && (parsed.ec != std::errc() || parsed.ptr != end || level < 0))
    return usage_error("LEVEL " + options.level + ": a whole number from 0 to 2147483647 is needed", "level");
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
  std::fprintf(stderr, "karst: %s: level %d for the handlers of %s\n", process.c_str(), level,
               plural(handled.size(), "function").c_str());
  return kExitOk;
}

}  // namespace

void register_level(Command app, int& status) {
  auto options = std::make_shared<Options>();
  Command command =
      app.add_subcommand("level", "List functions with handlers of a running process, or set their level");
  command.footer(
      "For programs and plugins that call karst_handle() (karst/karst.h). Each function\n"
      "has a level, 1 at first. With 0 its handlers are not called; what other levels\n"
      "mean is theirs to say.\n\n"
      "  karst level PID                        lists functions, levels and calls\n"
      "  karst level PID 3 --function 'parse.*' sets levels");
  add_target(command, options->target);
  command.add_option("LEVEL", options->level, "The new level, a whole number");
  command.add_option("--function", options->functions, "Functions whose names match this regular expression")
      .type_name("REGEX");
  command.add_flag("--json", options->json, "Print JSON");
  add_text_options(command, options->text);
  command.callback([options, &status] { status = list_or_set(*options); });
}

}  // namespace karst::cli
