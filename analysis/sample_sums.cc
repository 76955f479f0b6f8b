// SPDX-License-Identifier: MIT
#include "analysis/sample_sums.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace karst::analysis {
namespace {

void count_in(SampledTime& time, std::uint64_t ticks) {
  ++time.samples;
  time.ticks += ticks;
}

}  // namespace

std::string FunctionSamples::mostly_below() const {
  std::string most = "=";
  std::uint64_t ticks = traced.ticks;
  for (const auto& [name, in] : below)
    if (in.ticks > ticks) {
      most = name;
      ticks = in.ticks;
    }
  return ticks == 0 ? "" : most;
}

SampleAdder::SampleAdder(const reader::Trace& trace, const FunctionSet* functions, bool in_calls,
                         const columns::TickRange& range)
    : trace_(trace), functions_(functions), in_calls_(in_calls), range_(range) {
  sums_.functions.resize(trace.samples().functions.size());
  for (std::uint32_t i = 0; i < sums_.functions.size(); ++i) sums_.functions[i].function = i;
  seen_.resize(sums_.functions.size());
}

void SampleAdder::count(const SamplePlace& place, std::uint64_t ticks) {
  count_in(sums_.all, ticks);
  if ((place.sample->flags & format::kSampleInKernel) != 0) ++sums_.kernel;
  if (place.is_tracing) ++sums_.tracing;
  if (!place.has_calls) ++sums_.without_calls;
  if (!place.is_placed && !place.is_tracing) ++sums_.unplaced;
  if (!place.below.empty() && !place.is_tracing && place.has_calls) ++sums_.untraced;
  if (place.stack.empty()) ++sums_.without_stack;
}

void SampleAdder::add(std::uint32_t process, std::uint32_t function, const SamplePlace& place) {
  if (in_calls_ && function == 0) return;
  if (functions_ != nullptr && !functions_->contains(process, function)) return;
  const std::uint64_t ticks = place.ticks_in(range_);
  // libkarst's own thread sleeps all the time.
  if (ticks == 0 || (place.is_wait && place.is_tracing)) return;
  count(place, ticks);
  if (place.stack.empty()) return;
  ++number_;
  for (const std::uint32_t at : place.stack)
    if (std::exchange(seen_[at], number_) != number_) count_in(sums_.functions[at].total, ticks);
  FunctionSamples& innermost = sums_.functions[place.stack.back()];
  count_in(innermost.self, ticks);
  if (!place.has_calls) return;
  if (function != 0 && place.below.empty()) return count_in(innermost.traced, ticks);
  const std::string name = function == 0 ? std::string() : trace_.function(trace_.processes()[process], function).name;
  count_in(innermost.below[name], ticks);
}

SampleSums SampleAdder::take() {
  std::erase_if(sums_.functions, [](const FunctionSamples& of) { return of.total.ticks == 0; });
  std::stable_sort(sums_.functions.begin(), sums_.functions.end(), [](const auto& a, const auto& b) {
    return std::tie(a.self.ticks, a.total.ticks) > std::tie(b.self.ticks, b.total.ticks);
  });
  return std::move(sums_);
}

}  // namespace karst::analysis
