// SPDX-License-Identifier: MIT
// What the numbers of an answer's column are, told by the column's name: an answer itself has types alone.
#pragma once
#include <string_view>

#include "answers/relation.h"

namespace karst::sql {

/// "moment": ns since the trace's first event; "ns"; "bytes"; "share": 0 to 1; empty: a plain number.
const char* unit_of(answers::Type type);

/// The unit of a column of this name: that which all tables declare under it. Else "ns" and "bytes" for a name that
/// ends so (`total_ns`).
const char* unit_of_column(std::string_view name);

}  // namespace karst::sql
