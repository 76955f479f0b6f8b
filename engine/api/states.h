// What threads did beside their calls, in the words of docs/viewer-protocol.md.
#pragma once
#include <cstdint>
#include <string_view>

#include "analysis/waits.h"
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

/// Members of api/trace: `states` (null: none), `tasks`, `cpus`.
void write_state_facts(Json& json, const TraceIndex& index);

}  // namespace karst::engine
