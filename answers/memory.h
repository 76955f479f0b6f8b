// SPDX-License-Identifier: MIT
// The relations of memory (analysis/memory.h): what each function took, or each path of calls.
#pragma once
#include <string>
#include <vector>

#include "analysis/memory.h"
#include "answers/relation.h"

namespace karst::answers {

struct MemoryRow {
  std::string name;  ///< of the function, or of the path
  analysis::MemorySum sum;
};

/// A row for each function, or path of calls, that took memory itself.
std::vector<MemoryRow> memory_rows(const analysis::Parts& parts, const analysis::MemoryUse& use, bool by_path);

const Relation& memory_of_functions();
const Relation& memory_of_paths();

}  // namespace karst::answers
