// SPDX-License-Identifier: MIT
// When functions were switched off and on, and what that makes of events (docs/trace-format.md, SwitchRecord).
//
// A switch *blinds* its functions from its begin on: their events say nothing, calls of theirs that are open are cut.
// At its end a switch that switches on makes them *visible*. The
// process as a whole has a switch of its own (`first` 0) beside those of its functions: what is visible by both is
// traced.
//
// Functions that no switch tells apart are a group, so that work goes by records and not by functions. A process may
// have tens of thousands of switches of a hundred thousand functions and a thousand threads: those of all functions
// cost one step; of the others the sum over groups is bounded, and beyond the bound a switch counts as one of all
// functions that blinds them for its time only, which leaves out more than it must.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace karst::reader {

/// One change of which functions are traced.
struct Switch {
  std::uint64_t begin_ticks = 0;
  std::uint64_t end_ticks = 0;  ///< 0: under way when the trace was written
  std::uint32_t first = 0;      ///< id of the first function; 0: the process
  std::uint32_t count = 0;
  bool on = false;
  std::uint32_t reason = 0;  ///< format::SwitchReason
  bool operator==(const Switch&) const = default;
};

/// A process's switches, made ready. Immutable once made; any thread may read it.
class SwitchTimeline {
 public:
  SwitchTimeline() = default;
  /// `functions`: ids below this one are looked up at once.
  SwitchTimeline(std::span<const Switch> switches, std::size_t functions);

  bool empty() const { return steps_.empty(); }
  /// Switches that were widened, see above.
  std::size_t widened() const { return widened_; }

 private:
  friend class SwitchCursor;
  struct Range {
    std::uint32_t first_group = 0;
    std::uint32_t end_group = 0;  // equal to first_group: the process
    bool restores = false;        // at its end they are visible
  };
  struct Step {
    std::uint64_t ticks;
    std::uint32_t range;
    bool begins;
  };
  std::uint32_t group_of(std::uint32_t id) const { return id < group_of_.size() ? group_of_[id] : search_group(id); }
  std::uint32_t search_group(std::uint32_t id) const;

  std::vector<std::uint32_t> bounds_;    // group g + 1 has the ids from bounds_[g] on; group 0 those before
  std::vector<std::uint32_t> group_of_;  // by id
  std::vector<Range> ranges_;
  std::vector<Step> steps_;  // in order of time
  std::size_t widened_ = 0;
};

/// Goes through a timeline, forwards only. One thread.
class SwitchCursor {
 public:
  /// The timeline must outlive it. It costs nothing if that is empty.
  explicit SwitchCursor(const SwitchTimeline& timeline);

  /// When the next step comes; the greatest value when there is none.
  std::uint64_t next() const { return next_; }
  enum class Blinded { kNone, kSome, kAll };
  /// Takes the next step; requires that there is one. Says what it blinded.
  Blinded step();
  /// Takes all steps up to `ticks`.
  void advance(std::uint64_t ticks) {
    while (next_ <= ticks && at_ < timeline_->steps_.size()) step();
  }

  /// Events of the function say nothing now.
  bool blind(std::uint32_t id) const { return !all_.visible || !of(id).visible; }
  /// It was blinded at `ticks` or later. Calls begun before that are cut.
  bool blinded_since(std::uint32_t id, std::uint64_t ticks) const {
    const State& state = of(id);
    return (state.range != 0 && state.blinded >= ticks) || (all_.range != 0 && all_.blinded >= ticks);
  }
  /// When it was last blinded; 0: never.
  std::uint64_t blinded(std::uint32_t id) const {
    const State& state = of(id);
    return state.blinded > all_.blinded ? state.blinded : all_.blinded;
  }
  /// When it became visible again; 0 when it has always been.
  std::uint64_t visible_from(std::uint32_t id) const {
    const State& state = of(id);
    return state.restored > all_.restored ? state.restored : all_.restored;
  }

 private:
  struct State {
    std::uint64_t blinded = 0;
    std::uint64_t restored = 0;
    std::uint32_t range = 0;  // 1 + number of that which blinded last; 0: none has
    bool visible = true;
  };
  const State& of(std::uint32_t id) const { return groups_[timeline_->group_of(id)]; }
  void apply(State& state, std::uint32_t range, bool begins, std::uint64_t ticks);

  const SwitchTimeline* timeline_;
  std::size_t at_ = 0;
  std::uint64_t next_;
  State all_;
  std::vector<State> groups_;
};

}  // namespace karst::reader
