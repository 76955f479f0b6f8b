// karst places: which functions of a program can be traced as it is, and why the others cannot.
#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>

#include "base/descriptor.h"
#include "base/json.h"
#include "base/output.h"
#include "cli/command.h"
#include "cli/input/trace_input.h"
#include "cli/text/table.h"
#include "cli/text/terminal.h"
#include "cli/text/text.h"
#include "collect/launch/program.h"
#include "patch/find.h"
#include "sandbox/sandbox.h"
#include "symbols/cache.h"
#include "symbols/module_tables.h"

namespace karst::cli {
namespace {

struct Options {
  std::string file;
  std::uint32_t min_instructions = patch::kPlainMinInstructions;
  std::vector<std::string> named;
  bool all = false;
  bool probes = false;
  bool json = false;
  TextOptions text;
};

/// A file, or a program in PATH.
std::string path_of(const std::string& file) {
  std::error_code error;
  if (file.find('/') == std::string::npos && !std::filesystem::exists(file, error))
    if (const auto program = collect::find_program({file})) return program->path.string();
  return file;
}

class Names {
 public:
  explicit Names(const std::string& path) : module_(std::filesystem::path(path).filename()) {
    // What is missing is shown by number: no reason to refuse an answer.
    if (auto table = tables_.load(binary::ModuleFile(path), cache_, {}, std::nullopt)) table_ = *table;
  }
  std::string at(std::uint64_t address) const {
    if (table_ != nullptr)
      if (const auto symbol = table_->lookup(address)) return std::string(symbol->name);
    return fmt::format("{}+{:#x}", module_, address);
  }
  /// Where functions begin that are named so.
  std::vector<std::uint64_t> addresses(const choice::GlobSet& globs) const {
    return table_ != nullptr ? patch::named_in(*table_, globs) : std::vector<std::uint64_t>();
  }

 private:
  std::string module_;
  symbols::Cache cache_;
  symbols::ModuleTables tables_;
  symbols::ModuleTables::Table table_;
};

int list_probes(const Options& options, const std::string& path, int file) {
  auto every = patch::ProbeChoice::parse("*:*");
  const auto found = patch::find_in_file(file, {false, {}, nullptr, {std::move(*every)}}, std::nullopt);
  if (!found) return fail({path + " cannot be patched: " + found.error().message});
  const auto values = [](const patch::ProbeOutcome& p) { return p.description.substr(0, p.description.find('|')); };
  if (options.json) {
    Output out = Output::to_stdout();
    Json json;
    json.open('{').field("file", path).key("probes").open('[');
    for (const patch::ProbeOutcome& p : found->probes) {
      const bool patched = p.left_out == patch::LeftOut::kNot;
      json.line().open('{').field("name", p.name).field("address", p.address).field("values", values(p));
      json.field("patched", patched);
      if (!patched) json.field("reason", patch::describe(p.left_out));
      json.close('}');
    }
    json.close(']').close('}');
    out.append(json.take() + "\n");
    return finish_output(out);
  }
  Screen screen(options.text);
  screen.output().append(fmt::format("{}: {}\n", printable(path), plural(found->probes.size(), "probe")));
  Table table({{"address", "address", false, true, 2, 10},
               {"why", "why it is left alone", true, true, 0, 40},
               {"values", "values", true, true, 1, 40},
               {"name", "probe", true}},
              Shorten::kName);
  for (const patch::ProbeOutcome& p : found->probes)
    table.add({fmt::format("{:#x}", p.address),
               p.left_out == patch::LeftOut::kNot ? "-" : std::string(patch::describe(p.left_out)),
               printable(values(p)), printable(p.name)});
  if (!table.empty()) {
    screen.output().append("\n");
    table.print(screen);
  }
  return screen.finish();
}

int places(const Options& options) {
  const std::string path = path_of(options.file);
  const Descriptor file(sandbox::open_regular(path.c_str()));
  if (!file) return fail({path + ": " + (file.get() == -EINVAL ? "no file of a program" : std::strerror(-file.get()))});
  if (options.probes) return list_probes(options, path, file.get());
  const auto globs = choice::GlobSet::compile(options.named);
  if (!globs) return usage_error("--named: " + globs.error().message, "places");
  patch::WantedNames wanted{&*globs, {}, {}};
  const Names names(path);
  if (!options.named.empty()) {
    wanted.texts = options.named;
    wanted.addresses = names.addresses(*globs);
  }
  const auto found = patch::find_in_file(
      file.get(), {true, {options.min_instructions}, options.named.empty() ? nullptr : &wanted, {}}, std::nullopt);
  if (!found) return fail({path + " cannot be patched: " + found.error().message});
  if (!options.named.empty() && found->functions.empty()) {
    std::string near;
    for (const std::string& name : found->near) near += (near.empty() ? "; it has " : ", ") + name;
    return fail({printable(path + " has no function that is named so" + near)});
  }
  const auto is_shown = [&](const patch::Outcome& f) { return options.all || f.left_out != patch::LeftOut::kNot; };
  if (options.json) {
    Output out = Output::to_stdout();
    Json json;
    json.open('{').field("file", path).key("functions").open('[');
    for (const patch::Outcome& f : found->functions) {
      if (!is_shown(f)) continue;
      const bool patched = f.left_out == patch::LeftOut::kNot;
      json.line().open('{').field("name", names.at(f.begin)).field("address", f.begin);
      json.field("size", f.end - f.begin).field("patched", patched);
      if (!patched) json.field("reason", patch::describe(f.left_out));
      json.close('}');
    }
    json.close(']').close('}');
    out.append(json.take() + "\n");
    return finish_output(out);
  }
  Screen screen(options.text);
  const auto counts = found->counts();
  screen.output().append(fmt::format("{}: {} of {} can be patched\n", printable(path), count_text(counts[0]),
                                     plural(found->functions.size(), "function")));
  for (std::size_t why = 1; why < counts.size(); ++why)
    if (counts[why] != 0)
      screen.output().append(
          fmt::format("{:>9}  {}\n", count_text(counts[why]), patch::describe(static_cast<patch::LeftOut>(why))));
  Table table({{"address", "address", false, true, 2, 10},
               {"size", "bytes", false, true, 1, 6},
               {"why", "why it is left alone", true, true, 0, 40},
               {"name", "function", true}},
              Shorten::kName);
  for (const patch::Outcome& f : found->functions)
    if (is_shown(f))
      table.add({fmt::format("{:#x}", f.begin), std::to_string(f.end - f.begin),
                 f.left_out == patch::LeftOut::kNot ? "-" : std::string(patch::describe(f.left_out)),
                 printable(names.at(f.begin))});
  if (!table.empty()) {
    screen.output().append("\n");
    table.print(screen);
  }
  return screen.finish();
}

}  // namespace

void register_places(Command app, int& status) {
  auto options = std::make_shared<Options>();
  Command command = app.add_subcommand(
      "places", "List functions of a program that was not built for tracing, and which can be traced");
  command.footer(
      "'karst run' patches such a program's functions as it is loaded: each place is\n"
      "checked first, and where a jump could be harmful the function is left alone.\n"
      "Small functions without a loop are left out unless --min-instructions says so.");
  command.add_option("FILE", options->file, "Program or library; without a slash also one in PATH").required();
  command
      .add_option("--min-instructions", options->min_instructions,
                  "Leave out functions of fewer machine instructions that have no loop (default 12)")
      .type_name("N")
      .check(number_to(1000000));
  command
      .add_option(
          "--named", options->named,
          "Look at functions alone that GLOB names, whatever their size, as 'karst run --library FILE:GLOB' does")
      .type_name("GLOB")
      .allow_extra_args(false);
  command.add_flag("--probes", options->probes, "List the probes (sys/sdt.h) that 'karst run --probes' can record");
  command.add_flag("--all", options->all, "List functions that can be patched, too");
  command.add_flag("-j,--json", options->json, "Print JSON");
  add_text_options(command, options->text);
  command.callback([options, &status] { status = places(*options); });
}

}  // namespace karst::cli
