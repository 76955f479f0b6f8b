// SPDX-License-Identifier: MIT
// What samples have seen below a thread's calls, as slices on the levels below those: samples that follow each other in
// one call are one slice in each frame that they share.
#pragma once
#include "analysis/samples.h"
#include "engine/index/index.h"

namespace karst::engine {

/// In `calls`, `function` is a place in SampleLog::functions; `source` is how many samples a slice is of. A sample
/// stands for the time before it: up to a period, to the sample before it or to its call's begin. Slices are open-ended
/// (reader::kCallOpenEnd): nobody knows when it began and ended.
Strip make_sample_strip(const reader::Trace& trace, const ThreadIndex& thread, analysis::SamplePlaces& places);

}  // namespace karst::engine
