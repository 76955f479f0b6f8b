// SPDX-License-Identifier: MIT
// What of a trace could not be used.
#pragma once
#include "answers/relation.h"

namespace karst::answers {

/// A row is a reader::Problem.
const Relation& problems();

}  // namespace karst::answers
