// SPDX-License-Identifier: MIT
// api/trace as a relation, for the page's types; engine/api/api.h writes it.
#pragma once
#include "answers/relation.h"

namespace karst::engine {

/// One row.
const answers::Relation& trace_facts();

}  // namespace karst::engine
