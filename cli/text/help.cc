// SPDX-License-Identifier: MIT
// The help's layout, and messages in place of CLI11's own, which tell of its types and ranges.
#include "cli/text/help.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>

#include "cli/text/table.h"
#include "cli/text/text.h"

namespace karst::cli {
namespace {

constexpr std::size_t kNames = 26;  // columns of an option's names, before what it does
constexpr std::string_view kUsage = "Usage: ";

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

/// "  -o, --output FILE       Trace file to write": names and words beside each other.
std::string entry(const std::string& names, const std::string& words) {
  const std::string text = wrap(words, kHelpWidth, kNames);
  const std::string start = "  " + names;
  if (start.size() + 2 <= kNames) return start + std::string(kNames - start.size(), ' ') + text + "\n";
  return start + "\n" + std::string(kNames, ' ') + text + "\n";
}

std::string option_entry(const CLI::Option& option) {
  std::string names;
  for (const std::string& name : option.get_snames()) names += (names.empty() ? "-" : ", -") + name;
  for (const std::string& name : option.get_lnames()) names += (names.empty() ? "--" : ", --") + name;
  std::string words = one_line(option.get_description());
  if (option.get_items_expected_max() != 0) {
    std::string type = option.get_type_name();
    if (type.find('|') != std::string::npos && type.size() > kNames) {
      std::string list = type;
      for (std::size_t at = 0; (at = list.find('|', at)) != std::string::npos; at += 2) list.replace(at, 1, ", ");
      words += fmt::format(": {}", list);
      type = "WORD";
    }
    names += option.get_items_expected_min() == 0 ? "[=" + type + "]" : " " + type;
  }
  return entry(names, words);
}

/// Lines of a footer or description stay as they are, those that are too long are wrapped.
std::string lines_of(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (text_width(line) <= kHelpWidth) {
      out += std::string(line) + "\n";
      continue;
    }
    const std::size_t indent = std::min(line.find_first_not_of(' '), kHelpWidth / 2);
    out += std::string(indent, ' ') + wrap(line.substr(indent), kHelpWidth, indent) + "\n";
  }
  return out;
}

class HelpFormatter : public CLI::Formatter {
 public:
  /// `first`: options that help explains unless all are asked for; empty: it always explains all.
  explicit HelpFormatter(std::vector<std::string> first = {}) : first_(std::move(first)) {}

  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override {
    auto [usage, footer] = footer_of(*app);
    std::string text = lines_of(app->get_description()) + "\n";
    text += std::string(kUsage) + (usage.empty() ? usage_of(*app, name) : usage) + "\n";
    text += arguments(*app) + commands(*app);
    text += first_.empty() || mode == CLI::AppFormatMode::All ? options(*app) : first_options(*app);
    if (!footer.empty()) text += "\n" + lines_of(footer);
    return text;
  }

 private:
  const std::vector<std::string> first_;

  std::string first_options(const CLI::App& app) const {
    std::string text = "\nOptions:\n";
    for (const std::string& name : first_) text += option_entry(*app.get_option(name));
    const auto all =
        app.get_options([](const CLI::Option* o) { return !o->get_group().empty() && o->nonpositional(); });
    return text + entry("--help-all", fmt::format("Explain all {} options", all.size()));
  }

  static std::pair<std::string, std::string> footer_of(const CLI::App& app) {
    std::string footer = app.get_footer();
    if (!footer.starts_with(kUsage)) return {"", footer};
    const std::size_t end = std::min(footer.find('\n'), footer.size());
    std::string rest = footer.substr(end);
    rest.erase(0, rest.find_first_not_of('\n'));
    return {footer.substr(kUsage.size(), end - kUsage.size()), rest};
  }

  static std::string usage_of(const CLI::App& app, const std::string& name) {
    std::string usage = name;
    if (!commands(app).empty()) usage += " COMMAND";
    usage += " [OPTIONS]";
    for (const CLI::Option* o : positions(app))
      usage += " " + (o->get_required() ? o->get_single_name() : "[" + o->get_single_name() + "]");
    return usage;
  }

  static std::vector<const CLI::Option*> positions(const CLI::App& app) {
    return app.get_options([](const CLI::Option* of) { return of->get_positional() && !of->get_group().empty(); });
  }

  static std::string arguments(const CLI::App& app) {
    std::string text;
    for (const CLI::Option* o : positions(app)) text += entry(o->get_single_name(), one_line(o->get_description()));
    return text.empty() ? text : "\nArguments:\n" + text;
  }

  static std::string commands(const CLI::App& app) {
    std::string text, group;
    for (const CLI::App* command : app.get_subcommands([](const CLI::App* of) { return !of->get_group().empty(); })) {
      if (command->get_group() != group) text += "\n" + command->get_group() + ":\n";
      group = command->get_group();
      text += entry(command->get_name(), one_line(command->get_description()));
    }
    return text;
  }

  static std::string options(const CLI::App& app) {
    std::string text;
    // "Options", where --help is, comes last.
    std::vector<std::string> groups = app.get_groups();
    std::stable_partition(groups.begin(), groups.end(), [](const std::string& group) { return group != "Options"; });
    for (const std::string& group : groups) {
      const auto shown = app.get_options(
          [&](const CLI::Option* o) { return !group.empty() && o->get_group() == group && o->nonpositional(); });
      if (shown.empty()) continue;
      text += "\n" + group + ":\n";
      for (const CLI::Option* o : shown) text += option_entry(*o);
    }
    return text;
  }
};

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options([](const CLI::Option* o) { return !o->get_group().empty(); }))
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

/// The text behind "NAME: " in a message of CLI11's, or in front of " is required".
std::string unexpected(const CLI::App& command, const std::string& message) {
  std::string words = message.substr(message.find(": ") + 2);
  // Of several the first one that looks like an option is what was mistyped.
  std::string first = words.substr(0, words.find(' '));
  for (std::size_t at = 0; at < words.size();) {
    const std::size_t end = std::min(words.find(' ', at), words.size());
    if (words[at] == '-') {
      first = words.substr(at, end - at);
      break;
    }
    at = end + 1;
  }
  if (!first.starts_with('-')) return "'" + first + "' is one argument too many";
  const std::string name = first.substr(0, first.find('='));
  return "there is no option '" + name + "'" + did_you_mean(name, option_names(command));
}

}  // namespace

std::shared_ptr<CLI::FormatterBase> help_formatter() { return std::make_shared<HelpFormatter>(); }

void show_first(CLI::App& command, std::string_view names) {
  command.formatter(std::make_shared<HelpFormatter>(CLI::detail::split(std::string(names), ' ')));
}

void in_group(Command of, const char* heading, const std::function<void()>& add) {
  CLI::App& command = of.app();
  const std::size_t before = command.get_options().size();
  add();
  const auto options = command.get_options();
  for (std::size_t i = before; i < options.size(); ++i) options[i]->group(heading);
}

std::string parse_message(const CLI::App& command, const CLI::ParseError& error) {
  std::string message = error.what();
  const auto missing = message.find(" is required");
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) return unexpected(command, message);
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr && missing != std::string::npos)
    return message.substr(0, missing) + " is missing";
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    const bool many = message.find("At Most") != std::string::npos;
    return message.substr(0, message.find(':')) + (many ? " is given too often" : " needs a value");
  }
  if (dynamic_cast<const CLI::ConversionError*>(&error) != nullptr) {
    const std::string what = message.substr(std::min(message.find(": ") + 2, message.size()));
    return what.substr(0, what.find(" = ")) + " " + what.substr(std::min(what.find(" = ") + 3, what.size())) +
           ": a number is needed";
  }
  return message;
}

bool renew_option(std::string_view command, std::string& word) {
  if (command != "run" && command != "on" && command != "off") return false;
  static constexpr std::pair<std::string_view, std::string_view> kRenamed[] = {{"--functions", "--function"},
                                                                               {"--not-functions", "--not-function"}};
  for (const auto& [old, now] : kRenamed) {
    if (word.substr(0, word.find('=')) != old) continue;
    word.replace(0, old.size(), now);
    return true;
  }
  return false;
}

}  // namespace karst::cli
