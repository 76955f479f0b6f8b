// Asks analysis::OutlierFinder about columns that an index has, so `karst slow` and the page agree on what is slow.
#include "engine/api/outliers.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <vector>

#include "analysis/outliers.h"
#include "engine/api/answers.h"
#include "engine/api/states.h"
#include "engine/api/times.h"

namespace karst::engine {
namespace {

constexpr std::size_t kMostLevels = 64;  // of a path that is told

class Writer {
 public:
  Writer(Json& json, const TraceIndex& index, analysis::OutlierFinder& finder, ThreadTimes& times)
      : json_(json), index_(index), finder_(finder), times_(times), threads_(index.trace()) {
    for (std::uint32_t i = 0; i < index.threads().size(); ++i) number_of_.try_emplace(index.threads()[i].thread, i);
  }

  std::uint32_t number(const analysis::Outlier& outlier) const { return number_of_.at(outlier.call.thread); }

  /// The longest wait in it, if that is a tenth of its excess.
  const analysis::Wait* wait_of(const analysis::Outlier& outlier) {
    const ThreadIndex& thread = index_.threads()[number(outlier)];
    if (thread.states == nullptr) return nullptr;
    const analysis::Wait* wait = analysis::longest_wait(waits_of(thread), outlier.call.begin, outlier.call.end);
    return wait != nullptr && wait->length() * 10 >= outlier.excess() ? wait : nullptr;
  }

  void group(const analysis::OutlierGroup& group) {
    const analysis::Outlier& worst = group.worst;
    const std::uint32_t number = this->number(worst);
    const ThreadIndex& thread = index_.threads()[number];
    const std::uint32_t row = worst.call.row;
    json_.open('{').field("thread", number).field("index", row).field("function", index_.function_of(thread, row));
    json_.field("begin", index_.since_origin(worst.call.begin));
    json_.field("duration", ns(worst.call.end - worst.call.begin)).field("took", ns(worst.call.duration));
    json_.field("flags", thread.calls.marks[row]).field("depth", thread.calls.depth[row]);
    json_.field("usual", ns(worst.usual)).field("calls", group.calls).field("total", ns(group.duration));
    json_.key("path").open('[');
    std::size_t levels = 0;
    const CallColumns calls = times_.within(thread, row);
    for (const std::uint32_t below : finder_.path_below(*thread.thread, calls, row)) {
      if (++levels > kMostLevels) break;
      json_.open('{').field("index", below).field("function", index_.function_of(thread, below));
      json_.field("took", ns(calls.time(below))).close('}');
    }
    json_.close(']');
    if (thread.states != nullptr) {
      write_state_times(json_, "states", index_, analysis::states_of(worst, *thread.states));
      if (const analysis::Wait* wait = wait_of(worst); wait != nullptr) {
        json_.key("wait").open('{');
        write_wait(json_, index_, *wait);
        json_.close('}');
      }
    }
    json_.close('}');
  }

 private:
  std::uint64_t ns(std::uint64_t ticks) const { return index_.trace().clock().to_ns(ticks); }

  const std::vector<analysis::Wait>& waits_of(const ThreadIndex& thread) {
    const auto [at, fresh] = waits_.try_emplace(&thread);
    if (fresh) at->second = analysis::waits_of(threads_, *thread.states, 0);
    return at->second;
  }

  Json& json_;
  const TraceIndex& index_;
  analysis::OutlierFinder& finder_;
  ThreadTimes& times_;
  const analysis::StateThreads threads_;
  std::unordered_map<const reader::Thread*, std::uint32_t> number_of_;
  std::unordered_map<const ThreadIndex*, std::vector<analysis::Wait>> waits_;
};

}  // namespace

void write_outliers(Json& json, const Scope& scope, const TickRange& range, bool each, std::size_t most, bool raw) {
  const TraceIndex& index = *scope.index;
  ThreadTimes times(index, raw);
  analysis::OutlierFinder finder(index.trace(), nullptr, 0, analysis::kMostOutliers);
  expect(scope.work, 2 * index.calls());
  for (const ThreadIndex& thread : index.threads()) {
    if (!go_on(scope.work, thread.calls.size())) return;
    finder.learn(*thread.thread, times.of(thread));
  }
  for (const columns::Scope::Part& part : scope.parts) {
    const ThreadIndex& thread = index.threads()[part.number];
    if (!go_on(scope.work, thread.calls.size())) return;
    finder.find(*thread.thread, times.of(thread));
  }
  const std::uint64_t found = finder.found();
  std::vector<analysis::Outlier> outliers = finder.take();
  std::erase_if(outliers, [&](const analysis::Outlier& one) {
    return one.call.begin >= range.end || one.call.end <= range.begin;
  });
  Writer writer(json, index, finder, times);
  std::vector<std::uint64_t> excess(index.threads().size());
  for (const analysis::Outlier& one : outliers) {
    std::uint64_t& greatest = excess[writer.number(one)];
    greatest = std::max(greatest, one.excess());
  }
  std::vector<analysis::OutlierGroup> groups = analysis::group_outliers(outliers, each);
  analysis::put_idle_last(groups, index.trace(), [&](const analysis::Outlier& of) { return writer.wait_of(of); });
  json.open('{').field("calls", index.calls()).field("found", found);
  json.list("excess", excess, [&](std::uint64_t ticks) { return index.trace().clock().to_ns(ticks); });
  json.field("groups", groups.size()).key("slow").open('[');
  for (std::size_t i = 0; i < groups.size() && i < most; ++i) writer.group(groups[i]);
  json.close(']').close('}');
}

namespace {

/// Levels that samples below calls have in a range.
std::uint32_t sampled_levels(const ThreadIndex& thread, const TickRange& range) {
  if (thread.of_samples == nullptr) return 0;
  const Strip& strip = *thread.of_samples;
  auto depth = static_cast<std::uint32_t>(strip.lanes.depths());
  for (; depth != 0; --depth) {
    const auto lane = strip.lanes.rows(depth - 1);
    const auto behind = std::partition_point(lane.begin(), lane.end(),
                                             [&](std::uint32_t row) { return strip.calls.begin[row] < range.end; });
    if (behind != lane.begin() && strip.calls.end(*(behind - 1)) > range.begin) break;
  }
  return depth;
}

}  // namespace

void write_thread_sums(Json& json, const TraceIndex& index, const TickRange& range) {
  std::vector<std::uint32_t> depths;
  std::vector<reader::StateTimes> times;
  const std::uint64_t end = std::min(range.end, index.last_ticks());
  for (const ThreadIndex& thread : index.threads()) {
    std::uint32_t depth = thread.lanes.depths();
    // Calls of one level do not overlap: of those that began before the end the last one ends last.
    for (; depth != 0; --depth) {
      const auto lane = thread.lanes.rows(depth - 1);
      const auto behind = std::partition_point(lane.begin(), lane.end(),
                                               [&](std::uint32_t row) { return thread.calls.begin[row] < range.end; });
      if (behind == lane.begin()) continue;
      const std::uint32_t row = *(behind - 1);
      if (thread.calls.end(row) > range.begin || thread.calls.begin[row] >= range.begin) break;
    }
    depths.push_back(std::max(depth, sampled_levels(thread, range)));
    times.push_back(thread.states != nullptr && end > range.begin ? thread.states->between(range.begin, end)
                                                                  : reader::StateTimes{});
  }
  const auto ns = [&](std::uint64_t ticks) {
    return static_cast<std::int64_t>(ticks) < 0 ? 0 : index.trace().clock().to_ns(ticks);
  };
  json.open('{').list("depths", depths, [](std::uint32_t depth) { return depth; });
  json.list("cpu", times, [&](const reader::StateTimes& of) { return ns(of.running); });
  json.list("runnable", times, [&](const reader::StateTimes& of) { return ns(of.runnable); });
  json.list("blocked", times, [&](const reader::StateTimes& of) { return ns(of.blocked); }).close('}');
}

}  // namespace karst::engine
