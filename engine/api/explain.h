// SPDX-License-Identifier: MIT
// api/explain: why a call took longer than its siblings, as `karst explain` says it.
#pragma once
#include <cstdint>

#include "answers/relation.h"
#include "base/json.h"
#include "engine/api/calls.h"
#include "engine/api/values.h"
#include "engine/index/index.h"

namespace karst::engine {

/// What the page is told of a call: a relation of one row.
const answers::Relation& explanation_answers();

/// An object, or nothing once `work` is stopped. Requires a call with both ends known. With `raw` the tracer's cost
/// stays in the times. `values` are those of the same index.
void write_explanation(Json& json, const TraceIndex& index, const CallPlace& call, bool raw, Values& values,
                       Work* work);

}  // namespace karst::engine
