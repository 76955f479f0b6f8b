// karst describe (not shown in the help): all commands and options as JSON, out of which the build makes man pages and
// shell completions (packaging/describe.py), so that they are those of this very program.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <string_view>

#include "base/json.h"
#include "cli/command.h"

namespace karst::cli {
namespace {

void append_member(std::string& out, std::string_view name, std::string_view value) {
  append_json_string(out, name);
  out += ':';
  append_json_string(out, value);
  out += ',';
}

void append_names(std::string& out, const CLI::Option& option) {
  out += "\"names\":[";
  bool first = true;
  const auto append = [&](const std::string& dashes, const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      if (!first) out += ',';
      first = false;
      append_json_string(out, dashes + name);
    }
  };
  append("-", option.get_snames());
  append("--", option.get_lnames());
  out += "],";
}

std::string option_json(const CLI::Option& option) {
  std::string out = "{";
  append_names(out, option);
  append_member(out, "position", option.get_positional() ? option.get_single_name() : "");
  append_member(out, "value", option.get_items_expected_max() == 0 ? "" : option.get_type_name());
  append_member(out, "help", option.get_description());
  out += option.get_items_expected_max() == 0 ? "\"takes_value\":false," : "\"takes_value\":true,";
  out += option.get_items_expected_min() == 0 ? "\"value_optional\":true," : "\"value_optional\":false,";
  out += option.get_required() ? "\"required\":true}" : "\"required\":false}";
  return out;
}

std::string app_json(const CLI::App& app) {
  std::string out = "{";
  append_member(out, "name", app.get_name());
  append_member(out, "description", app.get_description());
  append_member(out, "footer", app.get_footer());
  out += "\"options\":[";
  bool first = true;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    if (!first) out += ",\n";
    first = false;
    out += option_json(*option);
  }
  out += "],\n\"commands\":[";
  first = true;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_group().empty()) continue;
    if (!first) out += ",\n";
    first = false;
    out += app_json(*command);
  }
  return out + "]}";
}

}  // namespace

void register_describe(CLI::App& app) {
  CLI::App* command = app.add_subcommand("describe", "Describe all commands and options as JSON");
  command->group("");
  command->callback([&app] { std::puts(app_json(app).c_str()); });
}

}  // namespace karst::cli
