// SPDX-License-Identifier: MIT
// karst places: which functions of a program can be traced as it is, and why the others cannot.
#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "answers/programs.h"
#include "base/descriptor.h"
#include "cli/command.h"
#include "cli/commands/answer.h"
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
  AnswerOptions answer;
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

std::optional<std::string_view> why_left_alone(patch::LeftOut why) {
  return why == patch::LeftOut::kNot ? std::nullopt : std::optional<std::string_view>(patch::describe(why));
}

/// `head`: what people are told first.
int print(const Options& options, const std::string& path, const Answer& answer, const std::string& head) {
  if (!options.answer.is_text())
    return print_answer(options.answer, answer, [&](Json& json) { json.field("file", path); });
  if (Status sorted = answer.known(); !sorted) return fail(sorted.error());
  Screen screen(options.answer.text);
  screen.output().append(fmt::format("{}: {}", printable(path), head));
  if (answer.count() == 0) return screen.finish();
  screen.output().append("\n");
  if (Status printed = answer.print_table(screen); !printed) return fail(printed.error());
  answer.say_left_out(screen, "row");
  return screen.finish();
}

int list_probes(const Options& options, const std::string& path, int file) {
  auto every = patch::ProbeChoice::parse("*:*");
  const auto found = patch::find_in_file(file, {false, {}, nullptr, {std::move(*every)}}, std::nullopt);
  if (!found) return fail({path + " cannot be patched: " + found.error().message});
  std::vector<answers::PlaceRow> rows;
  for (const patch::ProbeOutcome& p : found->probes)
    rows.push_back(
        {p.name, p.address, 0, why_left_alone(p.left_out), p.description.substr(0, p.description.find('|'))});
  const Answer answer(answers::probes(), options.answer, addresses(rows));
  return print(options, path, answer, plural(rows.size(), "probe") + "\n");
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
  std::vector<answers::PlaceRow> rows;
  for (const patch::Outcome& f : found->functions)
    if (is_shown(f)) rows.push_back({names.at(f.begin), f.begin, f.end - f.begin, why_left_alone(f.left_out), {}});
  const auto counts = found->counts();
  std::string head =
      fmt::format("{} of {} can be patched\n", count_text(counts[0]), plural(found->functions.size(), "function"));
  for (std::size_t why = 1; why < counts.size(); ++why)
    if (counts[why] != 0)
      head += fmt::format("{:>9}  {}\n", count_text(counts[why]), patch::describe(static_cast<patch::LeftOut>(why)));
  return print(options, path, Answer(answers::patchable_functions(), options.answer, addresses(rows)), head);
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
  add_answer_options(command, options->answer, {&answers::patchable_functions(), &answers::probes()}, "rows", "", 0);
  command.callback([options, &status] { status = places(*options); });
}

}  // namespace karst::cli
