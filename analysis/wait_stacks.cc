// SPDX-License-Identifier: MIT
#include "analysis/wait_stacks.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "reader/states.h"

namespace karst::analysis {
namespace {

using reader::ThreadState;

constexpr columns::TickRange kNoWait{0, 0};

/// The samples of one thread, in order of time, and its states.
class Match {
 public:
  Match(const reader::ThreadStates& states, std::uint64_t error) : states_(states), error_(error) {}

  /// `next`: when the thread was sampled the next time.
  columns::TickRange wait_of(std::uint64_t ticks, std::uint64_t next) {
    // What had ended before, or is another sample's, is not this one's.
    while (at_ < states_.size() && states_.end_of(at_) + error_ <= ticks) ++at_;
    std::size_t i = at_;
    while (i < states_.size() && comes_before(states_.state[i]) && states_.end_of(i) < next + error_) ++i;
    if (i == states_.size() || !leaves_cpu(states_.state[i]) || states_.begin[i] >= next + error_) return kNoWait;
    // Of a sample whose own leaving is not among the states: this one came with the next.
    if (states_.begin[i] > ticks + error_ && states_.begin[i] + error_ >= next) return kNoWait;
    at_ = i + 1;
    return states_.state[i] == ThreadState::kBlocked ? columns::TickRange{states_.begin[i], states_.end_of(i)}
                                                     : kNoWait;
  }

 private:
  static bool comes_before(ThreadState state) { return state == ThreadState::kRunning || state == ThreadState::kWoken; }
  static bool leaves_cpu(ThreadState state) {
    return state == ThreadState::kBlocked || state == ThreadState::kPreempted;
  }

  const reader::ThreadStates& states_;
  const std::uint64_t error_;
  std::size_t at_ = 0;
};

/// Whether functions are of those that processes of the trace have traced.
class TracedCode {
 public:
  explicit TracedCode(const reader::Trace& trace) {
    for (const reader::Process& process : trace.processes())
      for (const reader::Function& function : process.functions)
        if (function.id != 0 && function.module < process.modules.size())
          addresses_[process.modules[function.module].path].insert(function.address -
                                                                   process.modules[function.module].bias);
  }
  bool has(const reader::SampledFunction& function) const {
    const auto module = addresses_.find(function.module);
    if (module == addresses_.end()) return false;
    const auto at = module->second.lower_bound(function.address);
    return at != module->second.end() && *at - function.address < function.size;
  }

 private:
  std::map<std::string, std::set<std::uint64_t>> addresses_;
};

bool is_c_library(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return name.starts_with("libc.so") || name.starts_with("libc-") || name.starts_with("libpthread") ||
         name.starts_with("ld-") || name.starts_with("[vdso");
}

}  // namespace

WaitStacks::WaitStacks(const reader::Trace& trace) : trace_(trace), blocked_(trace.samples().waits.size(), kNoWait) {
  const auto& waits = trace.samples().waits;
  const reader::StateSource& source = trace.states().source();
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::size_t>> by_thread;
  for (std::size_t i = 0; i < waits.size(); ++i) by_thread[{waits[i].pid, waits[i].tid}].push_back(i);
  const auto error = static_cast<std::uint64_t>(static_cast<double>(source.clock_error_ns) *
                                                static_cast<double>(trace.clock().ticks_per_second) / 1e9);
  for (const auto& [thread, places] : by_thread) {
    const reader::ThreadStates* const states = trace.states().of(thread.first, thread.second);
    if (states == nullptr) continue;
    Match match(*states, error);
    for (std::size_t i = 0; i < places.size(); ++i) {
      const std::uint64_t next = i + 1 < places.size() ? waits[places[i + 1]].ticks : source.end_ticks;
      blocked_[places[i]] = match.wait_of(waits[places[i]].ticks, next);
    }
  }
  if (waits.size() != 0) find_code();
}

void WaitStacks::find_code() {
  const reader::SampleLog& log = trace_.samples();
  const TracedCode traced(trace_);
  // Of each function: 1 it is told, 2 it is not, as what called it may be, 3 nor is what called it.
  enum : std::uint8_t { kToldItself = 1, kLookAtCaller = 2, kNothing = 3 };
  std::vector<std::uint8_t> what(log.functions.size());
  for (std::size_t i = 0; i < log.functions.size(); ++i) {
    const reader::SampledFunction& function = log.functions[i];
    what[i] = function.module.empty() || traced.has(function)                        ? kNothing
              : is_c_library(function.module) || reader::is_tracing(function.module) ? kLookAtCaller
                                                                                     : kToldItself;
  }
  for (std::size_t i = 0; i < blocked_.size(); ++i) {
    const format::SampleRecord& wait = log.waits[i];
    if (blocked_[i].begin == blocked_[i].end) continue;
    const reader::ThreadStates* const states = trace_.states().of(wait.pid, wait.tid);
    std::uint32_t at = wait.stack;
    while (at != 0 && what[log.stacks[at - 1].function] == kLookAtCaller) at = log.stacks[at - 1].caller;
    if (at == 0 || what[log.stacks[at - 1].function] == kNothing) continue;
    code_[states->task].push_back({blocked_[i].begin, &log.functions[log.stacks[at - 1].function]});
  }
}

const reader::SampledFunction* WaitStacks::code_of(std::uint32_t task, std::uint64_t begin) const {
  const auto of = code_.find(task);
  if (of == code_.end()) return nullptr;
  const auto at = std::partition_point(of->second.begin(), of->second.end(),
                                       [begin](const Code& code) { return code.begin < begin; });
  return at != of->second.end() && at->begin == begin ? at->function : nullptr;
}

}  // namespace karst::analysis
