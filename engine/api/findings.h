// SPDX-License-Identifier: MIT
// api/findings: what karst diff says of two traces.
#pragma once
#include "answers/relation.h"

namespace karst::engine {

/// What the page is told: a relation of one row.
const answers::Relation& finding_answers();

}  // namespace karst::engine
