// SPDX-License-Identifier: MIT
// karst resolve: makes a whole trace of a raw one, which a program has written of itself, or of what one left.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/commands/leftover.h"
#include "cli/commands/older_trace.h"
#include "cli/input/program_options.h"
#include "cli/text/text.h"
#include "collect/record/raw.h"

namespace karst::cli {
namespace {

struct Options {
  std::string file;
  std::string output;
  std::string program;
  bool no_source = false;
  std::string strip;
  std::vector<std::string> map_paths;
  std::vector<std::string> debug_dirs;
  bool debuginfod = false;
};

int resolve(const Options& options) {
  collect::RawOptions raw;
  raw.source = !options.no_source;
  if (!options.strip.empty()) {
    auto strip = collect::Strip::parse(options.strip);
    if (!strip) return usage_error("--strip: " + strip.error().message, "resolve");
    raw.strip = *strip;
  }
  for (const std::string& text : options.map_paths) {
    auto mapping = symbols::PathMapping::parse(text);
    if (!mapping) return usage_error(mapping.error().message, "resolve");
    raw.resolve.map_paths.push_back(std::move(*mapping));
  }
  raw.resolve.debug.directories.insert(raw.resolve.debug.directories.begin(), options.debug_dirs.begin(),
                                       options.debug_dirs.end());
  if (options.debuginfod && !raw.resolve.debug.ask_servers()) return usage_error(kNoServers, "resolve");
  if (options.strip.empty() && !is_trace(options.file))
    return recover({options.file, options.output, options.program, options.no_source, std::move(raw.resolve)});
  if (!options.program.empty())
    return usage_error("--program is for cores and arenas, and does not go with --strip", "resolve");
  const std::string output = options.output.empty() ? options.file : options.output;
  raw.on_written = [&output](const Descriptor& written) { give_to_caller(written, printable(output)); };
  auto summary = collect::resolve_raw(options.file, output, raw);
  if (!summary) return fail(summary.error());
  for (const reader::Problem& problem : summary->problems) say(problem.message);
  say(fmt::format("{}: {} named, {} without a name, {}", printable(output), plural(summary->named, "function"),
                  count_text(summary->unnamed), plural(summary->events, "event")));
  return kExitOk;
}

}  // namespace

void join_strip(std::vector<std::string>& words) {
  for (std::size_t i = 1; i + 1 < words.size(); ++i) {
    if (words[i] != "--strip" || words[i + 1].empty() || !collect::Strip::parse(words[i + 1])) continue;
    words[i] += "=" + words[i + 1];
    words.erase(words.begin() + static_cast<std::ptrdiff_t>(i) + 1);
  }
}

void register_resolve(Command app, int& status) {
  auto options = std::make_shared<Options>();
  Command command = app.add_subcommand(
      "resolve", "Make a trace whole: a raw one, or what a program left, a core or its arena's file");
  command.footer(
      "FILE is a raw trace, which gets names, lines and sources, so that it opens\n"
      "anywhere; or a core file; or the file of a program that ran with\n"
      "KARST_OPTIONS=file=FILE or 'karst run --file FILE', which may still be running.\n\n"
      "Raw traces are what programs write of themselves: karst_snapshot_save and its\n"
      "like in karst/karst.h, and signal=USR2; and what 'karst run' leaves when it is\n"
      "interrupted while it looks names up. Every command opens them and looks names\n"
      "up each time, in the executables and libraries that ran. Those must be there\n"
      "still, and be the same files: a module whose build-id differs gives no names.\n"
      "The result is as 'karst run' writes it.");
  command.add_option("FILE", options->file, "Raw trace, core, or arena's file").type_name("").required();
  command
      .add_option(
          "-o,--output", options->output,
          "Trace file to write (default: in the place of a raw trace; else NAME-PID-N.karst, N being the first\n"
          "number that is free)")
      .type_name("FILE");
  command
      .add_option("--program", options->program,
                  "Of a core or an arena: where the executable is now, if not where it was")
      .type_name("PATH");
  command.add_flag("--no-source", options->no_source, "Leave the source text of the functions out of the trace");
  command.add_flag(
      "--strip{most}", options->strip,
      "Take out what the trace reveals beside calls and times: --strip=source, commands, paths (their last\n"
      "parts stay), host, build-ids, values, names; with commas between; --strip alone is all but names.\n"
      "FILE may have names already");
  command
      .add_option("--debug-dir", options->debug_dirs,
                  "Look for separate debug files in DIR too, as in /usr/lib/debug (also: KARST_DEBUG_DIR)")
      .type_name("DIR")
      .allow_extra_args(false);
  add_debuginfod_option(command, options->debuginfod);
  command.add_option("--map-path", options->map_paths, "Sources under FROM are under TO now")
      .type_name("FROM=TO")
      .allow_extra_args(false);
  command.callback([options, &status] { status = resolve(*options); });
}

}  // namespace karst::cli
