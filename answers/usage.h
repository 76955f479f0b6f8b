// SPDX-License-Identifier: MIT
// The relations of what was used beside the calls (analysis/usage.h): each series in short, and all of its values.
#pragma once
#include <string>

#include "analysis/usage.h"
#include "answers/relation.h"

namespace karst::answers {

struct UsageRow {
  const reader::UsageSeries& series;
  std::string thread;  ///< name; empty: none is known
  analysis::UsageSum sum;
};

struct UsageValueRow {
  const reader::UsageSeries& series;
  const Times& times;
  analysis::UsageSample at;
};

const Relation& usage();
const Relation& usage_values();

/// In the order of the trace.
std::vector<UsageRow> usage_rows(const reader::Trace& trace);

}  // namespace karst::answers
