// SPDX-License-Identifier: MIT
// karst memory: who took memory, how much, and what of it stayed.
#include "analysis/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "answers/data.h"
#include "answers/memory.h"
#include "base/json.h"
#include "cli/command.h"
#include "cli/commands/answer.h"
#include "cli/commands/memory_use.h"
#include "cli/input/trace_input.h"
#include "cli/text/call_name.h"
#include "cli/text/names.h"
#include "cli/text/table.h"
#include "cli/text/terminal.h"
#include "cli/text/text.h"
#include "reader/trace.h"

namespace karst::cli {
namespace {

using analysis::MemorySum;
using analysis::MemoryUse;

struct Options {
  InputOptions input;
  AnswerOptions answer;
  std::string by = "function";
  std::string call;  // empty: all
};

constexpr const char* kRest = R"(
A trace has this if it was made by 'karst run --system memory'. With
'--system memory=512K' one allocation in 512 KiB was recorded, by chance;
numbers are estimates then, and the head says how far they may be off (95%).
realloc frees one and takes one. --range A..B shows what grew between the two.
--below REGEX: what these functions and all that they called took. --call
TID@TIME: what one call took, as karst calls and explain name it; living is what
was not freed by its end.
By --by path, a row has the calls that led there, the innermost first.
Pictures: karst flame --by allocated, --by living or --by peak.)";

std::uint64_t whole(double amount) { return amount <= 0 ? 0 : static_cast<std::uint64_t>(std::llround(amount)); }

/// How far an estimate may be off: 95 of 100 are within.
double margin(double variance) { return 1.96 * std::sqrt(variance); }

std::string estimate_text(double bytes, double variance, const MemoryUse& use) {
  std::string text = size_text(whole(bytes));
  if (use.mean != 0) text += " +- " + size_text(whole(margin(variance)));
  return text;
}

/// The head: what there is in all, and what is not known.
std::string head_text(const reader::Trace& trace, const MemoryUse& use, const std::string& call) {
  const MemorySum& all = use.all;
  const std::uint64_t start = analysis::first_ticks(trace);
  std::string text =
      fmt::format("{}{}: {} of {}; at most {} at once, after {}; ", printable(trace.name()),
                  call.empty() ? "" : ", call " + printable(call), plural(whole(all.allocations), "allocation"),
                  estimate_text(all.bytes, all.bytes_variance, use), size_text(whole(all.peak_bytes)),
                  duration_text(trace.clock().to_ns(use.peak_ticks > start ? use.peak_ticks - start : 0)));
  text += all.living == 0 ? std::string("nothing")
                          : fmt::format("{} in {}", estimate_text(all.living_bytes, all.living_variance, use),
                                        plural(whole(all.living), "allocation"));
  text += !call.empty()                  ? " living at its end"
          : trace.processes().size() > 1 ? " living at the ends of its processes"
                                         : " living at the end";
  if (use.mean != 0)
    text += fmt::format("; estimates of one in {}, by {}", size_text(use.mean), plural(use.records, "record"));
  if (all.failed >= 1) text += fmt::format("; {} failed", count_text(whole(all.failed)));
  if (all.mapped_bytes > 0)
    text += fmt::format("; mapped beside that: {}, {} of it at the end", size_text(whole(all.mapped_bytes)),
                        size_text(whole(all.mapped_living_bytes)));
  return text;
}

/// Empty: everything is known.
std::string unknown_text(const reader::Trace& trace, const MemoryUse& use) {
  if (use.not_known == 0) return {};
  const std::uint64_t start = analysis::first_ticks(trace);
  const std::uint64_t from = std::min(use.known_from, analysis::last_ticks(trace));
  return fmt::format(
      "{} of before {} may have been freed unseen, as older events of some threads are overwritten or tracing was "
      "switched off: they are not counted as living, nor at the peak. More memory keeps more: karst run --memory",
      plural(use.not_known, "allocation"), duration_text(trace.clock().to_ns(from > start ? from - start : 0)));
}

/// What is known of all, into an object that is open.
void write_facts(Json& json, const reader::Trace& trace, const MemoryUse& use, const answers::Relation& relation) {
  const answers::Times times(trace);
  json.field("sampled_bytes", use.mean).field("records", use.records);
  json.field("peak_ns", times.since_start(use.peak_ticks)).field("unknown_frees", use.unknown_frees);
  json.field("not_known", use.not_known).key("all").open('{');
  const answers::MemoryRow all{{}, use.all};
  answers::write_fields(json, trace, relation, &all);
  json.close('}');
}

int memory(const Options& options) {
  const auto call = options.call.empty() ? Result<CallName>(CallName{}) : parse_call_name(options.call);
  if (!call) return usage_error("--call: " + call.error().message, "memory");
  auto input = open_input(options.input);
  if (!input) return fail(input.error());
  const reader::Trace& trace = (*input)->trace;
  analysis::Parts parts(trace);
  const auto use = memory_use(**input, parts, options.call.empty() ? nullptr : &*call);
  if (!use) return fail(use.error());
  const std::vector<answers::MemoryRow> rows = answers::memory_rows(parts, *use, options.by == "path");
  const answers::Relation& relation =
      options.by == "path" ? answers::memory_of_paths() : answers::memory_of_functions();
  const Answer answer(trace, relation, options.answer, addresses(rows));
  if (!options.answer.is_text())
    return print_answer(options.answer, **input, answer, [&](Json& json) { write_facts(json, trace, *use, relation); });
  Screen screen(options.answer.text);
  say_partial(screen, **input);
  screen.output().append(wrap(head_text(trace, *use, options.call), screen.width(), 2) + "\n");
  if (Status printed = answer.print_table(screen); !printed) return fail(printed.error());
  answer.say_left_out(screen, options.by);
  if (const std::string text = unknown_text(trace, *use); !text.empty())
    screen.output().append(wrap(text, screen.width(), 2) + "\n");
  return screen.finish(&trace);
}

}  // namespace

void register_memory(Command app, int& status) {
  auto options = std::make_shared<Options>();
  Command command = app.add_subcommand("memory", "Show who took memory, how much, and what was not given back");
  command.footer(answer_footer(answers::memory_of_functions(), ":\n\n", kRest));
  add_file_option(command, options->input);
  command.add_option("--by", options->by, "A row for each function (the default), or for each path of calls")
      .check(one_of({"function", "path"}))
      .type_name("function|path");
  add_answer_options(command, options->answer, answers::memory_of_functions(), "rows", "bytes", 20);
  command.add_option("--call", options->call, "Take only what this call took, and what it called")
      .type_name("TID@TIME");
  add_selection_options(command, options->input, "Take only what functions took themselves whose name matches");
  command.callback([options, &status] { status = memory(*options); });
}

}  // namespace karst::cli
