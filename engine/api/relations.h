// SPDX-License-Identifier: MIT
// The relations that the page is answered with: those of answers/ that it shows, and those that are the page's alone,
// as they tell of tracks and places in its picture. The page's types and decoders are made of this list.
#pragma once
#include <vector>

#include "answers/relation.h"

namespace karst::engine {

/// Relations of rows within rows stand in it, too.
const std::vector<const answers::Relation*>& relations_of_page();

/// Those that the page gets as programs do, in the JSON of answers/data.h: what `karst asked` answers.
const std::vector<const answers::Relation*>& relations_of_programs();

}  // namespace karst::engine
