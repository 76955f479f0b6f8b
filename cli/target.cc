#include "cli/target.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iostream>

#include "cli/program_options.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "cli/text.h"
#include "collect/live/control.h"

namespace karst::cli {
namespace {

constexpr std::size_t kMostListed = 20;

bool is_number(const std::string& text) {
  return !text.empty() && text.size() < 10 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// A line for each process, without a head, behind `indent` columns of the caller's.
std::vector<std::string> lines_of(const std::vector<const collect::Attached*>& all, std::size_t indent) {
  Table table({{"pid", "pid", false, true, 0, 8}, {"state", "state", true, true, 1}, {"name", "name", true}},
              Shorten::kEnd);
  for (const collect::Attached* a : all)
    table.add({std::to_string(a->process.pid), state_text(*a), printable(a->process.name)});
  const std::size_t width = terminal_width();
  std::vector<std::string> lines = table.lines(width > indent ? width - indent : width);
  lines.erase(lines.begin());
  return lines;
}

std::string list_of(const std::vector<collect::Attached>& all) {
  std::vector<const collect::Attached*> shown;
  for (std::size_t i = 0; i < std::min(all.size(), kMostListed); ++i) shown.push_back(&all[i]);
  std::string text;
  for (const std::string& line : lines_of(shown, 0)) text += "\n" + line;
  if (all.size() > kMostListed) text += fmt::format("\n  and {} more (karst ps)", all.size() - kMostListed);
  return text;
}

/// A numbered list; what is typed narrows it, a number or an empty line (if one is left) chooses.
Result<collect::Attached> choose(std::vector<collect::Attached> all) {
  std::vector<std::string> names;
  for (const auto& a : all) names.push_back(a.process.name + " " + std::to_string(a.process.pid));
  std::string typed;
  for (;;) {
    const std::vector<std::size_t> shown = collect::fuzzy_matches(names, typed);
    std::vector<const collect::Attached*> listed;
    for (std::size_t i = 0; i < std::min(shown.size(), kMostListed); ++i) listed.push_back(&all[shown[i]]);
    std::size_t number = 0;
    for (const std::string& line : lines_of(listed, 5)) std::fprintf(stderr, "%3zu) %s\n", ++number, line.c_str());
    if (shown.size() > kMostListed) std::fprintf(stderr, "     and %zu more\n", shown.size() - kMostListed);
    std::fprintf(stderr,
                 shown.empty() ? "nothing fits '%s'; another part of the name, or nothing for all: "
                               : "a number chooses, letters narrow the list%s: ",
                 shown.empty()       ? typed.c_str()
                 : shown.size() == 1 ? ", Enter takes it"
                                     : "");
    std::string line;
    if (!std::getline(std::cin, line)) return Error{"no process was chosen"};
    if (is_number(line)) {
      const auto at = static_cast<std::size_t>(std::stoul(line));
      if (at >= 1 && at <= std::min(shown.size(), kMostListed)) return std::move(all[shown[at - 1]]);
      const auto pid =
          std::find_if(all.begin(), all.end(), [&](const auto& a) { return std::to_string(a.process.pid) == line; });
      if (pid != all.end()) return std::move(*pid);
    }
    if (line.empty() && shown.size() == 1) return std::move(all[shown[0]]);
    typed = line;
  }
}

}  // namespace

void add_target(Command command, std::string& text) {
  command.add_option("PID", text, "Process, by number or by name (of its executable); left out: choose from a list");
}

Result<collect::Attached> find_target(const std::string& text) {
  if (is_number(text)) return collect::attach(static_cast<pid_t>(std::stol(text)));
  if (!text.empty()) {
    auto named = collect::find_traced(text);
    if (named.size() == 1) return std::move(named[0]);
    if (named.empty()) return Error{"no traced process is called '" + text + "' (karst ps lists those that there are)"};
    return Error{"several traced processes are called '" + text + "'; give the number of one:" + list_of(named)};
  }
  auto all = collect::find_traced();
  if (all.empty()) return Error{"there is no traced process that you may look into"};
  if (isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1) return choose(std::move(all));
  return Error{"which process? These are traced:" + list_of(all)};
}

Result<collect::Attached> find_or_load_target(const std::string& text, const collect::PlainAttach& plain,
                                              collect::PlainPrograms& programs, collect::Brought& brought) {
  brought = {};
  if (!is_number(text)) return find_target(text);
  auto runtime = find_runtime();
  if (!runtime) return runtime.error();
  return collect::attach_or_load(static_cast<pid_t>(std::stol(text)), *runtime, plain, programs, brought);
}

std::string state_text(const collect::Attached& target) {
  const collect::ControlState s = collect::control_state(target.arena);
  std::string text = !s.enabled || s.chosen == 0 ? "off" : s.patched == s.functions ? "on" : "partly";
  if (!s.controllable) text += s.thread == format::ControlThread::kStopped ? " (no control: stopped)" : " (no control)";
  return text;
}

}  // namespace karst::cli
