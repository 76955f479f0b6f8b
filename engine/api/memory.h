// SPDX-License-Identifier: MIT
// api/memory: what a call and all that it called took of memory, and what of it was still there at its end
// (analysis/memory.h), for the page.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "analysis/memory.h"
#include "answers/relation.h"
#include "base/json.h"
#include "engine/api/calls.h"
#include "engine/columns.h"
#include "engine/index/index.h"

namespace karst::engine {

inline constexpr std::size_t kMaxTakers = 10;  ///< functions in an answer

/// An answer is a row of these.
const answers::Relation& memory_answers();

/// Replays a trace's records of memory when it is first asked, and keeps what was taken: 48 bytes an allocation. The
/// indices must outlive it. Thread-safe.
class Memory {
 public:
  /// Whether the trace has such records at all.
  static bool has(const TraceIndex& index);
  /// An object, or nothing once `work` is stopped. Requires has().
  void write(Json& json, const TraceIndex& index, const CallPlace& call, Work* work);

 private:
  struct Known {
    std::uint64_t mean = 0;                                          ///< as analysis::MemoryUse says
    std::vector<std::vector<analysis::MemoryAllocation>> of_thread;  ///< of the index
  };
  std::shared_ptr<const Known> find(const TraceIndex& index, Work* work);

  std::mutex mutex_;
  std::map<const TraceIndex*, std::shared_ptr<const Known>> known_;
};

}  // namespace karst::engine
