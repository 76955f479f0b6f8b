// SPDX-License-Identifier: MIT
// What karst says of its own command line: help in lines of 80 columns, and messages about what cannot be understood.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/suggestion.h"
#include "cli/options.h"

namespace CLI {
class App;
class FormatterBase;
class ParseError;
}  // namespace CLI

namespace karst::cli {

/// Columns of the help's lines.
inline constexpr std::size_t kHelpWidth = 80;

/// Lays help out; for the App before it gets its subcommands. A footer's line that begins with "Usage: " is the usage.
std::shared_ptr<CLI::FormatterBase> help_formatter();

/// For a command of more options than a screen has lines: its help explains those of these names, which have spaces
/// between, in this order; --help-all explains all.
void show_first(CLI::App& command, std::string_view names);

/// Puts the options that `add` adds to `command` under this heading of the help.
void in_group(Command command, const char* heading, const std::function<void()>& add);

/// What is wrong with the command line of `command`, in words of ours.
std::string parse_message(const CLI::App& command, const CLI::ParseError& error);

/// Options had other names once: replaces an old spelling by today's, in `word` as it was typed ("--functions=x").
/// False: it is none of `command`.
bool renew_option(std::string_view command, std::string& word);

}  // namespace karst::cli
