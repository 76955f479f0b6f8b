// SPDX-License-Identifier: MIT
#include "answers/problems.h"

namespace karst::answers {

const Relation& problems() {
  using Row = reader::Problem;
  static const Relation relation{
      "problems",
      "problem",
      "A row for each thing that could not be used",
      {field<Row>("message", Type::kText, "what it is, and what it costs",
                  [](const Row& r) -> const std::string& { return r.message; }),
       field<Row>("count", Type::kCount, "how often it was met", [](const Row& r) { return r.count; })}};
  return relation;
}

}  // namespace karst::answers
