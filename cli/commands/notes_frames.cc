// SPDX-License-Identifier: MIT
#include "cli/commands/notes_frames.h"

#include <fmt/format.h>

#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/frames.h"
#include "answers/frames.h"
#include "base/json.h"
#include "cli/command.h"
#include "cli/text/table.h"
#include "cli/text/text.h"

namespace karst::cli {
namespace {

using answers::FrameSetRow;

std::vector<answers::FrameRow> rows_of(const FrameSetRow& set) {
  std::vector<answers::FrameRow> rows;
  rows.reserve(set.frames.size());
  for (const FrameSetRow::Frame& frame : set.frames) rows.push_back({set, frame});
  return rows;
}

/// The sums of each set, and its slowest frames.
Status print_frames_text(const Input& input, const Answer& sets, const AnswerOptions& options, std::uint64_t target_ns,
                         Screen& screen) {
  screen.output().append(fmt::format("target: {}\n", duration_text(target_ns)));
  if (Status printed = sets.print_table(screen); !printed) return printed;
  const bool processes = input.trace.processes().size() > 1;
  for (const void* of : sets.rows()) {
    const FrameSetRow& set = *static_cast<const FrameSetRow*>(of);
    const std::string where =
        processes ? fmt::format(" in {}", input.trace.processes()[set.process].pid) : std::string();
    screen.output().append(fmt::format("\nthe slowest of {}{}:\n", printable(set.name), where));
    const std::vector<answers::FrameRow> rows = rows_of(set);
    std::vector<const void*> slow;
    for (const std::size_t at : set.slow) slow.push_back(&rows[at]);
    AnswerOptions usual;
    usual.text = options.text;
    if (Status printed = Answer(input.trace, answers::slowest_frames(), usual, std::move(slow)).print_table(screen);
        !printed)
      return printed;
  }
  return Unit{};
}

}  // namespace

int print_frames(const Input& input, std::uint64_t target_ns, const AnswerOptions& options) {
  const analysis::Frames frames(input.trace);
  if (frames.names().empty())
    return fail({input.trace.name() + " has no frames: a program marks where one ends with KARST_FRAME(NAME) of "
                                      "karst/karst.h"});
  std::set<std::uint32_t> chosen;
  for (const reader::Thread* thread : input.threads) chosen.insert(thread->process);
  std::vector<FrameSetRow> sets;
  for (const analysis::Frames::Set& of : frames.sets()) {
    if (!chosen.contains(of.process)) continue;
    FrameSetRow set = answers::frame_set(input.trace, frames, of, input.filter.range, target_ns);
    if (!set.frames.empty()) sets.push_back(std::move(set));
  }
  if (sets.empty())
    return fail(
        {"no frame of " + input.trace.name() + " has a mark at its begin and at its end, and passes all filters"});
  if (options.format == "csv") {
    std::vector<answers::FrameRow> rows;
    for (const FrameSetRow& set : sets)
      for (const FrameSetRow::Frame& frame : set.frames) rows.push_back({set, frame});
    return print_answer(options, input, Answer(input.trace, answers::frames(), options, addresses(rows)));
  }
  const Answer answer(input.trace, answers::frame_sets(), options, addresses(sets));
  if (!options.is_text())
    return print_answer(options, input, answer, [&](Json& json) { json.field("target_ns", target_ns); });
  Screen screen(options.text);
  if (Status printed = print_frames_text(input, answer, options, target_ns, screen); !printed)
    return fail(printed.error());
  return screen.finish(&input.trace);
}

}  // namespace karst::cli
