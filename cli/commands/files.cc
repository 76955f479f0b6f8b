// SPDX-License-Identifier: MIT
// karst files: calls to files, sockets and pipes, by file or by function.
#include "analysis/files.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "answers/data.h"
#include "answers/files.h"
#include "base/json.h"
#include "base/output.h"
#include "cli/command.h"
#include "cli/input/trace_input.h"
#include "cli/text/names.h"
#include "cli/text/table.h"
#include "cli/text/terminal.h"
#include "cli/text/text.h"
#include "reader/trace.h"

namespace karst::cli {
namespace {

using analysis::Descriptors;
using analysis::FileCall;
using analysis::FileGroup;
using analysis::FileSums;
using analysis::FileUse;

struct Options {
  InputOptions input;
  std::string format = "text";
  std::string by = "file";
  bool failed = false;
  std::size_t limit = 10;
  TextOptions text;
};

constexpr std::size_t kMostUses = 5;  // of a file, in text

constexpr const char* kFooter = R"(Output: files, sockets and pipes that calls were made to, longest together
first, and which functions called:

 1. /var/lib/shop/journal: 214 calls, 377.0 ms, longest 28.46 ms in fsync,
    3.2 MiB written
      107 fsync, 301.2 ms: Journal::append

  A path is as the program gave it; a relative one begins at its working
  directory. A socket has the address at its other end. What a descriptor was
  is told by the calls that opened, duplicated and closed it. One that was
  opened in a way that Karst does not see is "not known".

A trace has such calls if it was made by 'karst run --system files', and those
of sockets by 'karst run --system files,net'. csv has a row for each call, times
in nanoseconds; json the groups with all their calls. --function takes calls of
these functions alone.)";

class FilesPrinter {
 public:
  FilesPrinter(const Input& input, const Descriptors& files, std::vector<FileGroup> groups, const Options& options)
      : input_(input), files_(files), by_function_(options.by == "function"), groups_(std::move(groups)) {
    shown_ = options.limit == 0 ? groups_.size() : std::min(options.limit, groups_.size());
  }

  void print_text(Screen& screen) const {
    std::uint64_t calls = 0, total = 0;
    for (const FileGroup& group : groups_) {
      calls += group.sums.calls;
      total += group.sums.total;
    }
    const std::string what = by_function_ ? plural(groups_.size(), "function") : plural(groups_.size(), "file");
    line(screen,
         fmt::format("{}: {} {} {}, {} in all", input_.trace.name(), plural(calls, "call"), by_function_ ? "by" : "to",
                     what, duration(total)),
         2);
    for (std::size_t i = 0; i < shown_; ++i) print_group(screen, i + 1, groups_[i]);
    if (shown_ < groups_.size())
      line(
          screen,
          fmt::format("({} more; --limit 0: all)", plural(groups_.size() - shown_, by_function_ ? "function" : "file")),
          0);
  }

 private:
  std::uint64_t ns(std::uint64_t ticks) const { return input_.trace.clock().to_ns(ticks); }
  std::string duration(std::uint64_t ticks) const { return duration_text(ns(ticks)); }

  std::string_view name(const reader::Process& process, std::uint32_t function) const {
    return function == 0 ? std::string_view() : input_.trace.function(process, function).name;
  }
  std::string plain(const reader::Process& process, std::uint32_t function) const {
    return function == 0 ? "nothing traced" : printable(plain_name(name(process, function)));
  }

  void line(Screen& screen, const std::string& text, std::size_t indent) const {
    screen.output().append(wrap(text, screen.width(), indent) + "\n");
  }

  /// A name that fits a line: the end of a path says more than its begin.
  std::string file_name(const Screen& screen, std::uint32_t file) const {
    constexpr std::size_t kBefore = 12;  // columns that a line has before it, and a few behind
    std::string whole = printable(files_.name(file));
    const std::size_t room = std::max<std::size_t>(screen.width(), 40) - kBefore;
    if (screen.width() == 0 || text_width(whole) <= room) return whole;
    std::size_t from = 1;
    while (from < whole.size() &&
           (is_inside_character(whole[from]) || text_width(std::string_view(whole).substr(from)) > room - 3))
      ++from;
    return "..." + whole.substr(from);
  }
  static bool is_inside_character(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

  /// What was read, written and failed, as far as there is any.
  static std::string amounts(const FileSums& sums) {
    std::string text;
    if (sums.read != 0) text += fmt::format(", {} read", size_text(sums.read));
    if (sums.written != 0) text += fmt::format(", {} written", size_text(sums.written));
    if (sums.errors != 0) text += fmt::format(", {} failed", sums.errors);
    return text;
  }

  void print_group(Screen& screen, std::size_t number, const FileGroup& group) const {
    const reader::Process& process = input_.trace.processes()[group.process];
    const std::string called = by_function_ ? plain(process, group.caller) : file_name(screen, group.file);
    screen.output().append("\n");
    line(screen,
         fmt::format("{:2}. {}: {}, {}, longest {} in {}{}", number, called, plural(group.sums.calls, "call"),
                     duration(group.sums.total), duration(group.sums.longest), printable(group.longest_call),
                     amounts(group.sums)),
         4);
    for (std::size_t i = 0; i < std::min(kMostUses, group.uses.size()); ++i) {
      const FileUse& use = group.uses[i];
      const reader::Process& of = input_.trace.processes()[use.process];
      line(screen,
           fmt::format("      {} {}, {}{}: {}", use.sums.calls, printable(name(of, use.zone)), duration(use.sums.total),
                       amounts(use.sums), by_function_ ? file_name(screen, use.file) : plain(of, use.caller)),
           8);
    }
    if (group.uses.size() > kMostUses)
      line(screen, fmt::format("      and {}", plural(group.uses.size() - kMostUses, "more line")), 8);
  }

  const Input& input_;
  const Descriptors& files_;
  const bool by_function_;
  std::vector<FileGroup> groups_;
  std::size_t shown_ = 0;
};

/// All of them, whatever --limit says.
void print_json(Output& output, const answers::FileFacts& facts, const std::vector<FileGroup>& groups,
                const answers::Relation& relation) {
  Json json;
  json.open('{').field("trace", facts.trace.name()).key(relation.name).open('[');
  for (const FileGroup& group : groups) {
    const answers::FileRow row{facts, group};
    answers::write_row(json, facts.trace, relation, &row);
    json.flush(output);
  }
  json.close(']').close('}').flush(output);
  output.append("\n");
}

int files(const Options& options) {
  auto input = open_input(options.input);
  if (!input) return fail(input.error());
  const reader::Trace& trace = (*input)->trace;
  Descriptors descriptors(trace);
  analysis::FileGroups groups(trace, options.by == "function");
  const answers::FileFacts facts{trace, descriptors, answers::Times(trace)};
  std::optional<Output> output;
  std::optional<answers::Csv> csv;
  const auto begin_csv = [&] {
    warn_partial(**input);
    output.emplace(Output::to_stdout());
    csv.emplace(trace, answers::file_calls(), *output);
  };
  (*input)->each_thread("looking for calls to files", [&](const reader::Thread& thread, const reader::Calls& of) {
    auto calls = analysis::file_calls(trace, descriptors, thread, of, (*input)->function_set());
    if (options.failed) std::erase_if(calls, [](const FileCall& call) { return call.error.empty(); });
    for (const FileCall& call : calls) groups.add(call);
    if (options.format != "csv" || calls.empty()) return;
    if (!csv) begin_csv();
    for (const FileCall& call : calls) {
      const answers::FileCallRow row{facts, call};
      if (!output->failed()) csv->row(&row);
    }
  });
  if (groups.empty())
    return fail({"no call to a file is in " + trace.name() +
                 ", or none passes the filters; 'karst run --system files,net' records them"});
  if (csv) return finish_output(*output, trace);
  if (options.format == "text") {
    Screen screen(options.text);
    say_partial(screen, **input);
    FilesPrinter(**input, descriptors, groups.sorted(), options).print_text(screen);
    return screen.finish(&trace);
  }
  warn_partial(**input);
  output.emplace(Output::to_stdout());
  print_json(*output, facts, groups.sorted(), options.by == "function" ? answers::file_users() : answers::files());
  return finish_output(*output, trace);
}

}  // namespace

void register_files(Command app, int& status) {
  auto options = std::make_shared<Options>();
  Command command =
      app.add_subcommand("files", "Show which files and sockets were used, by whom, and how long it took");
  command.footer(kFooter);
  add_file_option(command, options->input);
  add_format_options(command, options->format, {"text", "csv", "json"});
  command.add_option("--by", options->by, "Group calls by file, or by the function that made them (file)")
      .type_name("WHAT")
      .check(one_of({"file", "function"}));
  command.add_flag("--failed", options->failed, "Take only calls that failed");
  command.add_option("-n,--limit", options->limit, "Show only the first N groups (text: 10; 0: all)").type_name("N");
  add_selection_options(command, options->input, "Take only calls by functions whose name matches");
  add_text_options(command, options->text);
  command.callback([options, &status] { status = files(*options); });
}

}  // namespace karst::cli
