// What the engine found, as JSON: the answers of docs/viewer-protocol.md that the server and the exported page give.
#pragma once
#include <cstdint>
#include <string_view>

#include "base/json.h"
#include "columns/flame.h"
#include "columns/table.h"
#include "reader/model.h"

namespace karst::engine {

/// {"cpu":…,"runnable":…,"blocked":…,"unknown":…}, ns with their fractions.
void write_state_times(Json& json, std::string_view name, const reader::Clock& clock, const reader::StateTimes& times);
/// Fields of api/functions from `threads` on, into an object that is open.
void write_table(Json& json, const reader::Clock& clock, const columns::Table& table);
/// api/histogram.
void write_histogram(Json& json, const reader::Clock& clock, std::uint32_t function,
                     const columns::Histogram& histogram);
/// Fields of api/flame, into an object that is open. `clock_b` is of the second set of calls; null: there is none.
void write_flame(Json& json, const columns::FlameTree& tree, std::uint32_t root, double share,
                 const reader::Clock& clock, const reader::Clock* clock_b = nullptr);
/// Smaller nodes of a flame graph are summed, unless the question says otherwise.
inline constexpr double kFlameShare = 0.0005;

}  // namespace karst::engine
