// SPDX-License-Identifier: MIT
// Which samples an export has, and how the formats get them.
#pragma once
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "base/output.h"
#include "export/export.h"
#include "reader/trace.h"

namespace karst::exporting {

/// Gives the samples of the chosen threads, and, where no calls are chosen and Options::others, of the others, in order
/// of time of each thread. Filters that take calls take samples in these calls. `use` returns false to stop.
void each_sample(const reader::Trace& trace, const Options& options,
                 const std::function<bool(const format::SampleRecord&)>& use);

/// What a module is called where code of no file has none.
std::string_view module_text(const reader::SampledFunction& function);

/// Perfetto's PerfSample packets, one sequence. `raw_ns`: CLOCK_MONOTONIC_RAW at a time in ticks.
void write_perfetto_samples(const reader::Trace& trace, const Options& options, std::uint32_t sequence,
                            const std::function<std::uint64_t(std::uint64_t)>& raw_ns, Output& output);

}  // namespace karst::exporting
