// SPDX-License-Identifier: MIT
// The relations of a comparison (analysis/diff.h): functions of two sides beside each other, and what was found.
#pragma once
#include "analysis/diff.h"
#include "analysis/diff_findings.h"
#include "answers/relation.h"

namespace karst::answers {

/// Rows are analysis::FunctionDiff.
const Relation& compared_functions();
/// Rows are analysis::Finding.
const Relation& findings();

}  // namespace karst::answers
