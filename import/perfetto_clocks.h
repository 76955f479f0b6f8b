// SPDX-License-Identifier: MIT
// Perfetto's clocks: which time of one clock is which of another.
//
// Snapshots say what several clocks showed at once. Times of all clocks are given on one of them, the trace's. Clocks
// 64 to 127 belong to a packet sequence each; they may count in other units, or from the time before.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

namespace karst::importing {

class PerfettoClocks {
 public:
  /// Throws protozero::exception where it is damaged.
  void add_snapshot(std::uint64_t sequence, std::string_view snapshot);
  /// On the trace's clock, in ns. `clock` 0: the trace's own. None: it has no relation to the trace's clock, or the
  /// time is none that can be.
  std::optional<std::int64_t> at(std::uint64_t sequence, std::uint64_t clock, std::uint64_t time);

 private:
  /// A clock shows `time` where the trace's clock shows `trace_ns`.
  struct Tie {
    std::int64_t trace_ns = 0;
    std::uint64_t time = 0;
    std::uint64_t ns_in_unit = 1;
    bool is_incremental = false;
  };
  using Key = std::pair<std::uint64_t, std::uint64_t>;  // a sequence, 0 for everybody's clocks; and a clock
  static Key key_of(std::uint64_t sequence, std::uint64_t clock);

  std::uint64_t trace_clock_ = 0;  ///< 0: not known yet
  std::map<Key, Tie> ties_;
};

}  // namespace karst::importing
