// The first frame of a name is in no sum unless somebody marked where it begins.
#include "cli/commands/notes_frames.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/frames.h"
#include "base/json.h"
#include "base/output.h"
#include "cli/command.h"
#include "cli/text/csv.h"
#include "cli/text/table.h"
#include "cli/text/text.h"
#include "columns/table.h"

namespace karst::cli {
namespace {

constexpr std::size_t kSlowest = 10;

struct OneFrame {
  std::uint64_t number, begin_ns, ns;
};

struct FrameSet {
  std::string_view name;
  const reader::Process* process;
  std::vector<OneFrame> frames;   // in order of time
  std::vector<std::size_t> slow;  // places of the slowest ones
  std::uint64_t sum = 0, over = 0;
  std::vector<std::uint64_t> ns;

  std::uint64_t percentile(std::uint64_t percent) const { return columns::percentile(ns, percent); }
  std::uint64_t mean() const { return sum / frames.size(); }
  std::uint64_t most() const { return frames[slow.front()].ns; }
};

FrameSet make_set(const Input& input, const analysis::Frames& frames, const analysis::Frames::Set& of,
                  std::uint64_t target_ns) {
  const reader::Trace& trace = input.trace;
  FrameSet set{of.name, &trace.processes()[of.process], {}, {}, 0, 0, {}};
  const std::uint64_t start = analysis::first_ticks(trace);
  const bool first_is_marked = frames.first_is_marked(of.process, of.name);
  for (const analysis::RequestWork& frame : frames.all(of.process, of.name)) {
    const auto& range = input.filter.range;
    if ((frame.id == 1 && !first_is_marked) ||
        (range && (frame.range.begin < range->begin || frame.range.end > range->end)))
      continue;
    const std::uint64_t ns = trace.clock().to_ns(frame.range.end - frame.range.begin);
    set.frames.push_back({frame.id, trace.clock().to_ns(frame.range.begin - start), ns});
    set.ns.push_back(ns);
    set.sum += ns;
    set.over += ns > target_ns ? 1 : 0;
  }
  for (std::size_t i = 0; i < set.frames.size(); ++i) set.slow.push_back(i);
  const auto most = static_cast<std::ptrdiff_t>(std::min(kSlowest, set.slow.size()));
  std::partial_sort(set.slow.begin(), set.slow.begin() + most, set.slow.end(), [&](std::size_t a, std::size_t b) {
    return set.frames[a].ns != set.frames[b].ns ? set.frames[a].ns > set.frames[b].ns : a < b;
  });
  set.slow.resize(static_cast<std::size_t>(most));
  return set;
}

void print_frames_text(const std::vector<FrameSet>& sets, std::uint64_t target_ns, Screen& screen) {
  const bool processes =
      std::any_of(sets.begin(), sets.end(), [&](const FrameSet& set) { return set.process != sets.front().process; });
  std::vector<Column> columns{{.key = "frames", .title = "frames"},
                              {.key = "mean", .title = "mean", .rank = 2},
                              {.key = "p50", .title = "p50", .rank = 1},
                              {.key = "p90", .title = "p90", .rank = 4},
                              {.key = "p99", .title = "p99", .rank = 3},
                              {.key = "longest", .title = "longest"},
                              {.key = "over", .title = "over " + duration_text(target_ns)}};
  if (processes) columns.push_back({.key = "process", .title = "process"});
  columns.push_back({.key = "name", .title = "name", .left = true});
  Table sums(std::move(columns), Shorten::kEnd);
  for (const FrameSet& set : sets) {
    std::vector<std::string> cells{
        count_text(set.frames.size()),
        duration_text(set.mean()),
        duration_text(set.percentile(50)),
        duration_text(set.percentile(90)),
        duration_text(set.percentile(99)),
        duration_text(set.most()),
        fmt::format("{} {:>6}", count_text(set.over), percent_text(set.over, set.frames.size()))};
    if (processes) cells.push_back(fmt::to_string(set.process->pid));
    cells.push_back(printable(set.name));
    sums.add(std::move(cells));
  }
  sums.print(screen);
  for (const FrameSet& set : sets) {
    screen.output().append(fmt::format("\nthe slowest of {}{}:\n", printable(set.name),
                                       processes ? fmt::format(" in {}", set.process->pid) : std::string()));
    Table slowest({{.key = "duration", .title = "duration"},
                   {.key = "begin", .title = "begin"},
                   {.key = "frame", .title = "frame", .left = true}},
                  Shorten::kEnd);
    for (const std::size_t at : set.slow) {
      const OneFrame& frame = set.frames[at];
      slowest.add({duration_text(frame.ns), duration_text(frame.begin_ns), fmt::to_string(frame.number)});
    }
    slowest.print(screen);
  }
}

void print_frames_csv(const std::vector<FrameSet>& sets, Output& output) {
  output.append("name,pid,number,begin_ns,duration_ns\n");
  for (const FrameSet& set : sets)
    for (const OneFrame& frame : set.frames) {
      if (output.failed()) return;
      output.append(fmt::format("{},{},{},{},{}\n", csv_field(set.name), set.process->pid, frame.number, frame.begin_ns,
                                frame.ns));
    }
}

void print_frames_json(const Input& input, const std::vector<FrameSet>& sets, std::uint64_t target_ns, Output& output) {
  Json json;
  json.open('{').field("trace", input.trace.name()).field("target_ns", target_ns).key("frames").open('[');
  for (const FrameSet& set : sets) {
    json.line().open('{').field("name", set.name).field("pid", set.process->pid).field("count", set.frames.size());
    json.field("mean_ns", set.mean()).field("p50_ns", set.percentile(50)).field("p90_ns", set.percentile(90));
    json.field("p99_ns", set.percentile(99)).field("max_ns", set.most()).field("over", set.over);
    json.key("slowest").open('[');
    for (const std::size_t at : set.slow) {
      const OneFrame& frame = set.frames[at];
      json.open('{').field("number", frame.number).field("begin_ns", frame.begin_ns).field("duration_ns", frame.ns);
      json.close('}');
    }
    json.close(']').close('}').flush(output);
  }
  json.close(']').close('}').flush(output);
  output.append("\n");
}

}  // namespace

int print_frames(const Input& input, std::uint64_t target_ns, const std::string& format, const TextOptions& text) {
  const analysis::Frames frames(input.trace);
  if (frames.names().empty())
    return fail({input.trace.name() + " has no frames: a program marks where one ends with KARST_FRAME(NAME) of "
                                      "karst/karst.h"});
  std::set<std::uint32_t> chosen;
  for (const reader::Thread* thread : input.threads) chosen.insert(thread->process);
  std::vector<FrameSet> sets;
  for (const analysis::Frames::Set& of : frames.sets()) {
    if (!chosen.contains(of.process)) continue;
    FrameSet set = make_set(input, frames, of, target_ns);
    if (!set.frames.empty()) sets.push_back(std::move(set));
  }
  if (sets.empty())
    return fail(
        {"no frame of " + input.trace.name() + " has a mark at its begin and at its end, and passes all filters"});
  if (format == "text") {
    Screen screen(text);
    print_frames_text(sets, target_ns, screen);
    return screen.finish(&input.trace);
  }
  return print_data(
      format, input, [&](Output& output) { print_frames_json(input, sets, target_ns, output); },
      [&](Output& output) { print_frames_csv(sets, output); });
}

}  // namespace karst::cli
