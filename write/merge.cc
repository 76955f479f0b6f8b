// SPDX-License-Identifier: MIT
#include "write/merge.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "write/moved_blocks.h"

namespace karst::writing {
namespace {

using Threads = std::set<std::pair<std::uint32_t, std::uint32_t>>;  // process and thread ids of the kernel's

/// The parts of a model that have times, on another clock and behind other processes.
class Mover {
 public:
  Mover(const TickMap& map, std::uint32_t first_process, std::uint32_t first_moment)
      : map_(map), first_process_(first_process), first_moment_(first_moment) {}

  /// Without what is added apart.
  reader::Process process(const reader::Process& of) const {
    reader::Process moved;
    moved.index = first_process_ + of.index;
    moved.pid = of.pid;
    moved.parent_pid = of.parent_pid;
    moved.flags = of.flags;
    moved.wait_status = of.wait_status;
    moved.parent = of.parent == 0 ? 0 : first_process_ + of.parent;
    moved.start_ticks = map_.at(of.start_ticks);
    moved.end_ticks = map_.at(of.end_ticks);
    moved.overwritten_events = of.overwritten_events;
    moved.lost_events = of.lost_events;
    moved.name = of.name;
    moved.command_line = of.command_line;
    moved.executable = of.executable;
    moved.options = of.options;
    moved.min_duration_ticks = map_.length(of.min_duration_ticks);
    moved.clock_period_ticks = map_.length(of.clock_period_ticks);
    moved.clock_longest_ticks = map_.length(of.clock_longest_ticks);
    const auto cost = [this](std::uint32_t ticks) { return static_cast<std::uint32_t>(map_.length(ticks)); };
    moved.cost = {cost(of.cost.call), cost(of.cost.inside), cost(of.cost.off_by)};
    return moved;
  }
  std::vector<reader::Module> modules(std::vector<reader::Module> of) const {
    for (reader::Module& module : of) {
      module.loaded_ticks = map_.at(module.loaded_ticks);
      module.unloaded_ticks = map_.at(module.unloaded_ticks);
    }
    return of;
  }
  reader::Thread thread(reader::Thread of) const {
    of.joined_ticks = map_.at(of.joined_ticks);
    of.exited_ticks = map_.at(of.exited_ticks);
    return of;
  }
  std::vector<reader::Switch> switches(std::vector<reader::Switch> of) const {
    for (reader::Switch& change : of) {
      change.begin_ticks = map_.at(change.begin_ticks);
      change.end_ticks = map_.at(change.end_ticks);
    }
    return of;
  }
  std::vector<reader::Moment> moments(std::vector<reader::Moment> of) const {
    for (reader::Moment& moment : of) {
      moment.number += first_moment_;
      for (std::uint64_t* ticks :
           {&moment.begin_ticks, &moment.end_ticks, &moment.kept_from, &moment.kept_to, &moment.whole_from})
        *ticks = map_.at(*ticks);
    }
    return of;
  }
  reader::StateLog states(reader::StateLog of) const {
    of.source.begin_ticks = map_.at(of.source.begin_ticks);
    of.source.end_ticks = map_.at(of.source.end_ticks);
    for (format::StateRecord& record : of.records) record.ticks = map_.at(record.ticks);
    return of;
  }
  reader::UsageLog usage(reader::UsageLog of) const {
    for (reader::UsageSeries& series : of.series)
      for (reader::UsagePoint& point : series.points) point.ticks = map_.at(point.ticks);
    return of;
  }
  reader::SampleLog samples(reader::SampleLog of) const {
    of.source.begin_ticks = map_.at(of.source.begin_ticks);
    of.source.end_ticks = map_.at(of.source.end_ticks);
    for (format::SampleRecord& record : of.samples) record.ticks = map_.at(record.ticks);
    for (format::SampleRecord& record : of.waits) record.ticks = map_.at(record.ticks);
    return of;
  }

 private:
  const TickMap& map_;
  std::uint32_t first_process_, first_moment_;
};

/// Of the file, without those that the reader made of it.
std::vector<reader::Function> recorded(const reader::Process& process) {
  std::vector<reader::Function> functions = process.functions;
  std::erase_if(functions, [](const reader::Function& of) { return of.made; });
  return functions;
}

void write_process(const MergePart& part, const Mover& mover, const reader::Process& process, TraceWriter& writer) {
  const reader::Process moved = mover.process(process);
  writer.add_modules(moved.index, mover.modules(process.modules));
  std::vector<reader::Thread> threads;
  for (const reader::Thread& thread : process.threads) threads.push_back(mover.thread(thread));
  writer.add_threads(moved.index, threads);
  writer.add_moments(moved.index, mover.moments(process.moments));
  writer.add_mode(moved);
  writer.add_cost(moved);
  reader::EventReader read = part.trace->event_reader();
  for (const reader::Thread& thread : process.threads)
    add_moved_blocks(part.trace->blocks(thread), read, part.map, {moved.index, thread.index}, writer);
  writer.add_switches(moved.index, mover.switches(process.switches));
  writer.add_functions(moved.index, recorded(process));
}

Threads threads_of(const reader::Trace& trace) {
  Threads all;
  for (const reader::Process& process : trace.processes())
    for (const reader::Thread& thread : process.threads) all.emplace(process.pid, thread.tid);
  return all;
}

/// Whether any other part has a thread that one of this part could be taken for, by its ids.
bool is_told_apart(const std::vector<MergePart>& parts, const MergePart& part) {
  const Threads own = threads_of(*part.trace);
  return std::none_of(parts.begin(), parts.end(), [&](const MergePart& other) {
    if (&other == &part) return false;
    const Threads theirs = threads_of(*other.trace);
    return std::any_of(theirs.begin(), theirs.end(), [&](const auto& of) { return own.contains(of); });
  });
}

/// The one part whose states, or samples, the whole may have; the others that have some go into `left_out`.
template <typename Has>
const MergePart* only_one(const std::vector<MergePart>& parts, Has has, std::vector<const reader::Trace*>& left_out) {
  const MergePart* kept = nullptr;
  for (const MergePart& part : parts) {
    if (!has(*part.trace)) continue;
    if (kept == nullptr && is_told_apart(parts, part))
      kept = &part;
    else
      left_out.push_back(part.trace);
  }
  return kept;
}

std::uint64_t write_sources(const std::vector<MergePart>& parts, TraceWriter& writer) {
  std::map<std::string_view, std::string_view> written;
  std::uint64_t others = 0;
  for (const MergePart& part : parts) {
    for (const reader::SourceFile& source : part.trace->sources()) {
      const auto [at, fresh] = written.emplace(source.path, source.text);
      if (fresh) writer.add_source(source.path, source.text);
      if (at->second != source.text) ++others;
    }
  }
  return others;
}

void write_untraced(const std::vector<MergePart>& parts, TraceWriter& writer) {
  std::vector<reader::UntracedProgram> all;
  for (const MergePart& part : parts)
    all.insert(all.end(), part.trace->untraced().begin(), part.trace->untraced().end());
  writer.add_untraced(all);
}

}  // namespace

Result<LeftOut> write_merged(const std::vector<MergePart>& parts, TraceWriter& writer) {
  std::vector<Mover> movers;
  std::vector<reader::Process> processes;
  std::uint32_t moments = 0;
  for (const MergePart& part : parts) {
    movers.emplace_back(part.map, static_cast<std::uint32_t>(processes.size()), moments);
    std::uint32_t last = 0;
    for (const reader::Process& process : part.trace->processes()) {
      processes.push_back(movers.back().process(process));
      for (const reader::Moment& moment : process.moments) last = std::max(last, moment.number);
    }
    moments += last;
  }
  writer.add_processes(processes);
  writer.add_clock(parts.front().trace->clock());
  for (std::size_t i = 0; i < parts.size(); ++i)
    for (const reader::Process& process : parts[i].trace->processes())
      write_process(parts[i], movers[i], process, writer);
  write_untraced(parts, writer);
  LeftOut left_out;
  const auto of = [&](const MergePart* part) { return movers[static_cast<std::size_t>(part - parts.data())]; };
  if (const auto* part = only_one(
          parts, [](const auto& trace) { return !trace.states().empty(); }, left_out.states))
    writer.add_states(of(part).states(part->trace->states().log()));
  if (const auto* part = only_one(
          parts, [](const auto& trace) { return !trace.samples().empty(); }, left_out.samples))
    writer.add_samples(of(part).samples(part->trace->samples()));
  if (const auto* part = only_one(
          parts, [](const auto& trace) { return !trace.usage().series.empty(); }, left_out.usage))
    writer.add_usage(of(part).usage(part->trace->usage()));
  for (std::size_t i = 0; i < parts.size(); ++i) {
    for (const reader::Process& process : parts[i].trace->processes()) {
      const std::uint32_t index = movers[i].process(process).index;
      writer.add_symbols(index, recorded(process));
      writer.add_inlined(index, process.inlined);
    }
  }
  left_out.sources = write_sources(parts, writer);
  for (const MergePart& part : parts)
    if (const Status unchanged = part.trace->unchanged(); !unchanged) return unchanged.error();
  return left_out;
}

}  // namespace karst::writing
