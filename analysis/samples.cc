#include "analysis/samples.h"

#include <algorithm>

namespace karst::analysis {
namespace {

/// A number may be another thread's later.
bool has_lived(const reader::Process& process, const reader::Thread& thread, std::uint64_t ticks) {
  return ticks >= process.start_ticks && (process.end_ticks == 0 || ticks <= process.end_ticks) &&
         (!thread.exited || ticks <= thread.exited_ticks);
}

}  // namespace

SamplePlaces::SamplePlaces(const reader::Trace& trace) : trace_(trace) {
  // Those that began last come first: an exec leaves the numbers.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<const reader::Thread*>> threads;
  for (const reader::Process& process : trace.processes())
    for (const reader::Thread& thread : process.threads)
      if (!thread.fiber) threads[{process.pid, thread.tid}].push_back(&thread);
  const auto& samples = trace.samples().samples;
  for (std::uint32_t number = 0; number < samples.size(); ++number) {
    const format::SampleRecord& sample = samples[number];
    const auto at = threads.find({sample.pid, sample.tid});
    const reader::Thread* found = nullptr;
    if (at != threads.end())
      for (const reader::Thread* const thread : at->second)
        if (has_lived(trace.processes()[thread->process], *thread, sample.ticks)) found = thread;
    if (found == nullptr)
      others_.push_back(number);
    else
      of_[{found->process, found->index}].push_back(number);
  }
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
  place.sample = &log.samples[number];
  stack_.clear();
  for (std::uint32_t at = place.sample->stack; at != 0; at = log.stacks[at - 1].caller)
    stack_.push_back(log.stacks[at - 1].function);
  std::reverse(stack_.begin(), stack_.end());
  place.stack = place.below = stack_;
  place.is_tracing = !stack_.empty() && reader::is_tracing(log.functions[stack_.back()].module);
  return place;
}

SamplePlace SamplePlaces::place(const reader::Thread& thread, const query::CallColumns& calls,
                                std::uint64_t first_ticks, std::uint32_t number) {
  const reader::SampleLog& log = trace_.samples();
  const reader::Process& process = trace_.processes()[thread.process];
  SamplePlace place = place_in_no_call(number);
  const std::uint64_t ticks = place.sample->ticks;
  for (; next_row_ < calls.size() && calls.begin[next_row_] <= ticks; ++next_row_) {
    while (!open_.empty() && open_.back() != calls.parent[next_row_]) open_.pop_back();
    open_.push_back(next_row_);
  }
  while (!open_.empty() && calls.end(open_.back()) < ticks) open_.pop_back();
  if (!open_.empty()) place.row = open_.back();

  // Zones, and calls that stand for others, have no frame of their own.
  std::uint32_t row = place.row;
  while (row != reader::kNoParent &&
         (trace_.function(process, calls.function[row]).note || trace_.function(process, calls.function[row]).made))
    row = calls.parent[row];
  place.has_calls = ticks >= first_ticks || (thread.overwritten_events == 0 && !thread.excerpt);
  if (row == reader::kNoParent) return place;
  std::size_t from = stack_.size();
  while (from != 0 && !is_function(process, calls.function[row], log.functions[stack_[from - 1]])) --from;
  place.is_placed = from != 0;
  place.below = place.stack.subspan(from == 0 ? stack_.size() : from);
  return place;
}

}  // namespace karst::analysis
