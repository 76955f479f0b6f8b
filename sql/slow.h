// SPDX-License-Identifier: MIT
// The gatherer of what `karst slow` lists: calls that took far longer than usual, and what stands beside them.
#pragma once
#include <vector>

#include "analysis/left_calls.h"
#include "analysis/outliers.h"
#include "answers/slow.h"
#include "sql/gathered.h"

namespace karst::sql {

/// What is usual is known when all threads have been seen. So their calls are rebuilt once more in finish().
struct Slow : Gatherer {
  explicit Slow(const Source& source);
  void chosen(const reader::Thread& thread, const std::shared_ptr<const reader::Calls>& calls) override;
  void finish() override;

  const Source& source;
  answers::Times times;
  analysis::OutlierFinder finder;
  std::vector<answers::SlowCall> calls;  ///< the order of karst slow
  std::vector<answers::RareFunction> rare;
  std::vector<answers::LeftFunction> left;
};

}  // namespace karst::sql
