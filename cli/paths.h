// Calls merged by their path, for the commands that print such a tree: flame and stacks.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "analysis/parts.h"
#include "base/result.h"
#include "cli/options.h"
#include "cli/trace_input.h"
#include "query/flame.h"

namespace karst::cli {

/// "wall|cpu|blocked", and behind it "|calls" if `calls`; option --by of `command`.
void add_by_option(Command command, std::string& by, bool calls);

struct Paths {
  explicit Paths(const Input& of) : input(of), parts(of.trace, of.function_set()) {}

  const Input& input;
  analysis::Parts parts;
  query::FlameTree tree;  ///< of the paths that end in functions that were asked for; weighed()
  bool by_calls = false;

  /// The name of a node's function as the trace has it; of the root "all".
  std::string_view name(std::uint32_t function) const;
  /// "1.234 ms" or "12 calls".
  std::string weight(std::uint64_t of) const;
  /// Whole nanoseconds, or calls.
  std::uint64_t number(std::uint64_t of) const { return by_calls ? of : input.trace.clock().to_ns(of); }
};

/// Adds up all threads of `input`, which must outlive the result. Says on stderr if there were too many paths. Error:
/// nothing was called there, or the trace has no states to tell the CPU's time by.
Result<std::unique_ptr<Paths>> paths_of(const Input& input, const std::string& by);

}  // namespace karst::cli
