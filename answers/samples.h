// SPDX-License-Identifier: MIT
// The relations of samples (analysis/sample_sums.h): functions that they saw, and the calls that those were below.
#pragma once
#include <cstdint>
#include <string>

#include "analysis/sample_sums.h"
#include "answers/relation.h"

namespace karst::answers {

struct SampledFunctionRow {
  const reader::SampledFunction& function;
  const analysis::FunctionSamples& of;
  std::uint64_t all_ticks;  ///< of all samples
  Times times;
  std::string below;  ///< as mostly_below() has it
};

/// A part of what a function's samples stand for.
struct SampledBelowRow {
  const std::string& function;
  const analysis::SampledTime& in;
  const Times& times;
};

const Relation& sampled_functions();
const Relation& sampled_below();

}  // namespace karst::answers
