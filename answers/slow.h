// SPDX-License-Identifier: MIT
// The relations of slow calls (analysis/outliers.h): calls that took far longer than usual, where their time went,
// functions that are called too few times to have a usual time, and those whose calls are not seen to their end.
#pragma once
#include <optional>
#include <vector>

#include "analysis/left_calls.h"
#include "analysis/outliers.h"
#include "analysis/values.h"
#include "answers/relation.h"
#include "answers/waits.h"

namespace karst::answers {

/// What a call was given and what it returned; none: that is not noted.
struct NotedValues {
  std::optional<std::vector<analysis::Value>> arguments, returned;
};

struct SlowCall {
  analysis::OutlierGroup of;
  NotedValues noted{};
  struct Step {
    std::uint32_t row, function;
    std::uint64_t duration;  ///< ticks
    NotedValues noted;
  };
  std::vector<Step> path{};               ///< from its callee down to where most of its excess is
  std::optional<words::ToldWait> wait{};  ///< the longest
  std::vector<words::ToldLink> chain{};   ///< who was waited for
};

struct RareFunction {
  analysis::RareFunction of;
  std::optional<words::ToldWait> wait;  ///< of the call by itself
};

struct LeftFunction {
  analysis::LeftFunction of;
  std::optional<words::ToldWait> wait;  ///< the longest until the bound
};

struct SlowCallRow {
  const reader::Trace& trace;
  const Times& times;
  const SlowCall& of;

  WaitRow wait() const { return {trace, times, of.wait ? &*of.wait : nullptr}; }
};

struct SlowStepRow {
  const SlowCallRow& call;
  const SlowCall::Step& of;
};

struct RareFunctionRow {
  const reader::Trace& trace;
  const Times& times;
  const RareFunction& of;

  WaitRow wait() const { return {trace, times, of.wait ? &*of.wait : nullptr}; }
};

struct LeftFunctionRow {
  const reader::Trace& trace;
  const Times& times;
  const LeftFunction& of;

  WaitRow wait() const { return {trace, times, of.wait ? &*of.wait : nullptr}; }
};

const Relation& slow_calls();
const Relation& slow_steps();
const Relation& rare_functions();
const Relation& left_functions();

}  // namespace karst::answers
