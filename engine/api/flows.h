// SPDX-License-Identifier: MIT
// api/flows: what led to a call, and what it led to (analysis/flows.h).
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "analysis/flows.h"
#include "answers/relation.h"
#include "base/json.h"
#include "engine/api/calls.h"
#include "engine/columns.h"
#include "engine/index/index.h"

namespace karst::engine {

inline constexpr std::size_t kMaxFlowsOfCall = 20;  ///< in an answer

/// A trace's flows, and which calls are steps of them. Made late. Memory: some 100 bytes a step.
struct FlowSet {
  struct Place {
    std::uint32_t thread, row;  ///< of the index
    std::uint32_t flow, step;
    auto operator<=>(const Place&) const = default;
  };
  std::vector<analysis::Flow> flows;
  std::vector<Place> places;  ///< in order

  /// Null: `work` was stopped.
  static std::shared_ptr<const FlowSet> make(const TraceIndex& index, Work* work);
};

/// Whether there are any. Asks no thread for its notes.
bool has_flows(const TraceIndex& index);

/// What the page is told of a call's flows: a relation of one row.
const answers::Relation& flow_answers();

void write_flows(Json& json, const TraceIndex& index, const FlowSet& flows, const CallPlace& call);

}  // namespace karst::engine
