// The calls of an exported page, read back: the other side of encode_columns() in view/tiles.h. The page's engine asks
// these (viewer/engine/engine.cc), as it knows nothing of a trace.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "query/scope.h"
#include "reader/model.h"
#include "reader/states.h"

namespace karst::view {

/// In columns, numbers of threads from here on are of the strips of their states, and of CPUs.
inline constexpr std::uint32_t kColumnsStates = 0x80000000U;
inline constexpr std::uint32_t kColumnsCpus = 0xc0000000U;

/// One call of a thread, and all that happened within it.
struct ExportedCall {
  std::uint32_t thread = 0;
  std::uint32_t row = 0;
};

class ExportedCalls {
 public:
  /// `bytes` are as docs/viewer-protocol.md has them, and are checked. Null: they are not sound.
  static std::unique_ptr<ExportedCalls> read(std::span<const std::byte> bytes);

  const reader::Clock& clock() const { return clock_; }
  std::size_t functions() const { return function_numbers_.size(); }
  /// Those of `threads` (null: of all) within [begin, end) in ns since the trace's start, and within what the page
  /// holds. A border that is not finite is none.
  query::Scope scope(const std::vector<std::uint32_t>* threads, double begin, double end) const;
  /// Of one call; nothing in it when there is none.
  query::Scope scope(ExportedCall call) const;

 private:
  struct Thread {
    std::uint32_t number = 0;
    reader::Calls owned;
    reader::ThreadStates states;
    query::ThreadCalls calls;
  };
  query::Scope empty_scope() const;
  void add(query::Scope& scope, const Thread& thread, query::RowRange rows) const;

  reader::Clock clock_;
  std::uint64_t origin_ = 0;
  query::TickRange range_;
  bool has_states_ = false;
  std::vector<std::unique_ptr<Thread>> threads_;
  std::vector<std::uint32_t> function_numbers_;  // the columns have numbers already: each is its own
};

}  // namespace karst::view
