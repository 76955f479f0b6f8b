// SPDX-License-Identifier: MIT
// The relations of functions (analysis/report.h): what their calls took, how their durations spread, and who called
// whom. And those of calls by a value of theirs, with the same fields.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "analysis/report.h"
#include "answers/relation.h"
#include "columns/edges.h"
#include "columns/table.h"

namespace karst::answers {

/// What rows of functions are seen beside. Outlives the rows.
struct ReportContext {
  explicit ReportContext(const analysis::Report& of) : all_ns(of.self_ns), has_states(of.has_states) {}

  std::uint64_t all_ns;  ///< in calls of all functions
  bool has_states;
  /// How far what tracing took of a call may be off, in ns, and that as a share of it; 0: nothing is taken out.
  double call_off_by_ns = 0, share_off_by = 0;
};

struct FunctionRow {
  const ReportContext& in;
  const analysis::FunctionReport& of;
};

/// How a function's durations spread.
struct SpreadRow {
  const ReportContext& in;
  const analysis::FunctionReport& of;
  std::uint64_t p90;                    ///< ticks
  const columns::Histogram& histogram;  ///< without any bucket where no call is complete
  Times times;
};
struct BucketRow {
  std::uint64_t from, to, calls;  ///< ns
};

struct EdgeRow {
  const columns::Edge& of;
  const std::string* caller;  ///< null: nothing traced
  const std::string& callee;
  Times times;
};

const Relation& functions();
/// Whether a field of theirs is known of traces with thread states alone.
bool needs_states(std::string_view called);
/// Rows are FunctionRow: groups of calls by a value (analysis/call_groups.h).
const Relation& values_of_calls();
const Relation& spreads();
const Relation& buckets();
const Relation& edges();

}  // namespace karst::answers
