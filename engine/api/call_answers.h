// SPDX-License-Identifier: MIT
// api/call and api/occurrences: one call from near, and other calls of its function, for the page.
#pragma once
#include <cstdint>
#include <vector>

#include "answers/relation.h"
#include "base/json.h"
#include "engine/api/calls.h"
#include "engine/api/values.h"
#include "engine/index/index.h"

namespace karst::engine {

/// api/call: one row.
const answers::Relation& call_infos();
/// `raw`: times as recorded, with what tracing took.
void write_call(Json& json, const TraceIndex& index, const CallPlace& call, const NotedOfCall& noted, bool raw);

/// api/occurrences: one row.
const answers::Relation& occurrence_answers();
void write_occurrences(Json& json, const TraceIndex& index, std::uint32_t function, const Occurrences& found);

}  // namespace karst::engine
