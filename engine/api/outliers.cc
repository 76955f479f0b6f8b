// SPDX-License-Identifier: MIT
// Asks analysis::OutlierFinder about columns that an index has, so `karst slow` and the page agree on what is slow.
#include "engine/api/outliers.h"

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <vector>

#include "analysis/left_calls.h"
#include "analysis/outliers.h"
#include "answers/slow.h"
#include "engine/api/rows.h"
#include "engine/api/times.h"
#include "words/waits.h"

namespace karst::engine {
namespace {

constexpr std::size_t kMostLevels = 64;  // of a path that is told

using answers::field;
using answers::field_if_known;
using answers::Relation;
using answers::Type;
using answers::Value;
using answers::value_of;

/// Finds out what there is to say of slow calls.
class Teller {
 public:
  Teller(const TraceIndex& index, analysis::OutlierFinder& finder, ThreadTimes& times)
      : index_(index),
        finder_(finder),
        times_(times),
        teller_(index.trace(), [this](const reader::Thread& of) { return calls_of(of); }) {
    for (std::uint32_t i = 0; i < index.threads().size(); ++i) number_of_.try_emplace(index.threads()[i].thread, i);
    if (!index.trace().states().empty())
      waits_ = std::make_unique<analysis::Waits>(index.trace(), 0,
                                                 [this](const reader::Thread& of) { return calls_of(of); });
  }

  std::uint32_t number(const analysis::Outlier& outlier) const { return number_of_.at(outlier.call.thread); }
  const ThreadIndex& thread(const analysis::Outlier& outlier) const { return index_.threads()[number(outlier)]; }

  /// The longest wait in it, if that is a tenth of its excess.
  const analysis::Wait* wait_of(const analysis::Outlier& outlier) const {
    if (waits_ == nullptr) return nullptr;
    const analysis::Wait* wait =
        analysis::longest_wait(waits_->of(*outlier.call.thread), outlier.call.begin, outlier.call.end);
    return wait != nullptr && wait->length() * 10 >= outlier.excess() ? wait : nullptr;
  }

  answers::SlowCall tell(const analysis::OutlierGroup& group) {
    answers::SlowCall told{.of = group};
    const ThreadIndex& its = thread(group.worst);
    const CallColumns calls = times_.within(its, group.worst.call.row);
    for (const std::uint32_t row : finder_.path_below(*its.thread, calls, group.worst.call.row)) {
      if (told.path.size() == kMostLevels) break;
      told.path.push_back({row, its.calls.function[row], calls.time(row), {}});
    }
    if (const analysis::Wait* wait = wait_of(group.worst); wait != nullptr) told.wait = teller_.tell(*wait);
    return told;
  }

  std::vector<answers::LeftFunction> tell_left(analysis::LeftCallFinder& finder,
                                               const std::vector<analysis::OutlierGroup>& groups,
                                               const TickRange& range) const {
    const std::uint64_t length = range.clip(index_.origin(), index_.last_ticks());
    std::vector<answers::LeftFunction> all;
    for (const analysis::LeftFunction& of :
         finder.take(analysis::least_left_excess(groups, length), analysis::kMostLeftFunctions)) {
      const analysis::Wait* const wait = wait_of(of.longest);
      all.push_back({of, wait != nullptr ? std::optional(teller_.tell(*wait)) : std::nullopt});
    }
    return all;
  }

 private:
  CallColumns calls_of(const reader::Thread& thread) const {
    const auto at = number_of_.find(&thread);
    return at == number_of_.end() ? CallColumns() : index_.threads()[at->second].calls;
  }

  const TraceIndex& index_;
  analysis::OutlierFinder& finder_;
  ThreadTimes& times_;
  std::unordered_map<const reader::Thread*, std::uint32_t> number_of_;
  const words::WaitTeller teller_;
  std::unique_ptr<analysis::Waits> waits_;
};

/// A call whose end is not known, and its place in the picture.
struct LeftCallAnswer {
  const answers::LeftFunctionRow& of;
  const ThreadIndex& thread;

  std::uint32_t row() const { return of.of.of.longest.call.row; }
};

struct SlowAnswer {
  const TraceIndex& index;
  std::uint64_t found;
  const std::vector<std::uint64_t>& excess;  // ticks, by thread
  std::size_t groups;                        // without a limit
  const std::vector<answers::SlowCall>& slow;
  const std::vector<answers::LeftFunction>& left;
  const Teller& teller;
};

struct ExcessRow {
  const reader::Thread* thread;
  std::uint64_t ns;
};

/// A slow call, and its place in the picture.
struct SlowCallAnswer {
  const answers::SlowCallRow& of;
  const ThreadIndex& thread;

  const analysis::Outlier& worst() const { return of.of.of.worst; }
};

const Relation& thread_excesses() {
  static const Relation relation{
      "thread_excesses",
      "thread_excess",
      "A row for each thread",
      {field<ExcessRow>("thread", Type::kThread, "that it is",
                        [](const ExcessRow& r) { return answers::ThreadRef{r.thread}; }),
       field<ExcessRow>("excess", Type::kDuration, "the greatest time beyond the usual that a call took there",
                        [](const ExcessRow& r) { return r.ns; })}};
  return relation;
}

const Relation& slow_call_answers() {
  using Row = SlowCallAnswer;
  static const Relation relation{
      "slow", "slow_call", answers::slow_calls().sentence,
      answers::joined(
          {answers::fields_of<Row>(answers::slow_calls().fields,
                                   [](const Row& r) -> const answers::SlowCallRow& { return r.of; }),
           {field_if_known<Row>("cpu", Type::kDuration, "the part of it on a CPU",
                                [](const Row& r) {
                                  if (r.thread.states == nullptr) return Value();
                                  return value_of(
                                      r.of.times.ns(analysis::states_of(r.worst(), *r.thread.states).running));
                                }),
            field_if_known<Row>("waker", Type::kThread, "who ended the wait",
                                [](const Row& r) {
                                  const auto& told = r.of.of.wait;
                                  return told && told->of.waker.thread != nullptr
                                             ? Value(answers::ThreadRef{told->of.waker.thread})
                                             : Value();
                                }),
            field<Row>("recorded", Type::kDuration, "how long it is as recorded",
                       [](const Row& r) { return r.of.times.ns(r.worst().call.end - r.worst().call.begin); }),
            field<Row>("depth", Type::kNumber, "its level",
                       [](const Row& r) { return r.thread.calls.depth[r.worst().call.row]; }),
            field<Row>("index", Type::kNumber, "its place in its thread",
                       [](const Row& r) { return r.worst().call.row; })}})};
  return relation;
}

const Relation& left_call_answers() {
  using Row = LeftCallAnswer;
  static const Relation relation{
      "left", "left_call", answers::left_functions().sentence,
      answers::joined(
          {answers::fields_of<Row>(answers::left_functions().fields,
                                   [](const Row& r) -> const answers::LeftFunctionRow& { return r.of; }),
           {field<Row>("recorded", Type::kDuration, "how long it is as recorded, until the jump",
                       [](const Row& r) { return r.of.times.ns(r.thread.calls.time(r.row())); }),
            field<Row>("depth", Type::kNumber, "its level", [](const Row& r) { return r.thread.calls.depth[r.row()]; }),
            field<Row>("index", Type::kNumber, "its place in its thread", [](const Row& r) { return r.row(); })}})};
  return relation;
}

}  // namespace

const Relation& slow_answers() {
  using Row = SlowAnswer;
  static const Relation relation{
      "slow_answers",
      "slow_answer",
      "Calls that took far longer than their functions usually do",
      {field<Row>("found", Type::kCount, "such calls in the threads that were asked about",
                  [](const Row& r) { return r.found; }),
       answers::rows<Row>(
           "excess", "by thread, in the order of TraceInfo.threads", thread_excesses(),
           [](const Row& r, const answers::UseRow& use) {
             for (std::size_t i = 0; i < r.excess.size(); ++i) {
               const ExcessRow row{r.index.threads()[i].thread, r.index.trace().clock().to_ns(r.excess[i])};
               use(&row);
             }
           }),
       answers::rows<Row>("slow", "the greatest excess first; those that slept as they were told to come last",
                          slow_call_answers(),
                          [](const Row& r, const answers::UseRow& use) {
                            const answers::Times times = times_of(r.index);
                            for (const answers::SlowCall& slow : r.slow) {
                              const answers::SlowCallRow of{r.index.trace(), times, slow};
                              const SlowCallAnswer row{of, r.teller.thread(slow.of.worst)};
                              use(&row);
                            }
                          }),
       answers::rows<Row>("left", "calls that were left by a tail call, and may have lasted long", left_call_answers(),
                          [](const Row& r, const answers::UseRow& use) {
                            const answers::Times times = times_of(r.index);
                            for (const answers::LeftFunction& left : r.left) {
                              const answers::LeftFunctionRow of{r.index.trace(), times, left};
                              const LeftCallAnswer row{of, r.teller.thread(left.of.longest)};
                              use(&row);
                            }
                          }),
       field<Row>("groups", Type::kCount, "how many lines there are without a limit",
                  [](const Row& r) { return r.groups; })}};
  return relation;
}

void write_outliers(Json& json, const Scope& scope, const TickRange& range, bool each, std::size_t most, bool raw) {
  const TraceIndex& index = *scope.index;
  ThreadTimes times(index, raw);
  analysis::OutlierFinder finder(index.trace(), nullptr, 0, analysis::kMostOutliers);
  expect(scope.work, 2 * index.calls());
  for (const ThreadIndex& thread : index.threads()) {
    if (!go_on(scope.work, thread.calls.size())) return;
    finder.learn(*thread.thread, times.of(thread));
  }
  analysis::LeftCallFinder left_finder(nullptr, range);
  for (const columns::Scope::Part& part : scope.parts) {
    const ThreadIndex& thread = index.threads()[part.number];
    if (!go_on(scope.work, thread.calls.size())) return;
    finder.find(*thread.thread, times.of(thread));
    left_finder.add(*thread.thread, times.of(thread));
  }
  const std::uint64_t found = finder.found();
  std::vector<analysis::Outlier> outliers = finder.take();
  std::erase_if(outliers, [&](const analysis::Outlier& one) {
    return one.call.begin >= range.end || one.call.end <= range.begin;
  });
  Teller teller(index, finder, times);
  std::vector<std::uint64_t> excess(index.threads().size());
  for (const analysis::Outlier& one : outliers) {
    std::uint64_t& greatest = excess[teller.number(one)];
    greatest = std::max(greatest, one.excess());
  }
  std::vector<analysis::OutlierGroup> groups = analysis::group_outliers(outliers, each);
  analysis::put_idle_last(groups, index.trace(), [&](const analysis::Outlier& of) { return teller.wait_of(of); });
  std::vector<answers::SlowCall> slow;
  for (std::size_t i = 0; i < groups.size() && i < most; ++i) slow.push_back(teller.tell(groups[i]));
  const std::vector<answers::LeftFunction> left = teller.tell_left(left_finder, groups, range);
  const SlowAnswer answer{index, found, excess, groups.size(), slow, left, teller};
  json.open('{');
  write_row(json, index, slow_answers(), &answer);
  json.close('}');
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

struct ThreadSums {
  const TraceIndex& index;
  std::vector<std::uint32_t> depths;
  std::vector<reader::StateTimes> times;

  std::uint64_t ns(std::uint64_t ticks) const {
    return static_cast<std::int64_t>(ticks) < 0 ? 0 : index.trace().clock().to_ns(ticks);
  }
};

answers::Field times_of_threads(std::string key, std::string sentence, std::uint64_t reader::StateTimes::*of) {
  return answers::list<ThreadSums>(std::move(key), Type::kDuration, std::move(sentence),
                                   [of](const ThreadSums& r, const auto& use) {
                                     for (const reader::StateTimes& times : r.times) use(r.ns(times.*of));
                                   });
}

}  // namespace

const Relation& thread_sums() {
  static const Relation relation{
      "thread_sums",
      "thread_sums",
      "How many levels each thread has in a range, and what it did there; by threads, as in TraceInfo.threads",
      {answers::list<ThreadSums>("depths", Type::kCount, "levels that its calls have in the range",
                                 [](const ThreadSums& r, const auto& use) {
                                   for (const std::uint32_t depth : r.depths) use(std::uint64_t{depth});
                                 }),
       times_of_threads("cpu", "it ran", &reader::StateTimes::running),
       times_of_threads("runnable", "it had no CPU", &reader::StateTimes::runnable),
       times_of_threads("blocked", "it waited", &reader::StateTimes::blocked)}};
  return relation;
}

void write_thread_sums(Json& json, const TraceIndex& index, const TickRange& range) {
  ThreadSums sums{index, {}, {}};
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
    sums.depths.push_back(std::max(depth, sampled_levels(thread, range)));
    sums.times.push_back(thread.states != nullptr && end > range.begin ? thread.states->between(range.begin, end)
                                                                       : reader::StateTimes{});
  }
  json.open('{');
  write_row(json, index, thread_sums(), &sums);
  json.close('}');
}

}  // namespace karst::engine
