// SPDX-License-Identifier: MIT
// What threads did beside their calls, in the words of docs/viewer-protocol.md.
#pragma once
#include <cstdint>
#include <string_view>

#include "analysis/waits.h"
#include "answers/relation.h"
#include "base/json.h"
#include "engine/index/scope.h"

namespace karst::engine {

/// Members of api/call: `states`, `self_states` and the longest `waits` that begin in a call. Nothing without states.
/// `cost`, `self_cost`: ticks of the tracer's, which the two are without.
void write_call_states(Json& json, const TraceIndex& index, const ThreadIndex& thread, std::uint32_t row,
                       std::uint64_t cost, std::uint64_t self_cost);

/// The members of a wait, into an object that is open. Fills in the call that its waker was in.
void write_wait(Json& json, const TraceIndex& index, analysis::Wait wait);

/// api/state: state number `state` of a thread's ThreadStates, which there is.
void write_state(Json& json, const TraceIndex& index, const ThreadIndex& thread, std::size_t state);

/// Of api/trace. A row of state_facts() is a TraceIndex; the others' are handed over by each_task() and each_cpu().
const answers::Relation& state_facts();
const answers::Relation& task_facts();
void each_task(const TraceIndex& index, const answers::UseRow& use);
const answers::Relation& cpu_facts();
void each_cpu(const TraceIndex& index, const answers::UseRow& use);

}  // namespace karst::engine
