// The reader of .karst files: opening, and rebuilding the calls and the states of every thread; and what was done for
// requests, which notes say.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "analysis/notes.h"
#include "analysis/requests.h"
#include "analysis/usage.h"
#include "analysis/values.h"
#include "fuzz/require.h"
#include "reader/held_times.h"
#include "reader/moments.h"
#include "reader/pieces.h"
#include "reader/trace.h"

namespace {

using namespace karst;

using fuzz::require;

// What rebuild_calls and the model promise to those who use them without looking twice.
void check_promises(const reader::Trace& trace, const reader::Process& process, const reader::Calls& calls) {
  const std::size_t rows = calls.size();
  require(calls.begin.size() == rows && calls.duration.size() == rows && calls.parent.size() == rows &&
              calls.depth.size() == rows && calls.marks.size() == rows,
          "columns are of one length");
  for (std::size_t i = 0; i < rows; ++i) {
    const bool root = calls.parent[i] == reader::kNoParent;
    require(root || calls.parent[i] < i, "a parent comes before its children");
    require(root ? calls.depth[i] == 0 : calls.depth[i] == 65535 || calls.depth[i] == calls.depth[calls.parent[i]] + 1,
            "depth is that of the parent and one");
    require(!trace.function(process, calls.function[i]).name.empty(), "every function has a name");
    require(calls.function[i] <= process.last_id, "no id is above the last");
  }
  const auto column = [](const auto& of) { return std::span(of.begin(), of.end()); };
  require(reader::times_in_order(column(calls.begin), column(calls.duration), column(calls.parent)),
          "calls are a tree in order of time");
  for (std::size_t i = 0; i < calls.notes.size(); ++i) {
    const reader::Note& note = calls.notes[i];
    require(i == 0 || calls.notes[i - 1].ticks <= note.ticks, "notes are in order of time");
    require(note.row == reader::kNoParent || (note.row < rows && calls.begin[note.row] <= note.ticks),
            "a note is not before its call");
    require(note.name <= process.last_id, "nor is a note's name");
  }
}

/// Of a row, whichever number it has.
std::uint64_t sum_of(const reader::Calls& calls, std::size_t row) {
  constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15;
  std::uint64_t sum = kOdd;
  for (const std::uint64_t of : {std::uint64_t{calls.function[row]}, calls.begin[row], calls.duration[row],
                                 std::uint64_t{calls.depth[row]}, std::uint64_t{calls.marks[row]}})
    sum = (sum ^ of) * kOdd ^ sum >> 29;
  return sum;
}

/// Pieces have each call once, and as it is among all.
void check_pieces(const reader::Trace& trace, const reader::Thread& thread, const reader::Calls& calls) {
  if (calls.beyond_limit != 0) return;  // pieces need no room for all at once, and have those, too
  std::uint64_t all = 0;
  for (std::size_t row = 0; row < calls.size(); ++row) all += sum_of(calls, row);
  for (const std::size_t rows : {1, 50}) {
    std::uint64_t sum = 0;
    std::size_t count = 0;
    reader::each_piece(trace, thread, {.rows = rows}, [&](const reader::Piece& piece, const reader::Calls& of) {
      reader::each_sent(piece, [&](std::uint32_t row) {
        sum += sum_of(of, row);
        ++count;
      });
    });
    require(count == calls.size(), "pieces have each call once");
    require(sum == all, "calls of pieces are as those of all");
  }
}

void check_values(const reader::Trace& trace, const reader::Thread& thread, const reader::Calls& calls) {
  const analysis::CallValues values(calls);
  for (std::uint32_t row = 0; row < calls.size(); ++row) {
    require(values.has(row) || values.named(trace, thread, row).empty(), "what is named is noted");
    if (const reader::Note* note = values.arguments(row))
      require(note->name == calls.function[row], "arguments are those of the call's function");
  }
  for (const reader::Note& note : calls.notes)
    require(analysis::note_line(trace, thread, calls, note).size() < 1 << 20, "a note is a line");
}

void check_requests(const reader::Trace& trace) {
  analysis::RequestFinder finder(trace, nullptr, {}, false);
  for (const auto& process : trace.processes()) {
    for (const auto& thread : process.threads) {
      const reader::Calls calls = rebuild_calls(trace, thread);
      check_values(trace, thread, calls);
      finder.add(thread, calls, calls);
      const auto work = analysis::work_on_requests(calls);
      for (std::size_t i = 1; i < work.size(); ++i)
        require(work[i - 1].range.end <= work[i].range.begin, "a thread works on one request at a time");
      if (work.empty()) continue;
      require(analysis::worked_on(trace, thread, work.front().id), "what calls tell, events tell");
      reader::Calls cut = calls;
      analysis::cut_to_request(cut, work.front().id);
      check_promises(trace, process, cut);
      for (const reader::Note& note : cut.notes)
        require(note.row == reader::kNoParent || note.row < cut.size(), "a note's call is there");
    }
  }
  for (const analysis::Request& request : finder.take()) {
    require(request.begin <= request.end, "a request ends when it begins or later");
    require(request.idle <= request.duration(), "it is idle for no longer than it takes");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  auto trace = reader::Trace::open_memory(bytes, "fuzz");
  if (!trace) {
    require(!trace.error().message.empty(), "an error says something");
    return 0;
  }
  require(trace->complete() || !trace->problems().empty(), "a cut file is reported");
  std::uint64_t events = 0;
  for (const auto& process : trace->processes()) {
    for (const auto& function : process.functions) {
      if (function.id == 0) continue;
      require(!function.name.empty() && function.module < process.modules.size(), "functions have name and module");
    }
    for (const auto& moment : process.moments) {
      require(moment.kept_from <= moment.begin_ticks && moment.begin_ticks <= moment.end_ticks &&
                  moment.end_ticks <= moment.kept_to,
              "a moment lies in what was kept of it");
      require(find_moment(*trace, moment.number).ok(), "what is listed is found");
    }
    for (const auto& thread : process.threads) {
      for (const auto& block : trace->blocks(thread)) events += block.size();
      const reader::Calls calls = rebuild_calls(*trace, thread);
      check_promises(*trace, process, calls);
      check_pieces(*trace, thread, calls);
    }
  }
  check_requests(*trace);
  require(events == trace->event_count(), "every event belongs to a thread");
  const analysis::UsageOwners owners(*trace);
  for (const reader::UsageSeries& series : trace->usage().series) {
    require(!series.points.empty(), "a series has points");
    require(!owners.name(series).empty(), "a series has a name");
    const auto samples = analysis::usage_samples(series, trace->clock());
    require(samples.size() <= series.points.size(), "a sample is of a point");
    for (std::size_t i = 1; i < samples.size(); ++i)
      require(samples[i - 1].ticks <= samples[i].ticks, "what was used is in order of time");
    for (const analysis::UsageSample& sample : samples) require(std::isfinite(sample.value), "a value is a number");
    require(analysis::usage_sum(series, samples).readings == series.points.size(), "all readings are counted");
  }
  for (const reader::ThreadStates& thread : trace->states().threads()) {
    require(thread.task < trace->states().tasks().size(), "states are of a task that is known");
    for (std::size_t i = 1; i < thread.size(); ++i)
      require(thread.begin[i - 1] < thread.begin[i], "states are in order of time");
  }
  return 0;
}
