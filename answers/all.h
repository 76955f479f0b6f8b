// SPDX-License-Identifier: MIT
// All relations, for what is made of their declarations: the reference, the page's types and their decoders.
#pragma once
#include <vector>

#include "answers/relation.h"

namespace karst::answers {

/// Those of rows within rows, too.
const std::vector<const Relation*>& all_relations();

}  // namespace karst::answers
