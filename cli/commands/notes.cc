// SPDX-License-Identifier: MIT
// karst notes: what the program said of itself, a row for each.
#include "analysis/notes.h"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/log_text.h"
#include "answers/data.h"
#include "answers/notes.h"
#include "base/json.h"
#include "base/output.h"
#include "cli/command.h"
#include "cli/commands/notes_frames.h"
#include "cli/input/trace_input.h"
#include "cli/text/names.h"
#include "cli/text/table.h"
#include "cli/text/terminal.h"
#include "cli/text/text.h"
#include "reader/trace.h"

namespace karst::cli {
namespace {

struct Options {
  InputOptions input;
  std::string format = "text";
  std::string kind;
  std::string level;
  bool frames = false;
  std::string target;
  TextOptions text;
};

constexpr std::uint64_t kTargetNs = 16'700'000;  // 60 frames a second

constexpr const char* kFooter = R"(Output: a row for each note, thread by thread in order of time:

        time  thread            note                          in
    1.200 ms  4712 worker       request 4711 begins           Server::serve(Request&)
    1.250 ms  4712 worker       queue length = 12             Queue::push(Item)

  time  since the trace's first event
  note  what the program said with karst.h: messages, values, frames, requests,
        texts, and logs with their level
  in    the innermost call or zone that the thread was in

csv and json have also kind, name (of a log: its format), value, process and
level, and times in nanoseconds.

--frames: how long frames took (KARST_FRAME), all threads of a process together:
how many, mean, percentiles, the longest, and how many took longer than
--target. Below are the ten slowest of each name, with their numbers from 1 on.
json has the same, csv a row for each frame. The first frame is left out:
nobody marked where it begins. --range takes frames that lie in it as a whole.

--function takes notes made in calls of these functions, not below them;
--below takes those below as well.)";

using answers::NoteRow;

const std::vector<std::string> kLevels = {"debug", "info", "warning", "error"};

/// 0: none is asked for.
std::uint32_t level_number(std::string_view name) {
  for (std::uint32_t level = 1; level <= kLevels.size(); ++level)
    if (analysis::log_level_name(level) == name) return level;
  return 0;
}

template <typename Use>
void each_note(const Input& input, const Options& options, const Output& output, Use&& use) {
  const reader::Trace& trace = input.trace;
  const answers::Times times(trace);
  const std::uint32_t least_level = level_number(options.level);
  for (const reader::Thread* thread : input.threads) {
    const reader::Calls calls = input.calls_of(*thread);
    for (const reader::Note& note : calls.notes) {
      if (output.failed()) return;
      const format::KindOfNote& kind = format::kind_of_note(note.kind);
      if (!options.kind.empty() && kind.word != options.kind) continue;
      const bool is_listed = kind.is_listed() || kind.is_of_call() || !options.kind.empty();
      if (analysis::note_level(calls, note) < least_level || !is_listed) continue;
      const bool inside = note.row != reader::kNoParent;
      const std::uint32_t id = inside ? calls.function[note.row] : 0;
      if (input.functions && (!inside || !input.functions->contains(thread->process, id))) continue;
      use(NoteRow{trace, times, *thread, calls, note});
    }
  }
}

/// Whether there was any note to print.
bool print_text(const Input& input, const Options& options, Screen& screen) {
  Output& output = screen.output();
  const std::size_t width = screen.width();
  const auto print = [&](std::string_view time, std::string_view thread, const std::string& note,
                         const std::string& in) {
    const std::string line = fmt::format("{:>12}  {:<22}  {}", time, fit_text(thread, 22), note);
    const std::string behind = in.empty() ? "" : "  in " + in;
    output.append((width == 0 ? line + behind : fit_text(line + behind, width)) + "\n");
  };
  bool any = false;
  each_note(input, options, output, [&](const NoteRow& row) {
    any = true;
    const std::string thread = fmt::format("{} {}", row.thread.tid, printable(row.thread.name));
    const reader::Process& process = input.trace.processes()[row.thread.process];
    const std::string in = row.note.row == reader::kNoParent
                               ? std::string()
                               : printable(input.trace.function(process, row.calls.function[row.note.row]).name);
    print(duration_text(row.times.since_start(row.note.ticks)), thread,
          printable(analysis::note_line(input.trace, row.thread, row.calls, row.note)),
          width == 0 ? in : plain_name(in));
  });
  return any;
}

/// Why nothing is listed.
Error no_note(const Input& input, const Options& options) {
  std::size_t threads = 0;
  for (const reader::Process& process : input.trace.processes()) threads += process.threads.size();
  const analysis::CallFilter& filter = input.filter;
  const bool all = options.kind.empty() && options.level.empty() && !input.functions && !filter.range &&
                   filter.below == nullptr && filter.min_ticks == 0 && !filter.request &&
                   input.threads.size() == threads;
  if (!all) return {"no note of " + input.trace.name() + " passes all filters"};
  return {input.trace.name() + " has no notes: a program makes them by karst/karst.h, as karst_message(TEXT) does, " +
          "and karst run by --args and --returns"};
}

std::vector<std::string> kinds() {
  std::vector<std::string> all;
  for (const format::KindOfNote& kind : format::kNoteKinds) all.emplace_back(kind.word);
  return all;
}

void print_csv(const Input& input, const Options& options, Output& output) {
  answers::Csv csv(input.trace, answers::notes(), output);
  each_note(input, options, output, [&](const NoteRow& row) { csv.row(&row); });
}

void print_json(const Input& input, const Options& options, Output& output) {
  Json json;
  json.open('{').field("trace", input.trace.name()).key("notes").open('[');
  each_note(input, options, output, [&](const NoteRow& row) {
    answers::write_row(json, input.trace, answers::notes(), &row);
    json.flush(output);
  });
  json.close(']').close('}').flush(output);
  output.append("\n");
}

/// What says nothing of frames, which are of all threads; empty: none of it was given.
std::string_view not_of_frames(const Options& options) {
  const InputOptions& input = options.input;
  if (!options.kind.empty()) return "--kind";
  if (!options.level.empty()) return "--level";
  if (input.has_function) return "--function";
  if (!input.below.empty()) return "--below";
  if (!input.min_duration.empty()) return "--min-duration";
  if (input.request) return "--request";
  if (!input.selection.thread.empty()) return "--thread";
  if (!input.selection.not_thread.empty()) return "--not-thread";
  return {};
}

int notes(const Options& options) {
  if (!options.frames && !options.target.empty())
    return usage_error("--target is about frames: it needs --frames", "notes");
  if (const std::string_view other = not_of_frames(options); options.frames && !other.empty())
    return usage_error(fmt::format("{} cannot choose among --frames: all threads of a process share its frames", other),
                       "notes");
  auto input = open_input(options.input);
  if (!input) return fail(input.error());
  if (options.frames) {
    const std::uint64_t target = options.target.empty() ? kTargetNs : *parse_duration(options.target);
    AnswerOptions shown;
    shown.format = options.format;
    shown.text = options.text;
    return print_frames(**input, target, shown);
  }
  if (options.format == "text") {
    Screen screen(options.text);
    if (!print_text(**input, options, screen)) return fail(no_note(**input, options));
    return screen.finish(&(*input)->trace);
  }
  return print_data(
      options.format, **input, [&](Output& output) { print_json(**input, options, output); },
      [&](Output& output) { print_csv(**input, options, output); });
}

}  // namespace

void register_notes(Command app, int& status) {
  auto options = std::make_shared<Options>();
  Command command =
      app.add_subcommand("notes", "List what the program said of itself: messages, logs, values, requests");
  command.footer(kFooter);
  add_file_option(command, options->input);
  add_format_options(command, options->format, {"text", "csv", "json"});
  command.add_option("--kind", options->kind, "List notes of this kind alone").check(one_of(kinds())).type_name("KIND");
  command.add_option("--level", options->level, "List logs of this level and above alone")
      .check(one_of(kLevels))
      .type_name("LEVEL");
  command.add_flag("--frames", options->frames, "Say how long frames took, and which were the slowest");
  command.add_option("--target", options->target, "How long a frame may take, like 8ms (16.7ms unless given)")
      .check(readable(parse_duration))
      .type_name("TIME");
  add_selection_options(command, options->input, "List only notes made in calls of functions whose name matches");
  add_text_options(command, options->text);
  command.callback([options, &status] { status = notes(*options); });
}

}  // namespace karst::cli
