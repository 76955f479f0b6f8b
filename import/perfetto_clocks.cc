// SPDX-License-Identifier: MIT
#include "import/perfetto_clocks.h"

#include <vector>

#include "import/foreign_trace.h"
#include "import/perfetto_fields.h"
#include "import/proto_fields.h"

namespace karst::importing {
namespace {

struct Reading {
  std::uint64_t clock = 0;
  std::uint64_t time = 0;
  std::uint64_t ns_in_unit = 1;
  bool is_incremental = false;
};

Reading parse_reading(std::string_view bytes) {
  Reading reading;
  each_proto_field(bytes, [&](const ProtoField& field) {
    if (field.tag == perfetto::kClockId) reading.clock = field.number;
    if (field.tag == perfetto::kClockTimestamp) reading.time = field.number;
    if (field.tag == perfetto::kIsIncremental) reading.is_incremental = field.number != 0;
    if (field.tag == perfetto::kUnitMultiplierNs && field.number != 0) reading.ns_in_unit = field.number;
  });
  return reading;
}

/// None: it is none that can be.
std::optional<std::int64_t> sum_of(std::int64_t ns, __int128 units, std::uint64_t ns_in_unit) {
  constexpr __int128 kMost = kLatestNs;
  if (units > kMost || units < -kMost || ns_in_unit > static_cast<std::uint64_t>(kLatestNs)) return std::nullopt;
  const __int128 sum = ns + units * static_cast<__int128>(ns_in_unit);
  return sum > kMost || sum < -kMost ? std::nullopt : std::optional(static_cast<std::int64_t>(sum));
}

}  // namespace

PerfettoClocks::Key PerfettoClocks::key_of(std::uint64_t sequence, std::uint64_t clock) {
  const bool is_own = clock >= perfetto::kFirstOwnClock && clock <= perfetto::kLastOwnClock;
  return {is_own ? sequence : 0, clock};
}

void PerfettoClocks::add_snapshot(std::uint64_t sequence, std::string_view snapshot) {
  std::vector<Reading> readings;
  std::uint64_t primary = 0;
  each_proto_field(snapshot, [&](const ProtoField& field) {
    if (field.tag == perfetto::kClocks) readings.push_back(parse_reading(field.bytes));
    if (field.tag == perfetto::kPrimaryTraceClock) primary = field.number;
  });
  if (readings.empty()) return;
  if (trace_clock_ == 0) trace_clock_ = primary != 0 ? primary : readings.front().clock;
  std::optional<std::int64_t> now;  // on the trace's clock
  for (const Reading& reading : readings)
    if (reading.clock == trace_clock_) now = sum_of(0, reading.time, reading.ns_in_unit);
  for (const Reading& reading : readings)
    if (!now && !reading.is_incremental) now = at(sequence, reading.clock, reading.time);
  if (!now) return;
  for (const Reading& reading : readings)
    ties_[key_of(sequence, reading.clock)] = {*now, reading.time, reading.ns_in_unit, reading.is_incremental};
}

std::optional<std::int64_t> PerfettoClocks::at(std::uint64_t sequence, std::uint64_t clock, std::uint64_t time) {
  if (clock == 0 || (trace_clock_ == 0 && clock < perfetto::kFirstOwnClock)) {
    if (clock != 0) trace_clock_ = clock;  // without snapshots the first clock that is used is the trace's
    return sum_of(0, time, 1);
  }
  const auto found = ties_.find(key_of(sequence, clock));
  if (found == ties_.end()) return clock == trace_clock_ ? sum_of(0, time, 1) : std::nullopt;
  Tie& tie = found->second;
  const auto since = static_cast<__int128>(time) - (tie.is_incremental ? 0 : static_cast<__int128>(tie.time));
  const auto ns = sum_of(tie.trace_ns, since, tie.ns_in_unit);
  if (tie.is_incremental && ns) tie.trace_ns = *ns;
  return ns;
}

}  // namespace karst::importing
