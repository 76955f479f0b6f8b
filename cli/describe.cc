// SPDX-License-Identifier: MIT
// karst describe (not shown in the help): all commands and options as JSON, out of which the build makes man pages and
// shell completions (packaging/describe.py), so that they are those of this very program.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <string_view>

#include "base/json.h"
#include "cli/command.h"
#include "format/option_text.h"

namespace karst::cli {
namespace {

void write_option(Json& json, const CLI::Option& option) {
  json.open('{').key("names").open('[');
  for (const std::string& name : option.get_snames()) json.value("-" + name);
  for (const std::string& name : option.get_lnames()) json.value("--" + name);
  const bool takes_value = option.get_items_expected_max() != 0;
  json.close(']').field("position", option.get_positional() ? option.get_single_name() : "");
  json.field("value", takes_value ? option.get_type_name() : "").field("help", option.get_description());
  json.field("group", option.get_group())
      .field("takes_value", takes_value)
      .field("value_optional", option.get_items_expected_min() == 0);
  json.field("required", option.get_required()).close('}');
}

/// What may stand in KARST_OPTIONS.
void write_environment(Json& json) {
  json.key("environment").open('[');
  for (const format::OptionRow& row : format::kOptionTable) {
    if (row.reader == format::OptionReader::kLaunch) continue;
    json.line().open('{').field("name", row.name).field("value", row.value).field("says", row.says);
    json.field("flag", std::string(format::long_flag(row))).field("needed", format::needed_value(row.kind));
    json.field("default", format::default_text(row)).field("help", row.sentence);
    json.field("karst_alone", row.reader == format::OptionReader::kKarst).close('}');
  }
  json.close(']');
}

void write_app(Json& json, const CLI::App& app) {
  json.open('{').field("name", app.get_name()).field("description", app.get_description());
  if (app.get_parent() != nullptr) json.field("group", app.get_group());
  json.field("footer", app.get_footer()).key("options").open('[');
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_group().empty()) write_option(json.line(), *option);
  }
  json.close(']').key("commands").open('[');
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!command->get_group().empty()) write_app(json.line(), *command);
  }
  json.close(']');
  if (app.get_name() == "run") write_environment(json);
  json.close('}');
}

}  // namespace

void register_describe(Command commands) {
  CLI::App& app = commands.app();
  CLI::App* command = app.add_subcommand("describe", "Describe all commands and options as JSON");
  command->group("");
  command->callback([&app] {
    Json json;
    write_app(json, app);
    std::puts(json.take().c_str());
  });
}

}  // namespace karst::cli
