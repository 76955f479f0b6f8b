// SPDX-License-Identifier: MIT
// The tables of a trace: every relation whose rows a trace has by itself, and views over them.
#pragma once
#include <span>

#include "sql/scan.h"

namespace karst::sql {

std::span<const Table> tables();

/// What is made of tables: a view or a macro.
struct Derived {
  const char* name;      ///< as it is used: `below(call)`
  const char* sentence;  ///< what it is
  const char* sql;       ///< that makes it
};
std::span<const Derived> derived();

}  // namespace karst::sql
