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
#include "cli/help.h"
#include "cli/table.h"
#include "cli/text.h"

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
    "'karst run' and 'karst count' pass on the status of the program they ran.";

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
      {"record", "run"}, {"stat", "count"}, {"replay", "tree"}};
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
  if (const CLI::App* known = find_command(app, command); known != nullptr) {
    std::fputs(known->help("karst").c_str(), stdout);
    return kExitOk;
  }
  return no_command(app, command);
}

// `karst run`'s and `karst count`'s options end at `--` or at the first word that is neither one nor the value of one.
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

template <void (*kAdd)(Command, int&)>
void without_program(Command commands, int& status, const std::vector<std::string>&) {
  kAdd(commands, status);
}

/// In the order of the help.
constexpr struct {
  std::string_view name;
  void (*add)(Command, int&, const std::vector<std::string>& program);
} kCommands[] = {
    {"run", register_run},
    {"view", without_program<register_view>},
    {"slow", without_program<register_slow>},
    {"explain", without_program<register_explain>},
    {"report", without_program<register_report>},
    {"tree", without_program<register_tree>},
    {"calls", without_program<register_calls>},
    {"notes", without_program<register_notes>},
    {"flows", without_program<register_flows>},
    {"requests", without_program<register_requests>},
    {"files", without_program<register_files>},
    {"locks", without_program<register_locks>},
    {"memory", without_program<register_memory>},
    {"samples", without_program<register_samples>},
    {"stacks", without_program<register_stacks>},
    {"flame", without_program<register_flame>},
    {"graph", without_program<register_graph>},
    {"hist", without_program<register_hist>},
    {"diff", without_program<register_diff>},
    {"order", without_program<register_order>},
    {"info", without_program<register_info>},
    {"export", without_program<register_export>},
    {"import", without_program<register_import>},
    {"ps", without_program<register_ps>},
    {"top", without_program<register_top>},
    {"tail", without_program<register_tail>},
    {"on", without_program<register_on_off>},
    {"off", without_program<register_on_off>},
    {"level", without_program<register_level>},
    {"status", without_program<register_status>},
    {"snapshot", without_program<register_snapshot>},
    {"recover", without_program<register_recover>},
    {"where", without_program<register_where>},
    {"attach", without_program<register_attach>},
    {"detach", without_program<register_detach>},
    {"count", register_count},
    {"places", without_program<register_places>},
    {"resolve", without_program<register_resolve>},
};

/// The one that is asked for; all where that is none, as for the help. There are a thousand options: to make them takes
/// longer than most of what a command does.
void add_commands(std::string_view asked, Command commands, int& status, const std::vector<std::string>& program) {
  const auto known = std::find_if(std::begin(kCommands), std::end(kCommands),
                                  [=](const auto& command) { return command.name == asked; });
  if (known != std::end(kCommands)) return known->add(commands, status, program);
  for (const auto& command : kCommands)
    if (command.name != "off") command.add(commands, status, program);  // it comes with "on"
  register_describe(commands);
}

}  // namespace

int run_command_line(int argc, const char* const* argv) {
  int status = kExitOk;
  CLI::App app(kDescription, "karst");
  app.formatter(help_formatter());
  app.footer(kFooter);
  app.set_version_flag("--version", "karst " KARST_VERSION, "Show the version and exit");
  app.require_subcommand(0, 1);
  std::vector<std::string> program;
  const Command commands(&app);
  add_commands(argc > 1 ? argv[1] : "", commands, status, program);
  std::string topic;
  CLI::App* help_command = app.add_subcommand("help", "Explain karst or one of its commands");
  help_command->add_option("COMMAND", topic, "Command to explain");
  help_command->callback([&] { status = help(app, topic); });

  if (argc < 2) {
    std::fputs(app.help().c_str(), stderr);
    return kExitUsage;
  }
  const std::string_view first = argv[1];
  const CLI::App* chosen = find_command(app, first);
  if (chosen == nullptr && !first.starts_with('-')) {
    return no_command(app, std::string(first));
  }
  std::vector<std::string> words(argv + 1, argv + argc);
  if (first == "run" || first == "count") split_program(*chosen, words, program);
  for (std::string& word : words) renew_option(first, word);
  if (first == "resolve") join_strip(words);
  std::reverse(words.begin(), words.end());  // as the parser wants them
  try {
    app.parse(std::move(words));
  } catch (const CLI::CallForHelp&) {
    std::fputs((chosen != nullptr ? chosen->help("karst") : app.help()).c_str(), stdout);
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

namespace {

/// "karst: MESSAGE", in lines as wide as the terminal that stderr is; else as it came.
void print_message(std::string_view message) {
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

}  // namespace

int fail(const Error& error) {
  print_message(error.message);
  return kExitFailed;
}

int usage_error(std::string_view message, std::string_view command) {
  const std::string hint = command.empty() ? "karst help" : "karst help " + std::string(command);
  print_message(std::string(message) + "\nTry '" + hint + "'.");
  return kExitUsage;
}

}  // namespace karst::cli
