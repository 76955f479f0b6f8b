// SPDX-License-Identifier: MIT
// Flows: calls that lead to one another, in whatever thread.
//
//   said       karst_flow(ID) makes the call that the thread is in a step of flow ID; karst_flow_end(ID) its last one
//   coroutine  each resumption of a C++20 coroutine is a step; between two of them it was suspended
//
// A number is a process's own. After its last step it is another flow.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "reader/model.h"
#include "reader/trace.h"

namespace karst::analysis {

struct FlowStep {
  const reader::Thread* thread = nullptr;
  std::uint32_t row = reader::kNoParent;  ///< its call, of the thread's calls; kNoParent: it was said in none
  std::uint32_t function = 0;             ///< of that call
  std::uint64_t begin = 0;                ///< ticks: of the resumption; when it was said
  std::uint64_t end = 0;                  ///< of what is said, `begin`
};

struct Flow {
  std::uint64_t id = 0;         ///< as it was said; of a coroutine where its frame lay
  std::uint32_t process = 0;    ///< index into Trace::processes()
  std::uint32_t coroutine = 0;  ///< the function of its first step; 0: it was said
  bool passes = false;          ///< a step of it passes the filter of FlowFinder::add()
  bool ended = false;           ///< a last step was said, or the coroutine's frame destroyed, at `end`
  std::uint64_t end = 0;        ///< ticks; of a flow that goes on the end of its last step
  std::vector<FlowStep> steps;  ///< in order of time; at least one

  std::uint64_t begin() const { return steps.front().begin; }
  /// From step `i` to the next one.
  std::uint64_t gap(std::size_t i) const {
    return steps[i + 1].begin > steps[i].end ? steps[i + 1].begin - steps[i].end : 0;
  }
  std::uint64_t gaps() const;       ///< ticks, of all of them
  std::size_t longest_gap() const;  ///< the step that it follows; steps.size(): there is none
  std::uint32_t threads() const;    ///< that it went through
};

/// `flow 17`, or a coroutine's name and where its frame lay: `serve [0x5581c0]`.
std::string flow_name(const reader::Trace& trace, const Flow& flow);

/// Whether it is noted of some function which coroutine its calls are of.
bool notes_coroutines(const reader::Process& process);
/// Whether the thread has steps of a flow. Looks at events without making calls of them.
bool tells_of_flows(const reader::Trace& trace, const reader::Thread& thread);

/// Puts steps together. `trace` must outlive it. Memory: some 100 bytes a step. Use from one thread.
///
/// A frame's address is used again when a coroutine has ended. Its end is known by its destruction, and the begin of
/// gcc's by the call of the function that makes it. Others have neither where final_suspend() does not suspend: where
/// the trace has neither of any coroutine of this function, a resumption is of another one if one has begun since the
/// last.
class FlowFinder {
 public:
  explicit FlowFinder(const reader::Trace& trace);
  ~FlowFinder();
  FlowFinder(FlowFinder&&) = delete;

  /// All of the thread's calls with their notes, without costs.
  void add(const reader::Thread& thread, const reader::Calls& calls) {
    add(thread, calls, [](const FlowStep&) { return true; });
  }
  void add(const reader::Thread& thread, const reader::Calls& calls,
           const std::function<bool(const FlowStep&)>& passes);
  /// In order of their begin. Call once.
  std::vector<Flow> take();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Of these threads, which it reads.
std::vector<Flow> flows_of(const reader::Trace& trace, const std::vector<const reader::Thread*>& threads);

}  // namespace karst::analysis
