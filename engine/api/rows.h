// SPDX-License-Identifier: MIT
// An answer for the page: a row of a relation, which may hold rows of others, those as a list for each field. The
// page's types and what reads them are made of the same declarations (page/src/backend/answers.ts).
#pragma once
#include "answers/relation.h"
#include "base/json.h"
#include "engine/index/index.h"

namespace karst::engine {

/// Fields of an object that is open, each under its key. Rows within a row are a list for each field, or objects where
/// they have rows themselves; one row is an object, or null. What stands for a
/// function, a thread or a process is its place among those of `index`, -1 where it has none; a number of 64 bits is
/// text. What is not known is null.
void write_row(Json& json, const TraceIndex& index, const answers::Relation& relation, const void* row);

/// Times in answers, from where the page's count: of a part of a trace from the whole's begin.
inline answers::Times times_of(const TraceIndex& index) { return {index.trace(), index.origin()}; }

}  // namespace karst::engine
