// api/flows: what led to a call, and what it led to (analysis/flows.h).
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "analysis/flows.h"
#include "base/json.h"
#include "engine/api/calls.h"
#include "engine/columns.h"
#include "engine/index/index.h"

namespace karst::engine {

inline constexpr std::size_t kMaxFlowsOfCall = 20;  ///< in an answer

/// A trace's flows, and which calls are steps of them.
struct FlowSet {
  struct Place {
    std::uint32_t thread, row;  ///< of the index
    std::uint32_t flow, step;
    auto operator<=>(const Place&) const = default;
  };
  std::vector<analysis::Flow> flows;
  std::vector<Place> places;  ///< in order
};

/// Finds a trace's flows when it is first asked; the index has them then. Thread-safe. Memory: some 100 bytes a step.
class Flows {
 public:
  /// Whether there are any. Asks no thread for its notes.
  static bool has(const TraceIndex& index);
  /// Null: `work` was stopped.
  std::shared_ptr<const FlowSet> of(const TraceIndex& index, Work* work);

 private:
  std::mutex making_;
};

void write_flows(Json& json, const TraceIndex& index, const FlowSet& flows, const CallPlace& call);

}  // namespace karst::engine
