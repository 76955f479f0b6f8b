// SPDX-License-Identifier: MIT
// A thread's calls as columns/ takes them, with all functions of the trace in one list. Whatever adds up a trace thread
// by thread goes this way, so that a function has one number in all of it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "analysis/function_list.h"
#include "analysis/selection.h"
#include "columns/scope.h"
#include "reader/model.h"
#include "reader/pieces.h"
#include "reader/trace.h"

namespace karst::analysis {

/// `trace` must outlive it. Use from one thread at a time.
class Parts {
 public:
  /// `asked_for`: the functions that wanted() says yes to; null: all. Outlives this, too.
  explicit Parts(const reader::Trace& trace, const FunctionSet* asked_for = nullptr)
      : trace_(trace), asked_for_(asked_for) {}
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  /// All of `calls`, with the states that the trace has of the thread. Good until the next call of this, and as long as
  /// `calls` is.
  const columns::Scope::Part& of(const reader::Thread& thread, const reader::Calls& calls) {
    return of(thread, reader::whole_piece(calls));
  }
  /// The same with these states in the trace's stead; null: nothing is known of them.
  const columns::Scope::Part& of(const reader::Thread& thread, const reader::Calls& calls,
                                 const reader::ThreadStates* states) {
    return of(thread, reader::whole_piece(calls), states);
  }
  /// The same of a piece of them.
  const columns::Scope::Part& of(const reader::Thread& thread, const reader::Piece& piece);
  const columns::Scope::Part& of(const reader::Thread& thread, const reader::Piece& piece,
                                 const reader::ThreadStates* states);
  /// What the last call of these returned.
  const columns::Scope::Part& latest() const { return part_; }

  /// Those that occurred so far, in order of their first call.
  const FunctionList& functions() const { return functions_; }
  std::size_t size() const { return wanted_.size(); }
  /// By function: whether it was asked for.
  const std::vector<bool>& wanted() const { return wanted_; }

 private:
  void number(std::uint32_t process, const reader::Piece& piece);

  const reader::Trace& trace_;
  const FunctionSet* const asked_for_;
  FunctionList functions_;
  std::vector<bool> wanted_;
  columns::ThreadCalls columns_;
  columns::Scope::Part part_;
};

}  // namespace karst::analysis
