// SPDX-License-Identifier: MIT
#include "cli/input/kept.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "analysis/selection.h"
#include "cli/text/table.h"
#include "cli/text/text.h"
#include "engine/cut/cut.h"
#include "engine/index/index.h"
#include "format/moments.h"
#include "reader/moments.h"

namespace karst::cli {
namespace {

bool has(const reader::Moment& moment, format::MomentFlag flag) { return (moment.flags & flag) != 0; }

std::string arguments_of(const reader::Moment& moment) {
  std::string text;
  if (!has(moment, format::kMomentHasArguments)) return text;
  static constexpr const char* kRegisters[] = {"rdi", "rsi", "rdx", "rcx", "r8", "r9"};
  for (std::size_t i = 0; i < std::size(kRegisters); ++i)
    text += fmt::format("{}{}={:#x}", i == 0 ? "" : " ", kRegisters[i], moment.arguments[i]);
  return text;
}

constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

std::uint64_t since(std::uint64_t from, std::uint64_t ticks) { return ticks > from ? ticks - from : 0; }

/// How much of the range is missing, in words.
std::string losses_of(const reader::Trace& trace, const reader::Moment& moment) {
  std::string text;
  if (moment.whole_from > moment.kept_from)
    text = fmt::format("; memory was too small for all of it: whole for the last {} of {}",
                       duration_text(trace.clock().to_ns(since(moment.whole_from, moment.kept_to))),
                       duration_text(trace.clock().to_ns(since(moment.kept_from, moment.kept_to))));
  if (moment.lost_events != 0) text += fmt::format("; {} events of it are missing", count_text(moment.lost_events));
  if (text.empty() && has(moment, format::kMomentGaveUp)) text = "; memory was too small for all of it";
  return text;
}

}  // namespace

void print_moments(const reader::Trace& trace, Screen& screen) {
  const std::uint64_t origin = analysis::first_ticks(trace);
  Table table({{"kept", "kept", false, true, 0, 6},
               {"kind", "kind", true, true, 1, 9},
               {"at", "at", false, true, 0, 11},
               {"length", "length", false, true, 0, 11},
               {"what", "what", true}},
              Shorten::kEnd, "  ");
  for (const reader::Process& process : trace.processes()) {
    for (const reader::Moment& moment : process.moments) {
      std::string what = printable(moment.what);
      if (moment.function != 0)
        what += (what.empty() ? "" : ": ") + printable(trace.function(process, moment.function).name);
      if (moment.tid != 0) what += fmt::format(", thread {}", moment.tid);
      const std::string arguments = arguments_of(moment);
      if (!arguments.empty()) what += fmt::format(", at {:#x} with {}", moment.address, arguments);
      table.add({std::to_string(moment.number), reader::moment_kind_name(moment.kind),
                 duration_text(trace.clock().to_ns(since(origin, moment.begin_ticks))),
                 duration_text(trace.clock().to_ns(since(moment.begin_ticks, moment.end_ticks))),
                 what + losses_of(trace, moment)});
    }
  }
  if (table.empty()) return;
  screen.output().append("\n");
  table.print(screen);
}

Result<reader::Trace> cut_to_moment(reader::Trace trace, std::uint32_t number, std::vector<std::byte>& bytes) {
  const std::string name = trace.name();
  const auto found = reader::find_moment(trace, number);
  if (!found) return found.error();
  const engine::TickRange range{(*found)->kept_from, (*found)->kept_to + ((*found)->kept_to != kNever ? 1 : 0)};
  engine::IndexProgress progress;
  auto index = engine::TraceIndex::build(std::move(trace), progress);
  if (!index) return index.error();
  engine::Scope scope(**index);
  for (std::uint32_t i = 0; i < (*index)->threads().size(); ++i) {
    scope.add(i, engine::rows_in((*index)->threads()[i].calls, range));
  }
  auto cut = engine::cut_trace(scope);
  if (!cut) return cut.error();
  bytes = std::move(*cut);
  return reader::Trace::open_memory(bytes, name);
}

Result<std::string> page_address_of(const std::string& file, std::uint32_t number) {
  auto trace = reader::Trace::open(file);
  if (!trace) return trace.error();
  const auto found = reader::find_moment(*trace, number);
  if (!found) return found.error();
  return "#kept=" + std::to_string(number);
}

}  // namespace karst::cli
