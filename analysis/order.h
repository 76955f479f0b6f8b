// SPDX-License-Identifier: MIT
// In which order a linker should lay out functions, as calls had them: what runs together lies together, so that a
// start touches fewer pages and the instruction cache holds more of what is used.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analysis/selection.h"
#include "reader/model.h"
#include "reader/trace.h"

namespace karst::analysis {

/// Functions of one module by their linker's names; several copies under one name are one. `trace` must outlive it. Use
/// from one thread.
class LinkOrder {
 public:
  struct Function {
    std::string_view name;    ///< the linker's
    std::uint64_t first = 0;  ///< ticks of the first call, in any thread
    std::uint64_t calls = 0;
  };
  struct Edge {
    std::string_view caller, callee;
    std::uint64_t calls = 0;
  };

  /// `module` is the path of one of the trace's. Only `functions` when it is not null.
  LinkOrder(const reader::Trace& trace, std::string_view module, const FunctionSet* functions);
  void add(const reader::Thread& thread, const reader::Calls& calls);

  /// Those that were called, in the order of their first calls.
  std::vector<Function> by_first_call() const;
  /// The same, those called most first.
  std::vector<Function> by_calls() const;
  /// Calls between two of them, by name.
  std::vector<Edge> edges() const;
  /// Functions that were called and have no linker's name that could stand on a line.
  std::uint64_t nameless() const { return nameless_; }

 private:
  static constexpr std::uint32_t kOther = 0xffffffffU;     // another module's, or a name of notes
  static constexpr std::uint32_t kNameless = 0xfffffffeU;  // not yet counted

  std::vector<Function> functions_;
  std::vector<std::vector<std::uint32_t>> number_of_;       // in functions_, by process and id
  std::unordered_map<std::uint64_t, std::uint64_t> edges_;  // calls, by caller << 32 | callee
  std::uint64_t nameless_ = 0;
};

/// Modules that have functions, each with their number: those with the most first.
std::vector<std::pair<std::string, std::uint64_t>> modules_with_functions(const reader::Trace& trace);

}  // namespace karst::analysis
