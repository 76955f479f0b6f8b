// SPDX-License-Identifier: MIT
// What the engine found, as JSON: the answers of docs/viewer-protocol.md that the server and the exported page give.
#pragma once
#include <cstdint>
#include <string_view>

#include "answers/relation.h"
#include "base/json.h"
#include "columns/flame.h"
#include "columns/table.h"
#include "engine/index/index.h"
#include "reader/model.h"

namespace karst::engine {

/// What threads did in a time, with fractions of ns.
const answers::Relation& state_times();
/// Hands over such a row.
void each_state_times(const TraceIndex& index, const reader::StateTimes& times, const answers::UseRow& use);
/// Fields of api/functions, into an object that is open: a row of function_tables().
void write_table(Json& json, const TraceIndex& index, const columns::Table& table);
const answers::Relation& function_tables();
/// api/histogram: a row of histograms().
void write_histogram(Json& json, const TraceIndex& index, std::uint32_t function, const columns::Histogram& histogram);
const answers::Relation& histograms();
/// Hands over such a row, for one within another. Its function is 0.
void each_histogram(const TraceIndex& index, const columns::Histogram& histogram, const answers::UseRow& use);
/// Fields of api/flame, into an object that is open. `clock_b` is of the second set of calls; null: there is none.
void write_flame(Json& json, const columns::FlameTree& tree, std::uint32_t root, double share,
                 const reader::Clock& clock, const reader::Clock* clock_b = nullptr);
/// Smaller nodes of a flame graph are summed, unless the question says otherwise.
inline constexpr double kFlameShare = 0.0005;

}  // namespace karst::engine
