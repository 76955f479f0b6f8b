#include "collect/live/snapshot.h"

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "collect/launch/answer.h"
#include "collect/launch/interruption.h"

namespace karst::collect {
namespace {

/// From when on no thread lacks anything that was overwritten.
std::uint64_t whole_from(const ArenaView& arena) {
  std::unordered_map<std::uint32_t, ArenaBlock> oldest;
  for (const ArenaBlock& block : arena.blocks()) {
    const auto [at, fresh] = oldest.try_emplace(block.thread, block);
    if (!fresh && block.sequence < at->second.sequence) at->second = block;
  }
  std::uint64_t from = 0;
  for (const auto& [thread, block] : oldest)
    if (block.sequence != 0) from = std::max(from, block.ticks);
  return from;
}

}  // namespace

Result<SnapshotResult> snapshot(Attached target, const SnapshotRange& range, const std::filesystem::path& output,
                                const RecordingOptions& asked) {
  const ClockPair now = read_clock_pair();
  // The rate from the longest stretch there is.
  const Clock clock = make_clock({target.arena.start(), now});
  const auto ticks_ago = [&](std::uint64_t ns) {
    const auto ticks =
        static_cast<std::uint64_t>(static_cast<unsigned __int128>(ns) * clock.ticks_per_second / 1'000'000'000U);
    return now.ticks > ticks ? now.ticks - ticks : 1;
  };
  const Interruption interruption;
  RecordingOptions options = asked;
  options.to = ticks_ago(range.to_ns);
  options.from = range.from_ns != 0 ? std::max(ticks_ago(range.from_ns), target.arena.start().ticks) : 0;
  options.moment = "karst snapshot";

  if (!options.resolve.as) options.resolve.as = resolve_options(target).as;
  auto writer =
      output.empty()
          ? writing::TraceWriter::create_numbered(target.process.name + "-" + std::to_string(target.process.pid))
          : writing::TraceWriter::create(output);
  if (!writer) return writer.error();
  SnapshotResult result;
  const std::uint64_t whole = whole_from(target.arena);
  if (options.from != 0 && whole > options.from)
    result.missing_ns = clock.to_ns(std::min(whole, options.to) - options.from);
  auto answered = ask_session(target, options.from != 0 ? options.from : target.arena.start().ticks, options.to);
  if (answered) options.states = &answered->states;
  std::vector<RecordedProcess> processes;
  processes.push_back({.history = History(std::move(target.arena)),
                       .moments = answered ? std::move(answered->moments) : std::vector<reader::Moment>(),
                       .inherited = {}});
  auto summary = record(std::move(processes), {now}, options, *writer);
  if (!summary) return summary.error();
  result.summary = std::move(*summary);
  result.file = writer->path();
  return result;
}

}  // namespace karst::collect
