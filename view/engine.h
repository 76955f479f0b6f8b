// The viewer asks the engine (query/), and calls things by the engine's words.
#pragma once
#include "query/columns.h"
#include "query/scope.h"
#include "query/work.h"

namespace karst::view {

using query::CallColumns;
using query::each_row;
using query::expect;
using query::go_on;
using query::innermost_at;
using query::is_complete;
using query::is_counted;
using query::is_stopped;
using query::kNoFunction;
using query::kWorkStep;
using query::RowRange;
using query::rows_in;
using query::rows_of_call;
using query::subtree_end;
using query::TickRange;
using query::Work;

}  // namespace karst::view
