// SPDX-License-Identifier: MIT
#include "cli/input/target.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iostream>

#include "cli/input/program_options.h"
#include "cli/text/fzf.h"
#include "cli/text/help.h"
#include "cli/text/table.h"
#include "cli/text/terminal.h"
#include "cli/text/text.h"
#include "collect/live/control.h"
#include "format/control.h"

namespace karst::cli {
namespace {

constexpr std::size_t kMostListed = 20;

bool is_number(const std::string& text) {
  return !text.empty() && text.size() < 10 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

Error no_choice() { return {"no process was chosen"}; }

std::string first_number(const std::string& line) {
  const std::size_t from = line.find_first_of("0123456789");
  return from == std::string::npos ? std::string()
                                   : line.substr(from, line.find_first_not_of("0123456789", from) - from);
}

/// One that may be meant.
struct Candidate {
  pid_t pid = 0;
  std::string state;
  std::string name;
};

std::vector<Candidate> candidates_of(const std::vector<collect::Attached>& all) {
  std::vector<Candidate> candidates;
  candidates.reserve(all.size());
  for (const collect::Attached& a : all) candidates.push_back({a.process.pid, state_text(a), a.process.name});
  return candidates;
}

/// A line for each process, without a head, behind `indent` columns of the caller's.
std::vector<std::string> lines_of(const std::vector<const Candidate*>& all, std::size_t indent) {
  Table table({{"pid", "pid", false, true, 0, 8}, {"state", "state", true, true, 1}, {"name", "name", true}},
              Shorten::kEnd);
  for (const Candidate* one : all) table.add({std::to_string(one->pid), one->state, printable(one->name)});
  const std::size_t width = terminal_width();
  std::vector<std::string> lines = table.lines(width > indent ? width - indent : width);
  lines.erase(lines.begin());
  return lines;
}

std::string list_of(const std::vector<Candidate>& all) {
  std::vector<const Candidate*> shown;
  for (std::size_t i = 0; i < std::min(all.size(), kMostListed); ++i) shown.push_back(&all[i]);
  std::string text;
  for (const std::string& line : lines_of(shown, 0)) text += "\n" + line;
  if (all.size() > kMostListed) text += fmt::format("\n  and {} more", all.size() - kMostListed);
  return text;
}

bool is_terminal() { return isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1; }

/// A numbered list; what is typed narrows it, a number or an empty line (if one is left) chooses. Gives a place in
/// `all`.
Result<std::size_t> choose_by_number(const std::vector<Candidate>& all) {
  std::vector<std::string> names;
  names.reserve(all.size());
  for (const Candidate& one : all) names.push_back(one.name + " " + std::to_string(one.pid));
  std::string typed;
  for (;;) {
    const std::vector<std::size_t> shown = collect::fuzzy_matches(names, typed);
    std::vector<const Candidate*> listed;
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
    if (!std::getline(std::cin, line)) return no_choice();
    if (is_number(line)) {
      const auto at = static_cast<std::size_t>(std::stoul(line));
      if (at >= 1 && at <= std::min(shown.size(), kMostListed)) return shown[at - 1];
      for (std::size_t i = 0; i < all.size(); ++i)
        if (std::to_string(all[i].pid) == line) return i;
    }
    if (line.empty() && shown.size() == 1) return shown[0];
    typed = line;
  }
}

/// By fzf, where there is one; else by number.
Result<std::size_t> choose(const std::vector<Candidate>& all) {
  std::vector<const Candidate*> listed;
  listed.reserve(all.size());
  for (const Candidate& one : all) listed.push_back(&one);
  const auto line = choose_by_fzf(lines_of(listed, 4));
  if (!line) return choose_by_number(all);
  const auto at = std::find_if(all.begin(), all.end(),
                               [&](const Candidate& one) { return std::to_string(one.pid) == first_number(*line); });
  if (at == all.end()) return no_choice();
  return static_cast<std::size_t>(at - all.begin());
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
    return Error{"several traced processes are called '" + text +
                 "'; give the number of one:" + list_of(candidates_of(named))};
  }
  auto all = collect::find_traced();
  if (all.empty()) return Error{"there is no traced process that you may look into"};
  if (!is_terminal()) return Error{"which process? These are traced:" + list_of(candidates_of(all))};
  const auto chosen = choose(candidates_of(all));
  if (!chosen) return chosen.error();
  return std::move(all[*chosen]);
}

namespace {

/// Of all processes, traced or not.
Result<pid_t> find_number(const std::string& text) {
  std::vector<Candidate> all, named;
  std::vector<std::string> names;
  for (const collect::ProcessFacts& facts : collect::find_processes()) {
    if (facts.comm == format::kMaintenanceName) continue;
    all.push_back({facts.pid, collect::user_name(facts.uid), facts.name});
    names.push_back(facts.name);
    if (facts.name == text || facts.comm == text) named.push_back(all.back());
  }
  if (text.empty()) {
    if (!is_terminal()) return Error{"which process? Its number or name is needed"};
    const auto chosen = choose(all);
    if (!chosen) return chosen.error();
    return all[*chosen].pid;
  }
  if (named.size() == 1) return named[0].pid;
  if (named.empty())
    return Error{"no process that you may attach to is called '" + text + "'" + did_you_mean(text, names)};
  return Error{"several processes are called '" + text + "'; give the number of one:" + list_of(named)};
}

}  // namespace

bool names_process(const std::string& text) {
  const auto all = is_number(text) ? std::vector<collect::ProcessFacts>() : collect::find_processes();
  return is_number(text) || std::any_of(all.begin(), all.end(), [&](const collect::ProcessFacts& facts) {
           return facts.comm != format::kMaintenanceName && (facts.name == text || facts.comm == text);
         });
}

Result<HeldProcess> find_process(const std::string& text) {
  const auto number = is_number(text) ? Result<pid_t>(static_cast<pid_t>(std::stol(text))) : find_number(text);
  return number ? HeldProcess::open(*number) : number.error();
}

Result<collect::Attached> find_or_load_target(const HeldProcess& process, const collect::PlainAttach& plain,
                                              collect::PlainPrograms& programs, collect::Brought& brought) {
  brought = {};
  auto runtime = find_runtime();
  if (!runtime) return runtime.error();
  return collect::attach_or_load(process, *runtime, plain, programs, brought);
}

std::string state_text(const collect::Attached& target) {
  const collect::ControlState s = collect::control_state(target.arena);
  std::string text = !s.enabled || s.chosen == 0 ? "off" : s.patched == s.functions ? "on" : "partly";
  if (!s.controllable) text += s.thread == format::ControlThread::kStopped ? " (no control: stopped)" : " (no control)";
  return text;
}

}  // namespace karst::cli
