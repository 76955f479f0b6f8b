// SPDX-License-Identifier: MIT
// Calls in columns (columns/), by their names there: nearly all of the engine looks at them.
#pragma once
#include "columns/columns.h"
#include "columns/scope.h"
#include "columns/work.h"

namespace karst::engine {

using columns::CallColumns;
using columns::each_row;
using columns::expect;
using columns::go_on;
using columns::innermost_at;
using columns::is_complete;
using columns::is_counted;
using columns::is_stopped;
using columns::kNoFunction;
using columns::kWorkStep;
using columns::RowRange;
using columns::rows_in;
using columns::rows_of_call;
using columns::subtree_end;
using columns::TickRange;
using columns::Work;

}  // namespace karst::engine
