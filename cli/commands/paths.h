// SPDX-License-Identifier: MIT
// Calls merged by their path, for karst flame and its formats.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "analysis/parts.h"
#include "base/result.h"
#include "cli/input/trace_input.h"
#include "cli/options.h"
#include "columns/flame.h"

namespace karst::cli {

/// What a path is weighed by.
enum class Weight { kTime, kCalls, kBytes };

/// "wall|cpu|blocked", then "calls" if `calls`, and "allocated|living|peak"; option --by of `command`.
void add_by_option(Command command, std::string& by, bool calls);

struct Paths {
  /// Numbers of functions from here on are places in the trace's SampleLog::functions.
  static constexpr std::uint32_t kFirstSampled = 0x80000000U;

  explicit Paths(const Input& of) : input(of), parts(of.trace, of.function_set()) {}

  const Input& input;
  analysis::Parts parts;
  columns::FlameTree tree;  ///< of the paths that end in functions that were asked for; weighed()
  Weight by = Weight::kTime;

  /// A node's function is no traced one: samples saw it below a call.
  static bool is_sampled(std::uint32_t function) {
    return function >= kFirstSampled && function < columns::FlameTree::kOther;
  }
  /// The name of a node's function as the trace has it; of the root "all".
  std::string_view name(std::uint32_t function) const;
  /// "1.234 ms", "12 calls" or "1.5 MiB".
  std::string weight(std::uint64_t of) const;
  /// Whole nanoseconds, calls or bytes.
  std::uint64_t number(std::uint64_t of) const { return by == Weight::kTime ? input.trace.clock().to_ns(of) : of; }
  /// What a node's `calls` are: "call" or "allocation".
  const char* counted() const { return by == Weight::kBytes ? "allocation" : "call"; }
};

/// Adds up all threads of `input`, which must outlive the result. With `samples`, and where all functions are asked
/// for, what samples have seen below a call is not its own time, but that of frames there: is_sampled(). Says on stderr
/// if there were too many paths. Error: nothing was called there, or the trace has no states to tell the CPU's time by,
/// or no records of memory.
Result<std::unique_ptr<Paths>> paths_of(const Input& input, const std::string& by, bool samples = false);

}  // namespace karst::cli
