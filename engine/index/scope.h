// SPDX-License-Identifier: MIT
// What a question to the engine is about, of a trace that is ready for looking at.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "engine/index/index.h"

namespace karst::engine {

/// Parts of threads of one trace, which all processors work on. Views the index, and what it owns.
struct Scope : columns::Scope {
  explicit Scope(const TraceIndex& of, Work* who_looks_on = nullptr) : index(&of) {
    functions = of.functions().functions().size();
    has_states = !of.trace().states().empty();
    workers = all_processors();
    work = who_looks_on;
  }
  void add(std::uint32_t number, RowRange rows) {
    const ThreadIndex& of = index->threads()[number];
    rows.work = work;
    std::span<const std::uint32_t> function_of;
    if (of.calls.size() != 0) function_of = index->functions().of_process(of.thread->process);
    parts.push_back({&of, number, std::move(rows), function_of});
  }
  const ThreadIndex& thread(const Part& part) const { return index->threads()[part.number]; }

  const TraceIndex* index;
  std::shared_ptr<const void> owned;  ///< what parts view beside the index
};

}  // namespace karst::engine
