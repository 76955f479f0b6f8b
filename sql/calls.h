// SPDX-License-Identifier: MIT
// Calls as a query sees them: the relation of answers/ with what leads from call to call, over the columns of a thread
// as they are. No more threads' calls are in memory at once than are being gone through.
#pragma once
#include <memory>

#include "answers/relation.h"
#include "sql/scan.h"

namespace karst::sql {

/// Fields of answers::calls(), and id, parent, last, depth, end, self, cpu, runnable, blocked.
const answers::Relation& calls();

std::unique_ptr<Scan> scan_calls(Gathered& gathered, const Fields& fields, const ThreadChoice& threads);

}  // namespace karst::sql
