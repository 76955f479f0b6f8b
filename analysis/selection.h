// SPDX-License-Identifier: MIT
// Which part of a trace to look at: threads, functions, and calls. Every command that reads a trace filters by this.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "columns/selection.h"
#include "reader/model.h"
#include "reader/trace.h"

namespace karst::analysis {

/// What the user asked for; an empty text asks for all.
struct Selection {
  std::string thread;        ///< thread name or tid
  std::string process;       ///< pid
  std::string not_thread{};  ///< thread name or tid of threads to leave out
};

/// The threads of `trace` that fit, in the file's order: by process, then by when they joined it. They live as
/// long as the trace. Error: nothing fits; the message lists what there is.
Result<std::vector<const reader::Thread*>> select_threads(const reader::Trace& trace, const Selection& selection);

/// A set of functions by process and id, so that asking is an array access. Keeps a reference to the trace.
class FunctionSet {
 public:
  /// All functions whose demangled name `keep` accepts. `keep` is also asked later about ids that are not in the
  /// trace's function table.
  FunctionSet(const reader::Trace& trace, std::function<bool(std::string_view)> keep);

  /// `process` is an index into Trace::processes().
  bool contains(std::uint32_t process, std::uint32_t id) const {
    const std::vector<std::uint8_t>& known = member_[process];
    return id < known.size() ? known[id] != 0 : contains_unknown(process, id);
  }
  bool empty() const { return size_ == 0; }
  /// Functions of the table that are members.
  std::uint64_t size() const { return size_; }

 private:
  bool contains_unknown(std::uint32_t process, std::uint32_t id) const;

  const reader::Trace* trace_;
  std::function<bool(std::string_view)> keep_;
  std::vector<std::vector<std::uint8_t>> member_;
  std::uint64_t size_ = 0;
};

/// The clock's value where the trace's history starts: no event of it is earlier. Without events: its samples' begin;
/// 0 when it has none.
std::uint64_t first_ticks(const reader::Trace& trace);
/// The same for its end: the last event, over all threads, or what is behind the last sample. Looks at the last block
/// of each thread only.
std::uint64_t last_ticks(const reader::Trace& trace);

/// Which calls of a thread to look at. A call must pass all that is set.
struct CallFilter {
  /// Calls with some of their time in it, or those of no length that begin in it. They end at its edges: what begins
  /// before it begins there, what ends behind it ends there, both marked open.
  std::optional<columns::TickRange> range;
  /// Calls of these functions, and all calls within those.
  const FunctionSet* below = nullptr;
  /// Calls that last at least so many ticks, and whose callers do. Open calls are never too short, as nobody knows how
  /// long they took.
  std::uint64_t min_ticks = 0;
  /// What threads did while they worked on this request (analysis/requests.h).
  std::optional<std::uint64_t> request{};
  /// Without calls of these functions, as if they were not traced: what they call is their callers'.
  const FunctionSet* without = nullptr;

  /// Whether nothing is set.
  bool passes_all() const { return !range && below == nullptr && min_ticks == 0 && !request && without == nullptr; }
};

/// Takes the rows that do not pass out of `calls`. Those that stay have the same order; a call whose caller is gone has
/// none. `process` is the thread's. A duration is compared before it is cut at the range's edges.
void filter_calls(reader::Calls& calls, std::uint32_t process, const CallFilter& filter);

}  // namespace karst::analysis
