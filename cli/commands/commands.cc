// SPDX-License-Identifier: MIT
// The list of subcommands: parses the command line and hands over to one of them.
#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/input/foreign.h"
#include "cli/old_names.h"
#include "cli/text/help.h"
#include "cli/text/table.h"
#include "cli/text/text.h"

namespace karst::cli {
namespace {

constexpr const char* kDescription =
    "Karst records every call of every thread of a C or C++ program, and shows them.\n\n"
    "  karst-g++ -O2 -g app.cpp -o app   build the program so that it can be traced\n"
    "  karst run ./app                   run it traced; writes app.karst\n"
    "  karst view                        look at it in the browser\n"
    "  karst slow --follow               what took far longer than usual, and why\n"
    "  karst report                      which functions took the time\n"
    "  karst tree                        every call, nested";

constexpr const char* kFooter =
    "'karst help COMMAND' or 'karst COMMAND --help' explains a command.\n"
    "Exit status: 0 done, 1 something failed, 2 the command line was not understood;\n"
    "'karst run' passes on the status of the program it ran.";

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_group().empty()) continue;  // not meant for people
    names.push_back(command->get_name());
  }
  return names;
}

int no_command(const CLI::App& app, const std::string& word) {
  const std::vector<std::string> names = command_names(app);
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  // perf's and uftrace's.
  static constexpr std::pair<std::string_view, const char*> kOthers[] = {
      {"record", "run"}, {"stat", "run --count"}, {"replay", "tree"}};
  const auto other =
      std::find_if(std::begin(kOthers), std::end(kOthers), [&](const auto& o) { return o.first == word; });
  const std::string meant = other != std::end(kOthers) ? other->second : closest(word, names);
  return usage_error("there is no command '" + word + "'; there are: " + list +
                     (meant.empty() ? "" : "\nDid you mean 'karst " + meant + "'?"));
}

const CLI::App* find_command(const CLI::App& app, std::string_view name) {
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_name() == name) return command;
  }
  return nullptr;
}

int help(const CLI::App& app, const std::string& command) {
  if (command.empty()) {
    // App::help() would explain the command in use, which is "help".
    std::fputs(app.get_formatter()->make_help(&app, app.get_name(), CLI::AppFormatMode::Normal).c_str(), stdout);
    return kExitOk;
  }
  if (const CLI::App* known = find_command(app, command_of(command)); known != nullptr) {
    std::fputs(known->help("karst").c_str(), stdout);
    return kExitOk;
  }
  return no_command(app, command);
}

// The options of `karst run` end at `--` or at the first word that is neither one nor the value of one.
// Moves what follows from `words`, whose first is the command, into `program`. (CLI11 would take the program's options
// for ours.)
void split_program(const CLI::App& launcher, std::vector<std::string>& words, std::vector<std::string>& program) {
  std::size_t at = 1;
  for (; at < words.size(); ++at) {
    std::string word = words[at];
    renew_option(launcher.get_name(), word);
    if (word == "--" || word == "-" || !word.starts_with('-')) break;
    const std::string name = word.substr(0, word.starts_with("--") ? word.find('=') : 2);
    const CLI::Option* option = launcher.get_option_no_throw(name);
    const bool whole = word == name;  // no value attached: --memory=1M, -oFILE
    if (option != nullptr && option->get_items_expected_max() > 0 && whole) ++at;
  }
  if (at >= words.size()) return;  // when the last option lacks its value, the parser says so
  const auto from = words.begin() + static_cast<std::ptrdiff_t>(at);
  program.assign(from + (*from == "--" ? 1 : 0), words.end());
  words.erase(from, words.end());
}

struct Listed {
  std::string_view name;
  const char* group;
  void (*add)(Command, int&);
  const char* first;
};
#define KARST_LIST_COMMAND(name, group, first) Listed{#name, group, register_##name, first},
constexpr Listed kCommands[] = {KARST_COMMANDS(KARST_LIST_COMMAND)};
#undef KARST_LIST_COMMAND

/// The one that is asked for; all where that is none, as for the help. There are a thousand options: to make them takes
/// longer than most of what a command does.
void add_commands(std::string_view asked, Command commands, int& status) {
  if (asked == "asked") return register_asked(commands);
  const auto known = std::find_if(std::begin(kCommands), std::end(kCommands),
                                  [=](const auto& command) { return command.name == asked; });
  const bool one = known != std::end(kCommands);
  for (auto command = one ? known : std::begin(kCommands); command != std::end(kCommands); ++command) {
    command->add(commands, status);
    CLI::App& added = *commands.app().get_subcommand(std::string(command->name));
    added.group(command->group);
    if (*command->first == '\0')
      added.get_option("--help-all")->group("");
    else
      show_first(added, command->first);
    if (one) return;
  }
  register_describe(commands);
}

}  // namespace

int run_command_line(int argc, const char* const* argv) {
  int status = kExitOk;
  open_foreign_files();
  CLI::App app(kDescription, "karst");
  app.formatter(help_formatter());
  app.footer(kFooter);
  CLI::Option* const help_all =
      app.set_help_all_flag("--help-all", "Explain all options, not those alone that are needed most");
  app.set_version_flag("--version", "karst " KARST_VERSION, "Show the version and exit");
  app.require_subcommand(0, 1);
  std::vector<std::string> program;
  const Command commands(&app, program);
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  renew_command(words);
  add_commands(words.empty() ? "" : words.front(), commands, status);
  std::string topic;
  CLI::App* help_command = app.add_subcommand("help", "Explain karst or one of its commands");
  help_command->group(kHelp);
  help_command->get_option("--help-all")->group("");
  help_all->group("");  // subcommands do not inherit one that is hidden
  help_command->add_option("COMMAND", topic, "Command to explain");
  help_command->callback([&] { status = help(app, topic); });

  if (words.empty()) {
    std::fputs(app.help().c_str(), stderr);
    return kExitUsage;
  }
  const std::string first = words.front();
  const CLI::App* chosen = find_command(app, first);
  if (chosen == nullptr && !first.starts_with('-')) {
    return no_command(app, first);
  }
  if (first == "run") split_program(*chosen, words, program);
  for (std::string& word : words) renew_option(first, word);
  if (first == "resolve") join_strip(words);
  std::reverse(words.begin(), words.end());  // as the parser wants them
  try {
    app.parse(std::move(words));
  } catch (const CLI::CallForHelp&) {
    std::fputs((chosen != nullptr ? chosen->help("karst") : app.help()).c_str(), stdout);
    return kExitOk;
  } catch (const CLI::CallForAllHelp&) {
    const CLI::App& explained = chosen != nullptr ? *chosen : app;
    std::fputs(explained.help("karst", CLI::AppFormatMode::All).c_str(), stdout);
    return kExitOk;
  } catch (const CLI::CallForVersion&) {
    std::puts("karst " KARST_VERSION);
    return kExitOk;
  } catch (const CLI::ParseError& error) {
    return usage_error(parse_message(chosen != nullptr ? *chosen : app, error),
                       chosen != nullptr ? chosen->get_name() : std::string());
  }
  return status;
}

// In lines as wide as the terminal that stderr is; else as it came.
void say(std::string_view message) {
  winsize size{};
  const bool fits = isatty(STDERR_FILENO) == 1 && ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 20;
  const std::string text = "karst: " + printable_lines(message);
  std::string out;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = std::string_view(text).substr(at, end - at);
    const bool wide = fits && text_width(line) > size.ws_col;
    out += (wide ? wrap(line, size.ws_col, 2) : std::string(line)) + "\n";
    at = end + 1;
  }
  std::fputs(out.c_str(), stderr);
}

int fail(const Error& error) {
  say(error.message);
  return kExitFailed;
}

int usage_error(std::string_view message, std::string_view command) {
  const std::string hint = command.empty() ? "karst help" : "karst help " + std::string(command);
  say(std::string(message) + "\nTry '" + hint + "'.");
  return kExitUsage;
}

}  // namespace karst::cli
