// SPDX-License-Identifier: MIT
#include "export/samples.h"

#include <cstddef>

#include "analysis/samples.h"

namespace karst::exporting {
namespace {

bool takes_calls(const Options& options) {
  return options.functions != nullptr || options.filter.below != nullptr || options.filter.min_ticks != 0 ||
         options.filter.request;
}

/// The row is a call of one of the functions, or lies in one.
bool is_in(const analysis::FunctionSet& functions, std::uint32_t process, const reader::Calls& calls,
           std::uint32_t row) {
  for (; row != reader::kNoParent; row = calls.parent[row])
    if (functions.contains(process, calls.function[row])) return true;
  return false;
}

}  // namespace

void each_sample(const reader::Trace& trace, const Options& options,
                 const std::function<bool(const format::SampleRecord&)>& use) {
  if (trace.samples().empty()) return;
  const auto& range = options.filter.range;
  const bool of_calls = takes_calls(options);
  analysis::SamplePlaces places(trace, analysis::SamplesOf::kCpu);
  bool goes_on = true;
  const auto give = [&](const format::SampleRecord& sample) {
    if (range && (sample.ticks < range->begin || sample.ticks >= range->end)) return;
    goes_on = goes_on && use(sample);
  };
  for (const reader::Thread* const thread : options.threads) {
    if (!goes_on) return;
    if (!places.has(*thread)) continue;
    const reader::Calls calls = of_calls ? calls_of(trace, *thread, options) : reader::Calls();
    places.each(*thread, columns::CallColumns(calls), calls.first_ticks, [&](const analysis::SamplePlace& place) {
      if (of_calls && place.row == reader::kNoParent) return;
      if (options.functions != nullptr && !is_in(*options.functions, thread->process, calls, place.row)) return;
      give(*place.sample);
    });
  }
  if (!of_calls && options.others) places.each_other([&](const analysis::SamplePlace& place) { give(*place.sample); });
}

std::string_view module_text(const reader::SampledFunction& function) {
  return function.module.empty() ? std::string_view("[no file]") : std::string_view(function.module);
}

}  // namespace karst::exporting
