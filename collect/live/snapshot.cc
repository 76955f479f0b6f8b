// SPDX-License-Identifier: MIT
#include "collect/live/snapshot.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "collect/launch/answer.h"
#include "collect/launch/interruption.h"

namespace karst::collect {
namespace {

/// What is copied before anything else is done, in bytes: what is older is read where it lies, while it is there.
constexpr std::uint64_t kMostCopied = std::uint64_t{1} << 30;
/// Where nothing was whole: threads went round their whole memory before it was looked at.
constexpr int kTries = 5;

}  // namespace

Result<SnapshotResult> snapshot(Attached target, const SnapshotRange& range, const std::filesystem::path& output,
                                const RecordingOptions& asked) {
  const Interruption interruption;
  RecordingOptions options = asked;
  options.moment = "karst snapshot";
  if (!options.resolve.as) options.resolve.as = resolve_options(target).as;
  const ClockPair start = target.arena.start();
  ClockPair now;
  Clock clock;
  std::uint64_t whole = 0;
  // The process runs on, and all else takes its time.
  History history(std::move(target.arena));
  for (int i = 0; i < kTries; ++i) {
    now = read_clock_pair();
    // The rate from the longest stretch there is.
    clock = make_clock({start, now});
    const auto ticks_ago = [&](std::uint64_t ns) {
      const auto ticks =
          static_cast<std::uint64_t>(static_cast<unsigned __int128>(ns) * clock.ticks_per_second / 1'000'000'000U);
      return now.ticks > ticks ? now.ticks - ticks : 1;
    };
    options.to = ticks_ago(range.to_ns);
    options.from = range.from_ns != 0 ? std::max(ticks_ago(range.from_ns), start.ticks) : 0;
    whole = history.keep(options.from, options.to, History::Order::kNewestFirst, kMostCopied);
    if (whole < options.to) break;
  }
  history.begin_behind_gaps();

  auto writer =
      output.empty()
          ? writing::TraceWriter::create_numbered(target.process.name + "-" + std::to_string(target.process.pid))
          : writing::TraceWriter::create(output);
  if (!writer) return writer.error();
  SnapshotResult result;
  if (options.from != 0 && whole > options.from)
    result.missing_ns = clock.to_ns(std::min(whole, options.to) - options.from);
  auto answered = ask_session(target.held, target.process.uid, *history.arena(),
                              options.from != 0 ? options.from : start.ticks, options.to);
  if (answered) options.states = &answered->states;
  std::vector<RecordedProcess> processes;
  processes.push_back({.history = std::move(history),
                       .moments = answered ? std::move(answered->moments) : std::vector<reader::Moment>(),
                       .inherited = {}});
  auto summary = record(std::move(processes), {now}, options, *writer);
  if (!summary) return summary.error();
  result.summary = std::move(*summary);
  result.file = writer->path();
  return result;
}

}  // namespace karst::collect
