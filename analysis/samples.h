// SPDX-License-Identifier: MIT
// Samples among the calls: which call a sampled thread was in, and what of its stack lies below that call.
//
// time     what a sample stands for: its period on a CPU, or the wait that began as the thread left one
// below    frames that the innermost traced call has called, themselves not traced. Calls are exact: a stack is only
//          asked for what is missing in them. Where the call's function is not in the stack, nothing is said to be
//          below.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/wait_stacks.h"
#include "columns/columns.h"
#include "columns/selection.h"
#include "reader/trace.h"

namespace karst::analysis {

struct SamplePlace {
  const format::SampleRecord* sample = nullptr;
  bool is_wait = false;
  columns::TickRange blocked{0, 0};        ///< of a wait: when; empty: there was none, or that is not known
  std::uint64_t period = 0;                ///< of others, in ticks
  std::uint32_t row = reader::kNoParent;   ///< innermost call; kNoParent: in no traced one
  std::span<const std::uint32_t> stack{};  ///< places in SampleLog::functions, outermost first
  std::span<const std::uint32_t> below{};  ///< its end: below the call; all of it where there is no call
  bool is_placed = true;                   ///< false: the stack does not have the call's function
  bool is_tracing = false;                 ///< the thread was recording a call
  bool has_calls = true;                   ///< false: the calls of that time are not in the trace

  /// Time in the range that it stands for.
  std::uint64_t ticks_in(const columns::TickRange& range) const {
    if (is_wait) return range.clip(blocked.begin, blocked.end);
    return sample->ticks >= range.begin && sample->ticks < range.end ? period : 0;
  }
};

/// Which samples: of threads on a CPU, as they left one, or all.
enum class SamplesOf { kCpu, kWaits, kBoth };

/// A sample's period, in ticks.
std::uint64_t sample_period(const reader::Trace& trace);

/// Use from one thread. `trace` must outlive it. What was sampled while a thread worked on a fiber is its lane's.
class SamplePlaces {
 public:
  SamplePlaces(const reader::Trace& trace, SamplesOf which);
  /// Calls are known from this time on: what was sampled before is placed there, as a wait that goes on then is.
  void know_calls_from(std::uint64_t ticks) { calls_from_ = ticks; }

  /// Gives the thread's samples to `use(const SamplePlace&)` in order of time. `calls`: the thread's, or those of them
  /// that are asked for; `first_ticks`: where its kept history begins.
  template <typename Use>
  void each(const reader::Thread& thread, const columns::CallColumns& calls, std::uint64_t first_ticks, Use use) {
    open_.clear();
    next_row_ = 0;
    for (const std::uint32_t number : of_thread(thread)) use(place(thread, calls, first_ticks, number));
  }
  /// The same of threads that are not in the trace, as none of their functions was traced: all of a stack is below.
  template <typename Use>
  void each_other(Use use) {
    for (const std::uint32_t number : others_) use(place_in_no_call(number));
  }
  bool has(const reader::Thread& thread) const { return !of_thread(thread).empty(); }
  /// Samples of threads that the trace does not have.
  std::size_t of_others() const { return others_.size(); }

 private:
  // Samples by number: those of CPUs come before the waits.
  const format::SampleRecord& sample(std::uint32_t number) const;
  std::span<const std::uint32_t> of_thread(const reader::Thread& thread) const;
  SamplePlace place(const reader::Thread& thread, const columns::CallColumns& calls, std::uint64_t first_ticks,
                    std::uint32_t number);
  SamplePlace place_in_no_call(std::uint32_t number);
  bool is_function(const reader::Process& process, std::uint32_t id, const reader::SampledFunction& sampled) const;

  const reader::Trace& trace_;
  const std::uint64_t period_;
  std::optional<WaitStacks> waits_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::uint32_t>> of_;  // by process and thread
  std::vector<std::uint32_t> others_;
  std::vector<std::uint32_t> open_;  // rows
  std::uint32_t next_row_ = 0;
  std::uint64_t calls_from_ = 0;
  std::vector<std::uint32_t> stack_;
};

}  // namespace karst::analysis
