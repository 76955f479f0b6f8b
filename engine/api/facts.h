// SPDX-License-Identifier: MIT
// api/trace as a relation, for the page's types; engine/api/api.h writes it.
#pragma once
#include "answers/relation.h"
#include "engine/index/index.h"

namespace karst::engine {

/// ns since the trace's first event; none for 0 ticks.
inline answers::Value time_of(const TraceIndex& index, std::uint64_t ticks) {
  return ticks == 0 ? answers::Value() : answers::value_of(index.since_origin(ticks));
}

/// One row.
const answers::Relation& trace_facts();

}  // namespace karst::engine
