// SPDX-License-Identifier: MIT
#include "analysis/samples.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace karst::analysis {
namespace {

/// A number may be another thread's later.
bool has_lived(const reader::Process& process, const reader::Thread& thread, std::uint64_t ticks) {
  return ticks >= process.start_ticks && (process.end_ticks == 0 || ticks <= process.end_ticks) &&
         (!thread.exited || ticks <= thread.exited_ticks);
}

/// Lanes of the fibers that threads of a process worked on.
class FiberTimes {
 public:
  explicit FiberTimes(const reader::Process& process) {
    for (const reader::Thread& lane : process.threads)
      for (const reader::RanOn& run : lane.ran_on) of_[run.thread].push_back({run.begin_ticks, run.end_ticks, &lane});
    for (auto& [thread, runs] : of_)
      std::sort(runs.begin(), runs.end(), [](const Run& a, const Run& b) { return a.begin < b.begin; });
  }

  /// The lane of what the thread worked on then: its own, or a fiber's.
  const reader::Thread* lane_at(const reader::Thread* thread, std::uint64_t ticks) const {
    const auto runs = of_.find(thread->index);
    if (runs == of_.end()) return thread;
    const auto after = std::partition_point(runs->second.begin(), runs->second.end(),
                                            [&](const Run& run) { return run.begin <= ticks; });
    return after != runs->second.begin() && ticks < std::prev(after)->end ? std::prev(after)->lane : thread;
  }

 private:
  struct Run {
    std::uint64_t begin;
    std::uint64_t end;
    const reader::Thread* lane;
  };
  std::map<std::uint32_t, std::vector<Run>> of_;
};

}  // namespace

std::uint64_t sample_period(const reader::Trace& trace) {
  return static_cast<std::uint64_t>(std::llround(static_cast<double>(trace.samples().source.period_ns) *
                                                 static_cast<double>(trace.clock().ticks_per_second) / 1e9));
}

SamplePlaces::SamplePlaces(const reader::Trace& trace, SamplesOf which) : trace_(trace), period_(sample_period(trace)) {
  if (which != SamplesOf::kCpu) waits_.emplace(trace);
  std::vector<FiberTimes> fibers;
  for (const reader::Process& process : trace.processes()) fibers.emplace_back(process);
  // Those that began last come first: an exec leaves the numbers.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<const reader::Thread*>> threads;
  for (const reader::Process& process : trace.processes())
    for (const reader::Thread& thread : process.threads)
      if (!thread.fiber) threads[{process.pid, thread.tid}].push_back(&thread);
  const auto on_cpus = static_cast<std::uint32_t>(trace.samples().samples.size());
  const auto all = on_cpus + static_cast<std::uint32_t>(trace.samples().waits.size());
  for (std::uint32_t number = which == SamplesOf::kWaits ? on_cpus : 0;
       number < (which == SamplesOf::kCpu ? on_cpus : all); ++number) {
    const format::SampleRecord& sampled = sample(number);
    const auto at = threads.find({sampled.pid, sampled.tid});
    const reader::Thread* found = nullptr;
    if (at != threads.end())
      for (const reader::Thread* const thread : at->second)
        if (has_lived(trace.processes()[thread->process], *thread, sampled.ticks)) found = thread;
    if (found == nullptr) {
      others_.push_back(number);
      continue;
    }
    found = fibers[found->process].lane_at(found, sampled.ticks);
    of_[{found->process, found->index}].push_back(number);
  }
  if (which != SamplesOf::kBoth) return;
  for (auto& [thread, numbers] : of_)
    std::stable_sort(numbers.begin(), numbers.end(),
                     [this](std::uint32_t x, std::uint32_t y) { return sample(x).ticks < sample(y).ticks; });
}

const format::SampleRecord& SamplePlaces::sample(std::uint32_t number) const {
  const reader::SampleLog& log = trace_.samples();
  return number < log.samples.size() ? log.samples[number] : log.waits[number - log.samples.size()];
}

std::span<const std::uint32_t> SamplePlaces::of_thread(const reader::Thread& thread) const {
  const auto at = of_.find({thread.process, thread.index});
  return at == of_.end() ? std::span<const std::uint32_t>() : at->second;
}

bool SamplePlaces::is_function(const reader::Process& process, std::uint32_t id,
                               const reader::SampledFunction& sampled) const {
  const reader::Function& function = trace_.function(process, id);
  if (function.id == 0 || function.module >= process.modules.size()) return false;
  const reader::Module& module = process.modules[function.module];
  const std::uint64_t address = function.address - module.bias;
  return address - sampled.address < sampled.size && module.path == sampled.module;
}

SamplePlace SamplePlaces::place_in_no_call(std::uint32_t number) {
  const reader::SampleLog& log = trace_.samples();
  SamplePlace place;
  place.sample = &sample(number);
  place.period = period_;
  place.is_wait = number >= log.samples.size();
  if (place.is_wait) place.blocked = waits_->blocked(*place.sample);
  stack_.clear();
  for (std::uint32_t at = place.sample->stack; at != 0; at = log.stacks[at - 1].caller)
    stack_.push_back(log.stacks[at - 1].function);
  std::reverse(stack_.begin(), stack_.end());
  place.stack = place.below = stack_;
  place.is_tracing = !stack_.empty() && reader::is_tracing(log.functions[stack_.back()].module);
  return place;
}

SamplePlace SamplePlaces::place(const reader::Thread& thread, const columns::CallColumns& calls,
                                std::uint64_t first_ticks, std::uint32_t number) {
  const reader::SampleLog& log = trace_.samples();
  const reader::Process& process = trace_.processes()[thread.process];
  SamplePlace place = place_in_no_call(number);
  const std::uint64_t ticks = std::max(place.sample->ticks, calls_from_);
  for (; next_row_ < calls.size() && calls.begin[next_row_] <= ticks; ++next_row_) {
    while (!open_.empty() && open_.back() != calls.parent[next_row_]) open_.pop_back();
    open_.push_back(next_row_);
  }
  while (!open_.empty() && calls.end(open_.back()) < ticks) open_.pop_back();
  if (!open_.empty()) place.row = open_.back();

  // Zones, calls that stand for others, and those that an interpreter executes have no frame of their own.
  std::uint32_t row = place.row;
  while (row != reader::kNoParent && !trace_.function(process, calls.function[row]).has_code()) row = calls.parent[row];
  place.has_calls = ticks >= first_ticks || (thread.overwritten_events == 0 && !thread.excerpt);
  if (row == reader::kNoParent) return place;
  std::size_t from = stack_.size();
  while (from != 0 && !is_function(process, calls.function[row], log.functions[stack_[from - 1]])) --from;
  place.is_placed = from != 0;
  place.below = place.stack.subspan(from == 0 ? stack_.size() : from);
  return place;
}

}  // namespace karst::analysis
