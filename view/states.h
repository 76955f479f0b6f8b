// What threads did beside their calls, in the words of docs/viewer-protocol.md.
#pragma once
#include <cstdint>
#include <string_view>

#include "base/json.h"
#include "view/selection.h"

namespace karst::view {

/// Members of api/call: `states`, `self_states` and the longest `waits` that begin in a call. Nothing without states.
void write_call_states(Json& json, const TraceIndex& index, const ThreadIndex& thread, std::uint32_t row);

/// `waits` of an exported page: a list of the states of the scope's threads that have a reason, the longest, with their
/// places in view/tiles.h's columns. At most 20,000.
void write_exported_waits(Json& json, const Scope& scope);

/// api/state: state number `state` of a thread's ThreadStates, which there is.
void write_state(Json& json, const TraceIndex& index, const ThreadIndex& thread, std::size_t state);

/// Members of api/trace: `states` (null: none), `tasks`, `cpus`.
void write_state_facts(Json& json, const TraceIndex& index);

}  // namespace karst::view
