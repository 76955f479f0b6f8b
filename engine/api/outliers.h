// SPDX-License-Identifier: MIT
// Slow calls for the page: what `karst slow` finds, from an index whose calls are there already.
#pragma once
#include <cstddef>
#include <cstdint>

#include "answers/relation.h"
#include "base/json.h"
#include "engine/index/scope.h"

namespace karst::engine {

inline constexpr std::size_t kMaxOutliers = 1000;  ///< in api/outliers

/// What the page is told of slow calls: a relation of one row.
const answers::Relation& slow_answers();

/// api/outliers: of each function the call of greatest excess, or each call, in the order of analysis/outliers.h; those
/// alone that overlap `range` and lie in a thread of `scope`. What is usual is learnt from all of the trace. With
/// `raw` the tracer's cost stays in the times.
void write_outliers(Json& json, const Scope& scope, const TickRange& range, bool each, std::size_t most, bool raw);

/// What the page is told of all threads in a range: a relation of one row.
const answers::Relation& thread_sums();

/// api/threads: by thread how many levels its calls have in `range`, and its times by state there.
void write_thread_sums(Json& json, const TraceIndex& index, const TickRange& range);

}  // namespace karst::engine
