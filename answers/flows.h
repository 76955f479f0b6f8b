// SPDX-License-Identifier: MIT
// The relation of flows (analysis/flows.h), and that of a flow's steps.
#pragma once
#include "analysis/flows.h"
#include "answers/relation.h"

namespace karst::answers {

struct FlowRow {
  const analysis::Flow& of;
  const reader::Trace& trace;
  const Times& times;
};

struct FlowStepRow {
  const FlowRow& flow;
  std::size_t at;  ///< of its steps

  const analysis::FlowStep& of() const { return flow.of.steps[at]; }
};

const Relation& flows();
const Relation& flow_steps();

}  // namespace karst::answers
