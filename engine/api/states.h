// SPDX-License-Identifier: MIT
// What threads did beside their calls, in the words of docs/viewer-protocol.md.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "answers/relation.h"
#include "base/json.h"
#include "engine/index/scope.h"

namespace karst::engine {

/// States of a call and the longest waits that begin in it, as numbers of the thread's states.
struct StatesOfCall {
  reader::StateTimes all, own;  ///< `own`: without what it called
  std::vector<std::size_t> waits;
};
/// Nothing where they are not known. `cost`, `self_cost`: ticks of the tracer's, which the two are without.
std::optional<StatesOfCall> states_of_call(const ThreadIndex& thread, std::uint32_t row, std::uint64_t cost,
                                           std::uint64_t self_cost);

/// api/state, and rows in others.
const answers::Relation& state_lines();
/// Hands over the row of state number `state` of a thread's ThreadStates, which there is.
void use_state(const TraceIndex& index, const ThreadIndex& thread, std::size_t state, const answers::UseRow& use);
/// api/state: one row.
void write_state(Json& json, const TraceIndex& index, const ThreadIndex& thread, std::size_t state);

/// Of api/trace. A row of state_facts() is a TraceIndex; the others' are handed over by each_task() and each_cpu().
const answers::Relation& state_facts();
const answers::Relation& task_facts();
void each_task(const TraceIndex& index, const answers::UseRow& use);
const answers::Relation& cpu_facts();
void each_cpu(const TraceIndex& index, const answers::UseRow& use);

}  // namespace karst::engine
