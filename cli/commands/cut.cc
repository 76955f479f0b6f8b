// SPDX-License-Identifier: MIT
// karst cut: a part of a trace as a trace of its own.
#include "engine/cut/cut.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "analysis/notes.h"
#include "analysis/requests.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/input/chosen_part.h"
#include "cli/text/text.h"
#include "columns/selection.h"
#include "write/trace_writer.h"

namespace karst::cli {
namespace {

struct Options {
  InputOptions input;
  std::string output;
};

bool names_request(const reader::Calls& calls, std::uint64_t id) {
  return std::any_of(calls.notes.begin(), calls.notes.end(), [&](const reader::Note& note) {
    using Kind = format::NoteKind;
    const bool is_of_request = note.is(Kind::kRequestBegin) || note.is(Kind::kRequest) || note.is(Kind::kRequestEnd);
    return is_of_request && analysis::note_bits(calls, note) == id;
  });
}

/// From the begin of the request to its end; where its number came again, to the end of the last one. Leaves those
/// threads that said anything of it.
columns::TickRange take_request_threads(Input& input, std::uint64_t id) {
  analysis::RequestFinder finder(input.trace, nullptr, std::nullopt, true);
  reader::Calls calls;
  std::erase_if(input.threads, [&](const reader::Thread* thread) {
    if (!analysis::tells_of_requests(input.trace, *thread)) return true;
    calls = reader::rebuild_calls(input.trace, *thread, std::move(calls));
    finder.add(*thread, calls, calls);
    return !names_request(calls, id);
  });
  columns::TickRange range{~std::uint64_t{0}, 0};
  for (const analysis::Request& request : finder.take()) {
    if (request.id != id) continue;
    range.begin = std::min(range.begin, request.begin);
    range.end = std::max(range.end, request.end + 1);
  }
  return range;
}

/// Makes of --request a range and threads. Error: none of its time is in the range that was chosen.
Status take_request(Input& input) {
  if (!input.filter.request) return Unit{};
  const columns::TickRange asked = input.filter.range.value_or(columns::TickRange{});
  const columns::TickRange of = take_request_threads(input, *input.filter.request);
  input.filter.range = columns::TickRange{std::max(asked.begin, of.begin), std::min(asked.end, of.end)};
  if (input.filter.range->begin < input.filter.range->end) return Unit{};
  return Error{fmt::format("no thread worked on request {} in that time", *input.filter.request)};
}

int cut(const Options& options) {
  auto input = open_input(options.input);
  if (!input) return fail(input.error());
  if (const Status taken = take_request(**input); !taken) return fail(taken.error());
  auto part = chosen_part(**input, "reading calls");
  if (!part) return fail(part.error());
  engine::Scope scope(*part->index);
  std::uint64_t calls = 0;
  for (const std::uint32_t number : part->threads) {
    scope.add(number,
              columns::rows_in(part->index->threads()[number].calls, part->range.value_or(columns::TickRange{})));
    const columns::RowRange& rows = scope.parts.back().rows;
    calls += rows.outer.size() + (rows.last - rows.first);
  }
  if (calls == 0) return fail({"no call is in that part of " + part->index->trace().name()});
  auto writer = writing::TraceWriter::create(options.output);
  if (!writer) return fail(writer.error());
  if (const Status written = engine::write_cut(scope, *writer); !written) return fail(written.error());
  if (const Status finished = writer->finish(); !finished) return fail(finished.error());
  say(fmt::format("wrote {}: {}", options.output, plural(calls, "call")));
  return kExitOk;
}

}  // namespace

void register_cut(Command app, int& status) {
  auto options = std::make_shared<Options>();
  Command command = app.add_subcommand("cut", "Write a part of a trace as a trace");
  command.footer(
      "Calls are the same as in FILE: of those that run at an end of the range all is there but what they called\n"
      "outside of it. Threads without calls in the range are left out. Every command takes OUT as it takes FILE.");
  command.add_option("FILE", options->input.file, "The trace, as 'karst run' wrote it").type_name("").required();
  command.add_option("-o,--output", options->output, "Trace file to write").type_name("OUT").required();
  add_part_options(command, options->input);
  command.callback([options, &status] { status = cut(*options); });
}

}  // namespace karst::cli
