// SPDX-License-Identifier: MIT
// What --slowest and --over watch for: rules, and which functions of a process they mean.
//
// The process itself times the calls and keeps those that are wanted (format/watch.h, runtime/watching/watch.h); it
// knows no names, so the functions are found here and entered into its arena.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "choice/function_filter.h"
#include "collect/arena/writer.h"
#include "format/watch.h"
#include "reader/model.h"

namespace karst::collect {

/// One --slowest or --over.
struct WatchRule {
  std::string text;     ///< as it was given
  std::string pattern;  ///< the regular expression in it
  choice::FunctionFilter functions;
  std::uint64_t over_ns = 0;   ///< 0: the slowest ones
  std::uint64_t every_ns = 0;  ///< over: at most one in so much time; 0: any number
  std::uint32_t most = 0;      ///< so many of each function

  /// The word `lock` in a REGEX's place means waits for locks.
  bool is_of_locks() const;
  /// `REGEX[:N]`; N is 5 if it is not given.
  static Result<WatchRule> slowest(std::string_view text);
  /// `REGEX:TIME[:N[/TIME]]`, as `serve.*:20ms` or `serve.*:20ms:50/1s`; N is 100 if it is not given. Behind the slash:
  /// at most one in so much time.
  static Result<WatchRule> over(std::string_view text);
  format::ArenaWatchRule record(std::uint64_t margin_ns) const;
  /// The other is of the same kind and for the same regular expression: a new one replaces it.
  bool is_like(const format::ArenaWatchRule& other) const;
};

struct WatchOptions {
  std::vector<WatchRule> rules;
  std::uint64_t margin_ns = 0;  ///< kept on both sides of a call

  bool watches(const std::string& name) const;
};

/// A rule that a process watches functions by, whoever has entered it.
struct ActiveRule {
  std::uint32_t number = 0;
  choice::FunctionFilter functions;
};
std::vector<ActiveRule> active_rules(const ArenaView& arena);

/// Ends the watches of rules that those of `options` are to replace. Returns how many.
std::size_t end_replaced(ArenaWriter& arena, const WatchOptions& options);

/// Enters those of the functions, with their names, that a rule means. Returns how many watches there are; `refused`
/// grows by those that there was no room for, or that the process cannot have.
std::size_t watch_functions(ArenaWriter& arena, const WatchOptions& options,
                            const std::vector<const reader::Function*>& functions, std::size_t& refused);

}  // namespace karst::collect
