// SPDX-License-Identifier: MIT
// Rows within rows of a relation, as a table of their own: threads of processes of a trace, steps of flows.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sql/scan.h"

namespace karst::sql {

/// One level further in.
struct Level {
  const char* field;                   ///< that holds the rows
  std::vector<const char*> keys = {};  ///< fields of these rows that the rows within them begin with
};

/// The rows of `outer`, each for as long as it is used.
struct Outer {
  const answers::Relation& relation;
  MakeGatherer gatherer;
  std::function<void(const Gatherer& of, const answers::UseRow& use)> each;
  std::vector<const char*> keys = {};  ///< as Level::keys
};

/// The table `name` of the rows that are reached by `levels`.
Table within(std::string name, const Outer& outer, std::vector<Level> levels);

}  // namespace karst::sql
